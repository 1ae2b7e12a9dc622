// AVX-512 at source level, for processors without them: SIMDe's functions under the names of the
// intrinsics, and what it lacks. Included before everything else in the units of those paths, in a build for testing
// only.
#pragma once

#define PACELINE_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <immintrin.h>
#include <simde/x86/avx512.h>

namespace simulated {
namespace {

inline __m512i join(__m256i low, __m256i high) { return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1); }
inline __m512 join(__m256 low, __m256 high) {
  return _mm512_castsi512_ps(join(_mm256_castps_si256(low), _mm256_castps_si256(high)));
}
inline __m128i behind(__m128i bytes) { return _mm_srli_si128(bytes, 8); }

inline __m512 cvtph_ps(__m256i halves) {
  return join(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)));
}
inline __m512 cvtepi32_ps(__m512i a) {
  return join(_mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(a, 0)), _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(a, 1)));
}
inline __m512i cvtepu8_epi32(__m128i a) { return join(_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(behind(a))); }
inline __m512i cvtepi8_epi32(__m128i a) { return join(_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(behind(a))); }
inline __m512i cvtepu16_epi32(__m256i a) {
  return join(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1)));
}

}  // namespace
}  // namespace simulated

#define _mm512_cvtph_ps simulated::cvtph_ps
#define _mm512_cvtepi32_ps simulated::cvtepi32_ps
#define _mm512_cvtepu8_epi32 simulated::cvtepu8_epi32
#define _mm512_cvtepi8_epi32 simulated::cvtepi8_epi32
#define _mm512_cvtepu16_epi32 simulated::cvtepu16_epi32

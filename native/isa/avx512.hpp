// What products are computed with on x86-64 processors with AVX-512 VNNI: vectors of 16 outputs, a whole block.
#pragma once

#include "isa/avx2.hpp"

namespace paceline {
namespace avx512 {
namespace {

struct Products {
  static constexpr int kLanes = 16;
  static constexpr int kLargestSum = 0x7fffffff;
  static constexpr TileSizes kTiles = {4, 4};
  static constexpr TileSizes kSplitTiles = kTiles;  // inputs are never split
  static constexpr int kStripVectors = 4;
  static constexpr bool kHasSignedCodes = false;
  using Float = __m512;
  using Int = __m512i;
  using Codes = __m512i;   // 4 columns of each output
  using Four = __m512i;    // 4 inputs, for each output
  using Sums = __m512i;    // 32 bits
  using Scales = __m512i;  // 32 bits

  static Float splat(float x) { return _mm512_set1_ps(x); }
  static Int splat(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Float zero() { return _mm512_setzero_ps(); }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Int add(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Float to_float(Int a) { return _mm512_cvtepi32_ps(a); }

  static Float load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Float a) { _mm512_storeu_ps(p, a); }
  static Float load_half(const std::uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Float load_bfloat(const std::uint8_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }

  static Codes load_codes(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  // Shifts are of 16 bits: what comes from the neighbouring byte is masked away.
  template <int kMask, int kShift>
  static Codes field(Codes w) {
    if constexpr (kShift > 0) w = _mm512_srli_epi16(w, kShift);
    return _mm512_and_si512(w, _mm512_set1_epi8(kMask));
  }
  static Codes either(Codes a, Codes b) { return _mm512_or_si512(a, b); }
  // Replaces 4-bit codes by what a table of 16 has for them.
  static Codes look_up(const std::uint8_t* table, Codes codes) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_sixteen(table)), codes);
  }

  static Four broadcast_four(const std::int8_t* x) {
    std::int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static Sums multiply(Codes codes, Four four) { return _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, four); }
  static void accumulate(Sums& sums, Codes codes, Four four) { sums = _mm512_dpbusd_epi32(sums, codes, four); }
  static Sums sums_of(const std::int16_t* p) { return splat(p[0] + p[1]); }
  static Sums add_sums(Sums a, Sums b) { return add(a, b); }
  template <int kFactor>
  static Sums times(Sums a) {
    return _mm512_mullo_epi32(a, splat(kFactor));
  }
  static Int widen(Sums sums) { return sums; }
  static Int widen_scaled(Sums sums, Scales scales) { return _mm512_mullo_epi32(sums, scales); }

  // Of 16 bytes, those of vector kVector of the outputs: all.
  template <int kVector>
  static Scales load_unsigned_pairs(const std::uint8_t* p) {
    return load_unsigned(p);
  }
  template <int kVector>
  static Scales load_signed_pairs(const std::uint8_t* p) {
    return load_signed(p);
  }
  template <int kVector>
  static Scales load_low_nibbles(const std::uint8_t* p) {
    return _mm512_and_si512(load_unsigned(p), splat(15));
  }
  template <int kVector>
  static Scales load_high_nibbles(const std::uint8_t* p) {
    return _mm512_srli_epi32(load_unsigned(p), 4);
  }
  static Int load_unsigned(const std::uint8_t* p) { return _mm512_cvtepu8_epi32(load_sixteen(p)); }
  static Int load_signed(const std::uint8_t* p) { return _mm512_cvtepi8_epi32(load_sixteen(p)); }
  // float32, float16 or 2^(e - 128).
  template <int kBytes>
  static Float load_scale(const std::uint8_t* p) {
    if constexpr (kBytes == 4) return load(reinterpret_cast<const float*>(p));
    if constexpr (kBytes == 2) return load_half(p);
    return load_half_powers(p);
  }

  static void prefetch(const void* p) { avx2::Isa::prefetch(p); }

 private:
  static __m128i load_sixteen(const std::uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  // 2^(e - 128); the two smallest are subnormal.
  static Float load_half_powers(const std::uint8_t* p) {
    const Int e = load_unsigned(p);
    const Int normal = _mm512_slli_epi32(add(e, splat(std::int32_t{-1})), 23);
    const Int subnormal = _mm512_sllv_epi32(splat(std::int32_t{0x00200000}), e);
    const __mmask16 is_normal = _mm512_cmpgt_epi32_mask(e, splat(std::int32_t{1}));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(is_normal, subnormal, normal));
  }
};

}  // namespace
}  // namespace avx512
}  // namespace paceline

// The kernels for x86-64 processors with AVX2, FMA and F16C.
#include "isa/table.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

namespace paceline {
namespace avx2 {
namespace {

struct Isa {
  using F8 = __m256;
  using I8 = __m256i;

  static F8 splat(float x) { return _mm256_set1_ps(x); }
  static I8 splat(std::int32_t x) { return _mm256_set1_epi32(x); }
  static F8 zero() { return _mm256_setzero_ps(); }

  static F8 add(F8 a, F8 b) { return _mm256_add_ps(a, b); }
  static F8 sub(F8 a, F8 b) { return _mm256_sub_ps(a, b); }
  static F8 mul(F8 a, F8 b) { return _mm256_mul_ps(a, b); }
  static F8 div(F8 a, F8 b) { return _mm256_div_ps(a, b); }
  static F8 fma(F8 a, F8 b, F8 c) { return _mm256_fmadd_ps(a, b, c); }
  // Both return b where either operand is NaN.
  static F8 max(F8 a, F8 b) { return _mm256_max_ps(a, b); }
  static F8 min(F8 a, F8 b) { return _mm256_min_ps(a, b); }

  static float sum(F8 a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float maximum(F8 a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }

  static F8 load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F8 a) { _mm256_storeu_ps(p, a); }
  template <class T>
  static F8 load_half(const T* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F8 load_bfloat(const std::uint8_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static void store_half(std::uint16_t* p, F8 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }

  static F8 round(F8 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // a * 2^n for whole n in [-126, 127]. A NaN in n is in a as well.
  static F8 scale_by_power_of_two(F8 a, F8 n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int16_t (*pair_sums)[2]) {
    const __m256 magnitude_mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const __m256 limit = _mm256_set1_ps(3.4028234663852886e38f);
    __m256 v[4];
    __m256 largest = zero();
    __m256 finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    for (int i = 0; i < 4; ++i) {
      v[i] = load(x + 8 * i);
      const __m256 magnitude = _mm256_and_ps(v[i], magnitude_mask);
      finite = _mm256_and_ps(finite, _mm256_cmp_ps(magnitude, limit, _CMP_LE_OQ));
      largest = max(largest, magnitude);
    }
    const bool is_finite = _mm256_movemask_ps(finite) == 0xff;
    const float top = maximum(largest);
    const bool is_zero = !is_finite || top < 1e-30f;
    *scale = is_finite ? (is_zero ? 0.0f : top / 127.0f) : __builtin_nanf("");
    if (is_zero) {
      __builtin_memset(pair_sums, 0, 8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_setzero_si256());
      return;
    }
    const __m256 inverse = splat(127.0f / top);
    __m256i q[4];
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(mul(v[i], inverse));
    const __m128i sums = _mm_hadd_epi32(halved(add(q[0], q[1])), halved(add(q[2], q[3])));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(pair_sums), _mm_packs_epi32(sums, sums));
    // Packing works within 128-bit halves; the permutation puts the 4-byte pieces back in order.
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_permutevar8x32_epi32(packed, order));
  }

  // low = ((x + 8) mod 16) - 8; high = floor((x + 8) / 16). The latter takes 9 bits: with a = x + 128 it is
  // floor((a + 8) / 16) - 8, and the rounded average of a and 7 is floor((a + 8) / 2) without overflow.
  static void split_codes(const std::int8_t* codes, std::int8_t* high, std::int8_t* low) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i eight = _mm256_set1_epi8(8);
    const __m256i lows = _mm256_sub_epi8(_mm256_and_si256(_mm256_add_epi8(x, eight), _mm256_set1_epi8(15)), eight);
    const __m256i a = _mm256_xor_si256(x, _mm256_set1_epi8(static_cast<char>(128)));
    const __m256i halved = _mm256_avg_epu8(a, _mm256_set1_epi8(7));
    const __m256i highs = _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(halved, 3), _mm256_set1_epi8(31)), eight);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low), lows);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(high), highs);
  }

  // What products are computed with: vectors of 8 outputs.
  static constexpr int kLanes = 8;
  static constexpr int kLargestSum = 32767;
  // Rows of a tile that is alone, and of several: what the registers, or nearly, hold.
  static constexpr TileSizes kTiles = {5, 4};
  static constexpr TileSizes kSplitTiles = {3, 2};
  static constexpr int kStripVectors = 8;  // accumulators of blocks side by side
  using Float = F8;
  using Int = I8;
  using Codes = __m256i;   // 4 columns of each output
  using Four = __m256i;    // 4 inputs, for each output
  using Sums = __m256i;    // 16 bits, two an output
  using Scales = __m256i;  // 16 bits, each output's twice

  static Codes load_codes(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  // Shifts are of 16 bits: what comes from the neighbouring byte is masked away.
  template <int kMask, int kShift>
  static Codes field(Codes w) {
    if constexpr (kShift > 0) w = _mm256_srli_epi16(w, kShift);
    return _mm256_and_si256(w, _mm256_set1_epi8(kMask));
  }
  static Codes either(Codes a, Codes b) { return _mm256_or_si256(a, b); }
  // Replaces 4-bit codes by what a table of 16 has for them.
  static Codes look_up(const std::uint8_t* table, Codes codes) { return _mm256_shuffle_epi8(load_twice(table), codes); }

  static Four broadcast_four(const std::int8_t* x) {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(x)));
  }
  static Sums multiply(Codes codes, Four four) { return _mm256_maddubs_epi16(codes, four); }
  // The empty statement keeps the compiler from turning the chain of additions into a tree, whose intermediate results
  // would not fit the registers.
  static void accumulate(Sums& sums, Codes codes, Four four) {
    sums = _mm256_add_epi16(sums, multiply(codes, four));
    asm("" : "+x"(sums));
  }
  // Sums that add up to p[0] + p[1], for each output.
  static Sums sums_of(const std::int16_t* p) {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(p)));
  }
  static Sums add_sums(Sums a, Sums b) { return _mm256_add_epi16(a, b); }
  template <int kFactor>
  static Sums times(Sums a) {
    return _mm256_mullo_epi16(a, _mm256_set1_epi16(kFactor));
  }
  static Int widen(Sums sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }
  static Int widen_scaled(Sums sums, Scales scales) { return _mm256_madd_epi16(sums, scales); }
  // Of inputs in two parts: 16 * high + low.
  static Int widen16(Sums high, Sums low) { return add(_mm256_madd_epi16(high, _mm256_set1_epi16(16)), widen(low)); }

  // Of 16 bytes, those of vector kVector of the outputs.
  template <int kVector>
  static Scales load_unsigned_pairs(const std::uint8_t* p) {
    return unsigned_pairs<kVector>(load_twice(p));
  }
  template <int kVector>
  static Scales load_signed_pairs(const std::uint8_t* p) {
    return _mm256_srai_epi16(_mm256_slli_epi16(unsigned_pairs<kVector>(load_twice(p)), 8), 8);
  }
  template <int kVector>
  static Scales load_low_nibbles(const std::uint8_t* p) {
    return unsigned_pairs<kVector>(field<15, 0>(load_twice(p)));
  }
  template <int kVector>
  static Scales load_high_nibbles(const std::uint8_t* p) {
    return unsigned_pairs<kVector>(field<15, 4>(load_twice(p)));
  }
  static Int load_unsigned(const std::uint8_t* p) { return _mm256_cvtepu8_epi32(load_eight(p)); }
  static Int load_signed(const std::uint8_t* p) { return _mm256_cvtepi8_epi32(load_eight(p)); }
  // float32, float16 or 2^(e - 128).
  template <int kBytes>
  static Float load_scale(const std::uint8_t* p) {
    if constexpr (kBytes == 4) return load(reinterpret_cast<const float*>(p));
    if constexpr (kBytes == 2) return load_half(p);
    return load_half_powers(p);
  }

  static I8 add(I8 a, I8 b) { return _mm256_add_epi32(a, b); }
  static F8 to_float(I8 a) { return _mm256_cvtepi32_ps(a); }

  static I8 load_ints(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  // Volatile: of a function that only prefetches the compiler may decide that it does nothing, and drop its calls.
  static void prefetch(const void* p) { asm volatile("prefetcht0 (%0)" : : "r"(p)); }

 private:
  static __m256i load_twice(const std::uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  template <int kVector>
  static __m256i unsigned_pairs(__m256i bytes) {
    constexpr int k = 8 * kVector;
    return _mm256_shuffle_epi8(
        bytes, _mm256_setr_epi8(k, -1, k, -1, k + 1, -1, k + 1, -1, k + 2, -1, k + 2, -1, k + 3, -1, k + 3, -1, k + 4,
                                -1, k + 4, -1, k + 5, -1, k + 5, -1, k + 6, -1, k + 6, -1, k + 7, -1, k + 7, -1));
  }
  // 2^(e - 128); the two smallest are subnormal.
  static F8 load_half_powers(const std::uint8_t* p) {
    const __m256i e = load_unsigned(p);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1))));
  }
  static __m128i load_eight(const std::uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static __m128i halved(__m256i a) { return _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)); }
};

const Kernels kTable = kernels::make_table<Isa>("avx2");

}  // namespace
}  // namespace avx2

const Kernels* const kAvx2Kernels = &avx2::kTable;

}  // namespace paceline

#else

namespace paceline {
const Kernels* const kAvx2Kernels = nullptr;
}  // namespace paceline

#endif

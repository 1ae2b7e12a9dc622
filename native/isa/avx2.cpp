// The kernels for x86-64 processors with AVX2, FMA and F16C.
#include "isa/table.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

namespace paceline {
namespace avx2 {
namespace {

struct Isa {
  static constexpr bool kHasInstances = true;  // a product loop for each number of rows, its sums in registers

  using F8 = __m256;
  using I8 = __m256i;
  using Codes = __m256i[8];  // register j: columns 4 j to 4 j + 3 of each of the 8 rows

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
  static void store_half(std::uint16_t* p, F8 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }

  static F8 round(F8 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // a * 2^n for whole n in [-126, 127]. A NaN in n is in a as well.
  static F8 scale_by_power_of_two(F8 a, F8 n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int32_t* sum) {
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
      *sum = 0;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_setzero_si256());
      return;
    }
    const __m256 inverse = splat(127.0f / top);
    __m256i q[4];
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(mul(v[i], inverse));
    *sum = sum_of(add(add(q[0], q[1]), add(q[2], q[3])));
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

  static void load_nibbles(const std::uint8_t* bytes, Codes& out) {
    const __m256i low = _mm256_set1_epi8(15);
    for (int j = 0; j < 4; ++j) {
      const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes + 32 * j));
      out[j] = _mm256_and_si256(both, low);
      out[4 + j] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
    }
  }
  static void load_bytes(const std::uint8_t* bytes, Codes& out) {
    for (int j = 0; j < 8; ++j) out[j] = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes + 32 * j));
  }
  // Weights are at most 15, inputs at most 127 in magnitude: eight pair sums stay within 8 * 2 * 15 * 127 = 30480 <
  // 2^15.
  static I8 dot(const Codes& w, const std::int8_t* x) {
    return _mm256_madd_epi16(sum_of_pairs(w, x), _mm256_set1_epi16(1));
  }
  // The sum with codes 16 * high + low. Weights are at most 255, the parts at most 8 in magnitude: eight pair sums stay
  // within 8 * 2 * 255 * 8 = 32640 < 2^15.
  static I8 dot16(const Codes& w, const std::int8_t* high, const std::int8_t* low) {
    return add(_mm256_madd_epi16(sum_of_pairs(w, high), _mm256_set1_epi16(16)),
               _mm256_madd_epi16(sum_of_pairs(w, low), _mm256_set1_epi16(1)));
  }
  // The same sums step by step, for two blocks at once.
  using PairSums = __m256i;
  static PairSums no_sums() { return _mm256_setzero_si256(); }
  static __m256i broadcast_four(const std::int8_t* x) {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(x)));
  }
  // The empty statement keeps the compiler from turning the chain of additions into a tree, whose intermediate results
  // would not fit the registers.
  static void accumulate(PairSums& sums, __m256i codes, __m256i four) {
    sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(codes, four));
    asm("" : "+x"(sums));
  }
  static I8 widen(PairSums sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }
  static I8 widen16(PairSums high, PairSums low) {
    return add(_mm256_madd_epi16(high, _mm256_set1_epi16(16)), _mm256_madd_epi16(low, _mm256_set1_epi16(1)));
  }
  static I8 add(I8 a, I8 b) { return _mm256_add_epi32(a, b); }
  static F8 to_float(I8 a) { return _mm256_cvtepi32_ps(a); }

  static I8 load_ints(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

 private:
  static __m256i pairs(__m256i codes, const std::int8_t* x) {
    std::int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm256_maddubs_epi16(codes, _mm256_set1_epi32(four));
  }
  static __m256i sum_of_pairs(const Codes& w, const std::int8_t* x) {
    __m256i sums = pairs(w[0], x);
    for (int j = 1; j < 8; ++j) sums = _mm256_add_epi16(sums, pairs(w[j], x + 4 * j));
    return sums;
  }
  static std::int32_t sum_of(__m256i a) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 1)));
  }
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

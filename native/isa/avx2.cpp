// The kernels for x86-64 processors with AVX2, FMA and F16C.
#include "isa/table.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

namespace paceline {
namespace avx2 {
namespace {

struct Isa {
  static constexpr bool kHasTiles = true;  // sums of several rows and blocks fit the registers

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

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int16_t* half_sums) {
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
      half_sums[0] = half_sums[1] = 0;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_setzero_si256());
      return;
    }
    const __m256 inverse = splat(127.0f / top);
    __m256i q[4];
    for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(mul(v[i], inverse));
    for (int i = 0; i < 2; ++i) half_sums[i] = static_cast<std::int16_t>(sum_of(add(q[2 * i], q[2 * i + 1])));
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
  // Of every byte of 8 registers, the bits kMask above kShift.
  template <int kMask, int kShift>
  static void load_fields(const std::uint8_t* words, Codes& out) {
    for (int j = 0; j < 8; ++j) out[j] = field<kMask, kShift, 0>(words + 32 * j);
  }
  // The same, put in `out` from bit kLeft on.
  template <int kMask, int kShift, int kLeft>
  static void add_fields(const std::uint8_t* words, Codes& out) {
    for (int j = 0; j < 8; ++j) out[j] = _mm256_or_si256(out[j], field<kMask, kShift, kLeft>(words + 32 * j));
  }
  // Bit j of every byte becomes bit 4 in register j.
  static void add_bit_of_register(const std::uint8_t* bytes, Codes& out) {
    const __m256i bits = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
    const __m256i mask = _mm256_set1_epi8(16);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m256i moved = j < 4 ? _mm256_slli_epi16(bits, 4 - j) : _mm256_srli_epi16(bits, j - 4);
      out[j] = _mm256_or_si256(out[j], _mm256_and_si256(moved, mask));
    }
  }
  // Replaces 4-bit codes by what a table of 16 has for them.
  static void look_up(const std::uint8_t* table, Codes& out) {
    const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
    for (int j = 0; j < 8; ++j) out[j] = _mm256_shuffle_epi8(both, out[j]);
  }

  static I8 load_unsigned(const std::uint8_t* p) { return _mm256_cvtepu8_epi32(load_eight(p)); }
  static I8 load_signed(const std::uint8_t* p) { return _mm256_cvtepi8_epi32(load_eight(p)); }
  // 2^(e - 128); the two smallest are subnormal.
  static F8 load_half_powers(const std::uint8_t* p) {
    const __m256i e = load_unsigned(p);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1))));
  }

  // Sixteen 16-bit values, two a row.
  using Pairs = __m256i;
  static Pairs load_signed_pairs(const std::uint8_t* p) { return _mm256_cvtepi8_epi16(load_sixteen(p)); }
  static Pairs load_low_nibble_pairs(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi16(_mm_and_si128(load_sixteen(p), _mm_set1_epi8(15)));
  }
  static Pairs load_high_nibble_pairs(const std::uint8_t* p) {
    return _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(load_sixteen(p), 4), _mm_set1_epi8(15)));
  }
  template <int kFactor>
  static Pairs scale_pairs(Pairs a) {
    return _mm256_mullo_epi16(a, _mm256_set1_epi16(kFactor));
  }
  // Both values of every row's pair are the first one, then the second one.
  static void split_pairs(Pairs a, Pairs* out) {
    out[0] = _mm256_blend_epi16(a, _mm256_slli_epi32(a, 16), 0xaa);
    out[1] = _mm256_blend_epi16(_mm256_srli_epi32(a, 16), a, 0xaa);
  }
  static Pairs splat_pair(const std::int16_t* p) {
    std::int32_t both;
    __builtin_memcpy(&both, p, 4);
    return _mm256_set1_epi32(both);
  }
  static I8 dot_pairs(Pairs a, Pairs b) { return _mm256_madd_epi16(a, b); }

  static __m256i broadcast_four(const std::int8_t* x) {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(x)));
  }
  // The empty statement keeps the compiler from turning the chain of additions into a tree, whose intermediate results
  // would not fit the registers.
  static void accumulate(Pairs& sums, __m256i codes, __m256i four) {
    sums = _mm256_add_epi16(sums, multiply(codes, four));
    asm("" : "+x"(sums));
  }
  static Pairs multiply(__m256i codes, __m256i four) { return _mm256_maddubs_epi16(codes, four); }
  static I8 widen(Pairs sums) { return dot_pairs(sums, _mm256_set1_epi16(1)); }
  // Of inputs in two parts: 16 * high + low.
  static I8 widen16(Pairs high, Pairs low) { return add(dot_pairs(high, _mm256_set1_epi16(16)), widen(low)); }
  static I8 add(I8 a, I8 b) { return _mm256_add_epi32(a, b); }
  static I8 sub(I8 a, I8 b) { return _mm256_sub_epi32(a, b); }
  static F8 to_float(I8 a) { return _mm256_cvtepi32_ps(a); }

  static I8 load_ints(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  // Volatile: of a function that only prefetches the compiler may decide that it does nothing, and drop its calls.
  static void prefetch(const void* p) { asm volatile("prefetcht0 (%0)" : : "r"(p)); }

 private:
  // One shift serves both directions: what comes from the neighbouring byte is masked away.
  template <int kMask, int kShift, int kLeft>
  static __m256i field(const std::uint8_t* bytes) {
    __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
    if constexpr (kLeft > kShift) v = _mm256_slli_epi16(v, kLeft - kShift);
    if constexpr (kLeft < kShift) v = _mm256_srli_epi16(v, kShift - kLeft);
    return _mm256_and_si256(v, _mm256_set1_epi8(kMask << kLeft));
  }
  static __m128i load_eight(const std::uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static __m128i load_sixteen(const std::uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
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

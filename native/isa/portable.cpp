// The kernels in plain C++, for any processor. Loops of 8 are left to the compiler's vectoriser.
#include "isa/products.hpp"
#include "isa/table.hpp"
#include "support/f16.hpp"

namespace paceline {
namespace portable {
namespace {

struct Isa {
  struct F8 {
    float v[8];
  };
  struct I8 {
    std::int32_t v[8];
  };

  static F8 splat(float x) { return {x, x, x, x, x, x, x, x}; }
  static I8 splat(std::int32_t x) { return {x, x, x, x, x, x, x, x}; }
  static F8 zero() { return splat(0.0f); }

  template <class F>
  static F8 each(F f) {
    F8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = f(i);
    return out;
  }
  static F8 add(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F8 sub(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F8 mul(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F8 div(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  // One rounding where the baseline has an instruction for it, as in every other path; elsewhere two: fused, it would
  // be a library call.
  static F8 fma(const F8& a, const F8& b, const F8& c) {
#if defined(__FP_FAST_FMAF)
    return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
#else
    return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
#endif
  }
  // Both return b where either operand is NaN.
  static F8 max(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F8 min(const F8& a, const F8& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }

  static float sum(const F8& a) {
    return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
  }
  static float maximum(const F8& a) {
    float m = a.v[0];
    for (int i = 1; i < 8; ++i) m = m > a.v[i] ? m : a.v[i];
    return m;
  }

  static F8 load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static void store(float* p, const F8& a) { __builtin_memcpy(p, a.v, sizeof a.v); }
  template <class T>
  static F8 load_half(const T* p) {
    std::uint16_t halves[8];
    __builtin_memcpy(halves, p, sizeof halves);
    return each([&](int i) { return f16_to_f32(halves[i]); });
  }
  static F8 load_bfloat(const std::uint8_t* p) {
    std::uint16_t halves[8];
    __builtin_memcpy(halves, p, sizeof halves);
    return each([&](int i) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(halves[i]) << 16); });
  }
  static void store_half(std::uint16_t* p, const F8& a) {
    for (int i = 0; i < 8; ++i) p[i] = f32_to_f16(a.v[i]);
  }

  // To the nearest integer, ties to even, for |a| < 2^22: adding 1.5 * 2^23 leaves no room for fraction bits.
  static F8 round(const F8& a) {
    return each([&](int i) { return (a.v[i] + 12582912.0f) - 12582912.0f; });
  }
  // a * 2^n for whole n in [-126, 127].
  static F8 scale_by_power_of_two(const F8& a, const F8& n) {
    return each([&](int i) {
      const int exponent = n.v[i] == n.v[i] ? static_cast<int>(n.v[i]) : 0;  // NaN is already in a
      return a.v[i] * std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
    });
  }

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int16_t (*pair_sums)[2]) {
    float largest = 0.0f;
    bool is_finite = true;
    for (int i = 0; i < kGroup; ++i) {
      const float magnitude = __builtin_fabsf(x[i]);
      is_finite = is_finite && magnitude <= 3.4028234663852886e38f;
      largest = magnitude > largest ? magnitude : largest;
    }
    const bool is_zero = !is_finite || largest < 1e-30f;
    const float inverse = is_zero ? 0.0f : 127.0f / largest;
    *scale = is_finite ? (is_zero ? 0.0f : largest / 127.0f) : __builtin_nanf("");
    __builtin_memset(pair_sums, 0, 8);
    for (int i = 0; i < kGroup; ++i) {
      codes[i] = is_zero ? std::int8_t{0} : static_cast<std::int8_t>(__builtin_lrintf(x[i] * inverse));
      std::int16_t& sum = pair_sums[i / 16][i % 4 / 2];
      sum = static_cast<std::int16_t>(sum + codes[i]);
    }
  }

  static void split_codes(const std::int8_t* codes, std::int8_t* high, std::int8_t* low) {
    for (int i = 0; i < kGroup; ++i) {
      low[i] = static_cast<std::int8_t>(((codes[i] + 8) & 15) - 8);
      high[i] = static_cast<std::int8_t>((codes[i] - low[i]) / 16);
    }
  }

  // What products are computed with: vectors of 8 outputs. A row at a time: small code, quick to build.
  static constexpr int kLanes = 8;
  static constexpr int kLargestSum = 32767;
  static constexpr TileSizes kTiles = {1, 1};
  static constexpr TileSizes kSplitTiles = {1, 1};
  static constexpr int kStripVectors = 0;
  static constexpr bool kHasSignedCodes = false;
  using Float = F8;
  using Int = I8;
  struct Codes {  // 4 columns of each output
    std::uint8_t v[32];
  };
  using Four = const std::int8_t*;  // 4 inputs
  struct Sums {                     // two an output
    std::int32_t v[16];
  };
  using Scales = I8;

  static Codes load_codes(const std::uint8_t* p) {
    Codes out;
    __builtin_memcpy(out.v, p, sizeof out.v);
    return out;
  }
  template <class F>
  static Codes each_code(F f) {
    Codes out;
    for (int i = 0; i < 32; ++i) out.v[i] = static_cast<std::uint8_t>(f(i));
    return out;
  }
  template <int kMask, int kShift>
  static Codes field(const Codes& w) {
    return each_code([&](int i) { return w.v[i] >> kShift & kMask; });
  }
  static Codes either(const Codes& a, const Codes& b) {
    return each_code([&](int i) { return a.v[i] | b.v[i]; });
  }
  static Codes look_up(const std::uint8_t* table, const Codes& codes) {
    return each_code([&](int i) { return table[codes.v[i]]; });
  }

  template <class F>
  static Sums each_sum(F f) {
    Sums out;
    for (int i = 0; i < 16; ++i) out.v[i] = f(i);
    return out;
  }
  static Four broadcast_four(const std::int8_t* x) { return x; }
  static Sums multiply(const Codes& w, Four x) {
    return each_sum([&](int i) { return w.v[2 * i] * x[2 * (i % 2)] + w.v[2 * i + 1] * x[2 * (i % 2) + 1]; });
  }
  static void accumulate(Sums& sums, const Codes& codes, Four four) { sums = add_sums(sums, multiply(codes, four)); }
  // Sums that add up to p[0] + p[1], for each output.
  static Sums sums_of(const std::int16_t* p) {
    return each_sum([&](int i) { return p[i % 2]; });
  }
  static Sums add_sums(const Sums& a, const Sums& b) {
    return each_sum([&](int i) { return a.v[i] + b.v[i]; });
  }
  template <int kFactor>
  static Sums times(const Sums& a) {
    return each_sum([&](int i) { return a.v[i] * kFactor; });
  }
  static Int widen(const Sums& sums) {
    return each_int([&](int i) { return sums.v[2 * i] + sums.v[2 * i + 1]; });
  }
  static Int widen_scaled(const Sums& sums, const Scales& scales) {
    return each_int([&](int i) { return (sums.v[2 * i] + sums.v[2 * i + 1]) * scales.v[i]; });
  }
  // Of inputs in two parts: 16 * high + low.
  static Int widen16(const Sums& high, const Sums& low) { return add(widen(times<16>(high)), widen(low)); }

  // Of 16 bytes, those of vector kVector of the outputs.
  template <int kVector>
  static Scales load_unsigned_pairs(const std::uint8_t* p) {
    return load_unsigned(p + 8 * kVector);
  }
  template <int kVector>
  static Scales load_signed_pairs(const std::uint8_t* p) {
    return load_signed(p + 8 * kVector);
  }
  template <int kVector>
  static Scales load_low_nibbles(const std::uint8_t* p) {
    return each_int([&](int i) { return p[8 * kVector + i] & 15; });
  }
  template <int kVector>
  static Scales load_high_nibbles(const std::uint8_t* p) {
    return each_int([&](int i) { return p[8 * kVector + i] >> 4; });
  }
  static Int load_unsigned(const std::uint8_t* p) {
    return each_int([&](int i) { return p[i]; });
  }
  static Int load_signed(const std::uint8_t* p) {
    return each_int([&](int i) { return static_cast<std::int8_t>(p[i]); });
  }
  // float32, float16 or 2^(e - 128), of which the two smallest are subnormal.
  template <int kBytes>
  static Float load_scale(const std::uint8_t* p) {
    if constexpr (kBytes == 2) return load_half(p);
    if constexpr (kBytes == 4) {
      F8 out;
      __builtin_memcpy(out.v, p, sizeof out.v);
      return out;
    }
    return each([&](int i) {
      const std::uint32_t e = p[i];
      return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : (e - 1) << 23);
    });
  }

  template <class F>
  static I8 each_int(F f) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = f(i);
    return out;
  }
  static I8 add(const I8& a, const I8& b) {
    return each_int([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F8 to_float(const I8& a) {
    return each([&](int i) { return static_cast<float>(a.v[i]); });
  }

  // Unsigned addition would be the same bits; the sums of a checksum may wrap.
  static I8 load_ints(const std::uint8_t* p) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = p[4 * i];
    return out;
  }
  static void prefetch(const void* p) { __builtin_prefetch(p); }
};

}  // namespace
}  // namespace portable

const Kernels kPortableKernels = kernels::make_table<portable::Isa>(
    "portable", kernels::multiply<portable::Isa, kernels::multiply_records<portable::Isa>>);

}  // namespace paceline

// The kernels in plain C++, for any processor. Loops of 8 are left to the compiler's vectoriser.
#include "isa/table.hpp"
#include "support/f16.hpp"

namespace paceline {
namespace portable {
namespace {

struct Isa {
  static constexpr bool kHasTiles = false;  // a row at a time: small code, quick to build

  struct F8 {
    float v[8];
  };
  struct I8 {
    std::int32_t v[8];
  };
  using Codes = std::uint8_t[8][32];  // entry [j][4 * row + i] belongs to column 4 * j + i

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
  // Two roundings: a fused operation would be a library call where the baseline has no such instruction.
  static F8 fma(const F8& a, const F8& b, const F8& c) {
    return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
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

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int16_t* half_sums) {
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
    half_sums[0] = half_sums[1] = 0;
    for (int i = 0; i < kGroup; ++i) {
      codes[i] = is_zero ? std::int8_t{0} : static_cast<std::int8_t>(__builtin_lrintf(x[i] * inverse));
      half_sums[i / 16] = static_cast<std::int16_t>(half_sums[i / 16] + codes[i]);
    }
  }

  static void split_codes(const std::int8_t* codes, std::int8_t* high, std::int8_t* low) {
    for (int i = 0; i < kGroup; ++i) {
      low[i] = static_cast<std::int8_t>(((codes[i] + 8) & 15) - 8);
      high[i] = static_cast<std::int8_t>((codes[i] - low[i]) / 16);
    }
  }

  static void load_nibbles(const std::uint8_t* bytes, Codes& out) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 32; ++i) {
        out[j][i] = bytes[32 * j + i] & 15;
        out[4 + j][i] = bytes[32 * j + i] >> 4;
      }
    }
  }
  static void load_bytes(const std::uint8_t* bytes, Codes& out) { __builtin_memcpy(out, bytes, sizeof out); }
  template <int kMask, int kShift>
  static void load_fields(const std::uint8_t* words, Codes& out) {
    for (int j = 0; j < 8; ++j) {
      for (int i = 0; i < 32; ++i) out[j][i] = words[32 * j + i] >> kShift & kMask;
    }
  }
  template <int kMask, int kShift, int kLeft>
  static void add_fields(const std::uint8_t* words, Codes& out) {
    for (int j = 0; j < 8; ++j) {
      for (int i = 0; i < 32; ++i) {
        out[j][i] = static_cast<std::uint8_t>(out[j][i] | (words[32 * j + i] >> kShift & kMask) << kLeft);
      }
    }
  }
  // Bit j of every byte becomes bit 4 in register j.
  static void add_bit_of_register(const std::uint8_t* bytes, Codes& out) {
    for (int j = 0; j < 8; ++j) {
      for (int i = 0; i < 32; ++i) out[j][i] = static_cast<std::uint8_t>(out[j][i] | (bytes[i] >> j & 1) << 4);
    }
  }
  static void look_up(const std::uint8_t* table, Codes& out) {
    for (auto& codes : out) {
      for (auto& code : codes) code = table[code];
    }
  }

  static I8 load_unsigned(const std::uint8_t* p) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = p[i];
    return out;
  }
  static I8 load_signed(const std::uint8_t* p) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = static_cast<std::int8_t>(p[i]);
    return out;
  }
  // 2^(e - 128); the two smallest are subnormal.
  static F8 load_half_powers(const std::uint8_t* p) {
    return each([&](int i) {
      const std::uint32_t e = p[i];
      return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : (e - 1) << 23);
    });
  }

  // Sixteen 16-bit values, two a row.
  struct Pairs {
    std::int32_t v[16];
  };
  template <class F>
  static Pairs each_of_pairs(F f) {
    Pairs out;
    for (int i = 0; i < 16; ++i) out.v[i] = f(i);
    return out;
  }
  static Pairs load_signed_pairs(const std::uint8_t* p) {
    return each_of_pairs([&](int i) { return static_cast<std::int8_t>(p[i]); });
  }
  static Pairs load_low_nibble_pairs(const std::uint8_t* p) {
    return each_of_pairs([&](int i) { return p[i] & 15; });
  }
  static Pairs load_high_nibble_pairs(const std::uint8_t* p) {
    return each_of_pairs([&](int i) { return p[i] >> 4; });
  }
  template <int kFactor>
  static Pairs scale_pairs(const Pairs& a) {
    return each_of_pairs([&](int i) { return a.v[i] * kFactor; });
  }
  // Both values of every row's pair are the first one, then the second one.
  static void split_pairs(const Pairs& a, Pairs* out) {
    for (int half = 0; half < 2; ++half) out[half] = each_of_pairs([&](int i) { return a.v[i / 2 * 2 + half]; });
  }
  static Pairs splat_pair(const std::int16_t* p) {
    return each_of_pairs([&](int i) { return p[i % 2]; });
  }
  static I8 dot_pairs(const Pairs& a, const Pairs& b) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = a.v[2 * i] * b.v[2 * i] + a.v[2 * i + 1] * b.v[2 * i + 1];
    return out;
  }

  static const std::int8_t* broadcast_four(const std::int8_t* x) { return x; }
  static Pairs multiply(const std::uint8_t* codes, const std::int8_t* four) {
    return each_of_pairs(
        [&](int i) { return codes[2 * i] * four[2 * (i % 2)] + codes[2 * i + 1] * four[2 * (i % 2) + 1]; });
  }
  static void accumulate(Pairs& sums, const std::uint8_t* codes, const std::int8_t* four) {
    const Pairs products = multiply(codes, four);
    for (int i = 0; i < 16; ++i) sums.v[i] += products.v[i];
  }
  static I8 widen(const Pairs& sums) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = sums.v[2 * i] + sums.v[2 * i + 1];
    return out;
  }
  // Of inputs in two parts: 16 * high + low.
  static I8 widen16(const Pairs& high, const Pairs& low) {
    const I8 h = widen(high);
    I8 out = widen(low);
    for (int i = 0; i < 8; ++i) out.v[i] += 16 * h.v[i];
    return out;
  }
  static I8 add(const I8& a, const I8& b) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = a.v[i] + b.v[i];
    return out;
  }
  static I8 sub(const I8& a, const I8& b) {
    I8 out;
    for (int i = 0; i < 8; ++i) out.v[i] = a.v[i] - b.v[i];
    return out;
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

const Kernels kPortableKernels = kernels::make_table<portable::Isa>("portable");

}  // namespace paceline

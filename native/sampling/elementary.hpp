// The committed logarithm, exponential and hash, operation by operation as paceline/acceptance/elementary.py and
// noise.py have them, which say why. No operation may be fused or reordered.
//
// Internal linkage throughout: units compiled for different processors include this.
#pragma once

#include <cstdint>

namespace paceline {

inline constexpr double kLn2High = 0x1.62e42fee00000p-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr int kMantissaBits = 52;
inline constexpr int kExponentBias = 1023;

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t kMixFactors[] = {0xbf58476d1ce4e5b9, 0x94d049bb133111eb};

// Of a normal positive finite number.
static inline double committed_log(double x) {
  constexpr std::int64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  const auto bits = __builtin_bit_cast(std::int64_t, x);
  const std::int64_t exponent = (bits - kSqrtHalfBits) >> kMantissaBits;
  const double f = __builtin_bit_cast(double, bits - exponent * (std::int64_t{1} << kMantissaBits)) - 1.0;
  const auto e = static_cast<double>(exponent);
  const double s = f / (2.0 + f);
  const double w = s * s;
  double series = 2.0 / 21;
  for (int k = 9; k > 0; --k) series = series * w + 2.0 / (2 * k + 1);
  return e * kLn2High - ((s * (f - w * series) - e * kLn2Low) - f);
}

// Of a number in [-700, 700]: what is less is the caller's to treat as 0.
static inline double committed_exp(double x) {
  constexpr double kRounder = 0x1.8p52;  // added, it leaves no room for fraction bits
  const double shifted = x * kLog2E + kRounder;
  const double n = shifted - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  const double w = r * r;
  double even = 1.0 / 479001600;
  double odd = 1.0 / 6227020800;
  constexpr double kEven[] = {1.0 / 3628800, 1.0 / 40320, 1.0 / 720, 1.0 / 24, 1.0 / 2, 1.0};
  constexpr double kOdd[] = {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1.0};
  for (int i = 0; i < 6; ++i) {
    even = even * w + kEven[i];
    odd = odd * w + kOdd[i];
  }
  const double y = even + r * odd;
  const auto exponent = __builtin_bit_cast(std::uint64_t, shifted) - __builtin_bit_cast(std::uint64_t, kRounder);
  return y * __builtin_bit_cast(double, (exponent + kExponentBias) << kMantissaBits);
}

// The words of a row's key.
struct NoiseKey {
  std::uint64_t a;
  std::uint64_t b;
};

static inline std::uint64_t hash_token(const NoiseKey& key, std::uint32_t token) {
  std::uint64_t x = token * kGolden + key.a;
  x = ((x ^ x >> 30) * kMixFactors[0]) ^ key.b;
  x = (x ^ x >> 27) * kMixFactors[1];
  return x ^ x >> 31;
}

}  // namespace paceline

// The parts of sampling that look at every number of a row.
#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"
#include "sampling/elementary.hpp"

namespace paceline::kernels {

// The highest number of each block of kScanBlock, -inf where there is none; whether all `count` are finite.
template <class Isa>
bool scan_row(const float* values, std::size_t count, float* highest) {
  constexpr int kChains = 4;
  static_assert(kScanBlock % (8 * kChains) == 0);
  using F8 = typename Isa::F8;
  const F8 zero = Isa::zero();
  F8 zeros[kChains] = {zero, zero, zero, zero};  // NaN where a number is not finite: times 0, it is no 0
  float rest = 0.0f;
  for (std::size_t begin = 0; begin < count; begin += kScanBlock) {
    const float* block = values + begin;
    if (begin + kScanBlock <= count) {
      F8 tops[kChains];
      for (int c = 0; c < kChains; ++c) {
        tops[c] = Isa::load(block + 8 * c);
        zeros[c] = Isa::fma(tops[c], zero, zeros[c]);
        for (int i = 8 * (c + kChains); i < kScanBlock; i += 8 * kChains) {
          const F8 v = Isa::load(block + i);
          tops[c] = Isa::max(v, tops[c]);
          zeros[c] = Isa::fma(v, zero, zeros[c]);
        }
      }
      *highest++ = Isa::maximum(Isa::max(Isa::max(tops[0], tops[1]), Isa::max(tops[2], tops[3])));
    } else {
      float top = -__builtin_inff();
      for (std::size_t i = begin; i < count; ++i) {
        top = values[i] > top ? values[i] : top;
        rest += values[i] * 0.0f;
      }
      *highest++ = top;
    }
  }
  const float all = Isa::sum(Isa::add(Isa::add(zeros[0], zeros[1]), Isa::add(zeros[2], zeros[3]))) + rest;
  return all == 0.0f;
}

// round(2^42 exp(z - top)) with z = value / temperature; exactly the numbers of the canonical sampler.
template <class Isa>
[[gnu::always_inline]] inline std::int64_t weigh(const Weighing& w, float value) {
  constexpr double kRounder = 0x1.8p52;
  double x = static_cast<double>(value) / w.temperature - w.top;
  x = x > w.lowest ? x : w.lowest;
  const double rounded = committed_exp(x) * 0x1p42 + kRounder;
  return __builtin_bit_cast(std::int64_t, rounded) - __builtin_bit_cast(std::int64_t, kRounder);
}

template <class Isa>
std::int64_t weigh_all(const Weighing& given, const float* values, std::size_t count, std::int64_t* weights) {
  const Weighing w = given;  // a copy: nothing written here can change it
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t weight = weigh<Isa>(w, values[i]);
    weights[i] = weight;
    sum += weight;
  }
  return sum;
}

// With d = (number - top) / temperature, |d| at most 31 where it counts, the roundings of d and the exponential's error
// come to 6e-6 of a mass, those of 32 additions in a lane and of the lanes to 3e-6; what has less than 2^-43 of the
// highest's mass weighs nothing, 2^20 times. The clamp is 1 from the value upwards and 0 from 1e-30 below it.
template <class Isa>
Masses estimate_masses(const Prospect& prospect, const float* values, std::size_t count) {
  constexpr int kChains = 4;
  constexpr std::size_t kPart = 8 * kChains * 32;
  using F8 = typename Isa::F8;
  const F8 zero = Isa::zero(), one = Isa::splat(1.0f), steep = Isa::splat(1e30f);
  const F8 value = Isa::splat(prospect.value), top = Isa::splat(prospect.top);
  const F8 inverse_temperature = Isa::splat(prospect.inverse_temperature);
  const auto add = [&](F8 number, F8& above, F8& total) __attribute__((always_inline)) {
    const F8 mass = exponential<Isa>(Isa::mul(Isa::sub(number, top), inverse_temperature));
    const F8 share = Isa::min(one, Isa::max(zero, Isa::fma(Isa::sub(number, value), steep, one)));
    above = Isa::fma(mass, share, above);
    total = Isa::add(total, mass);
  };
  Masses masses{0, 0};
  for (std::size_t begin = 0; begin < count; begin += kPart) {
    const std::size_t end = begin + kPart < count ? begin + kPart : count;
    F8 above[kChains] = {zero, zero, zero, zero}, total[kChains] = {zero, zero, zero, zero};
    std::size_t i = begin;
    for (; i + 8 * kChains <= end; i += 8 * kChains) {
      for (int c = 0; c < kChains; ++c) add(Isa::load(values + i + 8 * c), above[c], total[c]);
    }
    for (; i < end; i += 8) {
      float rest[8];
      for (std::size_t j = 0; j < 8; ++j) rest[j] = i + j < end ? values[i + j] : -__builtin_inff();
      add(Isa::load(rest), above[0], total[0]);
    }
    masses.above += Isa::sum(Isa::add(Isa::add(above[0], above[1]), Isa::add(above[2], above[3])));
    masses.total += Isa::sum(Isa::add(Isa::add(total[0], total[1]), Isa::add(total[2], total[3])));
  }
  return masses;
}

// With d = (value - top) / temperature: d + g >= limit is possible only where d + bound > limit - kContenderMargin, for
// g = -log(-log u) <= -log(1 - u), and log2 of a float of exponent e and mantissa 1 + f is at least e + f, which is its
// bits read as an integer. The upper bits of the hash alone give a number below 1 - u. Roundings in float32 are below
// 1e-4 wherever d is high enough to matter; where d is lower, so is what it is rounded to.
template <class Isa>
[[gnu::always_inline]] inline bool is_contender(const Contest& c, std::uint32_t token, float value) {
  const auto rest = static_cast<std::int32_t>(~hash_token(c.key, token) >> 33);
  const auto bits = __builtin_bit_cast(std::int32_t, static_cast<float>(rest));
  const float bound = kBoundAtZero - static_cast<float>(bits) * kBoundOfBit;
  return (value - c.top) * c.inverse_temperature + bound > c.limit - kContenderMargin;
}

template <class Isa>
std::size_t find_contenders(const Contest& c, const float* values, const std::int32_t* ids, std::int32_t first,
                            std::size_t count, std::int32_t* found) {
  constexpr std::size_t kBlock = 32;
  std::size_t num_found = 0;
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    std::int32_t is_any = 0;
    for (std::size_t j = 0; j < kBlock; ++j) {
      is_any |= is_contender<Isa>(c, static_cast<std::uint32_t>(ids[i + j] + first), values[i + j]) ? 1 : 0;
    }
    if (is_any == 0) continue;
    for (std::size_t j = i; j < i + kBlock; ++j) {
      found[num_found] = static_cast<std::int32_t>(j);
      num_found += is_contender<Isa>(c, static_cast<std::uint32_t>(ids[j] + first), values[j]) ? 1 : 0;
    }
  }
  for (; i < count; ++i) {
    found[num_found] = static_cast<std::int32_t>(i);
    num_found += is_contender<Isa>(c, static_cast<std::uint32_t>(ids[i] + first), values[i]) ? 1 : 0;
  }
  return num_found;
}

}  // namespace paceline::kernels

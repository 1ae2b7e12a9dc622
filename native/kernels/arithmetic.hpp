// Multiplying and adding as fast as it goes: the other limit that products and attention are measured against.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/unroll.hpp"

namespace paceline::kernels {

// The inner scheme of a product with everything in registers: as many independent sums as they hold, each the product
// of another pair of codes and inputs. Widening, scales and the reading of weights are left out, so no product is
// faster. Sums of `portable` stay below 2^31 for 2^24 steps of codes up to 15 and inputs of magnitude 1.
template <class Isa>
std::uint64_t multiply_codes(const std::uint8_t* data, std::size_t num_steps) {
  constexpr int kNumCodes = Isa::kHasTiles ? 4 : 1;
  constexpr int kNumInputs = Isa::kHasTiles ? 2 : 1;
  constexpr int kRounds = kCodeProducts / (kNumCodes * kNumInputs);
  const auto* inputs = reinterpret_cast<const std::int8_t*>(data + 8 * kGroup);
  typename Isa::Codes codes;
  Isa::load_bytes(data, codes);
  typename Isa::Pairs sums[kNumInputs][kNumCodes];
  for (auto& row : sums) {
    for (auto& sum : row) sum = Isa::multiply(codes[0], Isa::broadcast_four(inputs));
  }
  for (std::size_t step = 0; step < num_steps; ++step) {
    unroll<kRounds>([&]<int round>(Index<round>) __attribute__((always_inline)) {
      unroll<kNumInputs>([&]<int i>(Index<i>) __attribute__((always_inline)) {
        const auto four = Isa::broadcast_four(inputs + 4 * ((step + round + i) % 8));
        unroll<kNumCodes>([&]<int c>(Index<c>)
                              __attribute__((always_inline)) { Isa::accumulate(sums[i][c], codes[c], four); });
      });
    });
  }
  std::uint64_t checksum = 0;
  for (auto& row : sums) {
    for (auto& sum : row) checksum += static_cast<std::uint64_t>(Isa::sum(Isa::to_float(Isa::widen(sum))));
  }
  return checksum;
}

// float32 multiply-adds in independent chains: a unit takes four or five cycles for one, and there are two of them.
template <class Isa>
std::uint64_t multiply_floats(const float* data, std::size_t num_steps) {
  const auto factor = Isa::load(data);
  const auto summand = Isa::load(data + 8);
  typename Isa::F8 chains[kFloatChains];
  for (auto& chain : chains) chain = Isa::zero();
  for (std::size_t step = 0; step < num_steps; ++step) {
    unroll<kFloatChains>([&]<int i>(Index<i>)
                             __attribute__((always_inline)) { chains[i] = Isa::fma(chains[i], factor, summand); });
  }
  std::uint64_t checksum = 0;
  for (auto& chain : chains) checksum += static_cast<std::uint64_t>(Isa::sum(chain));
  return checksum;
}

}  // namespace paceline::kernels

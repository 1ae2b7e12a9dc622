// Multiplying and adding as fast as it goes: the other limit that products and attention are measured against.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/unroll.hpp"

namespace paceline::kernels {

// The inner scheme of a product with everything in registers: as many independent sums as they hold, each of another
// pair of codes and inputs. Widening, scales and unpacking are left out, so no product is faster. With codes up to 15
// and inputs of magnitude 1, sums in 32 bits hold for 2^22 steps.
template <class V>
std::uint64_t multiply_codes(const std::uint8_t* data, std::size_t num_steps) {
  constexpr int kNumCodes = V::kTiles.alone > 1 ? 4 : 1;
  constexpr int kNumInputs = V::kTiles.alone > 1 ? 2 : 1;
  constexpr int kNumSums = kNumCodes * kNumInputs;
  constexpr int kProducts = kCodeMultiplyAdds / (4 * V::kLanes);
  const auto* inputs = reinterpret_cast<const std::int8_t*>(data + 8 * kGroup);
  typename V::Codes codes[kNumCodes];
  typename V::Sums sums[kNumSums];
  unroll<kNumCodes>([&]<int i>(Index<i>)
                        __attribute__((always_inline)) { codes[i] = V::load_codes(data + 4 * V::kLanes * i); });
  unroll<kNumSums>([&]<int i>(Index<i>) __attribute__((always_inline)) {
    sums[i] = V::multiply(codes[i % kNumCodes], V::broadcast_four(inputs));
  });
  for (std::size_t step = 0; step < num_steps; ++step) {
    unroll<kProducts / kNumCodes>([&]<int i>(Index<i>) __attribute__((always_inline)) {
      const auto four = V::broadcast_four(inputs + 4 * ((step + i) % 8));
      unroll<kNumCodes>([&]<int c>(Index<c>) __attribute__((always_inline)) {
        V::accumulate(sums[i % kNumInputs * kNumCodes + c], codes[c], four);
      });
    });
  }
  std::uint64_t checksum = 0;
  unroll<kNumSums>([&]<int i>(Index<i>) __attribute__((always_inline)) {
    float values[V::kLanes];
    V::store(values, V::to_float(V::widen(sums[i])));
    checksum += static_cast<std::uint64_t>(values[0]);
  });
  return checksum;
}

// float32 multiply-adds in independent chains: a unit takes four or five cycles for one, and there are two of them. The
// chains begin with other values, for equal ones would be computed once.
template <class Isa>
std::uint64_t multiply_floats(const float* data, std::size_t num_steps) {
  const auto factor = Isa::load(data);
  const auto summand = Isa::load(data + 8);
  typename Isa::F8 chains[kFloatChains];
  unroll<kFloatChains>([&]<int i>(Index<i>) __attribute__((always_inline)) { chains[i] = Isa::load(data + 16 + i); });
  for (std::size_t step = 0; step < num_steps; ++step) {
    unroll<kFloatChains>([&]<int i>(Index<i>)
                             __attribute__((always_inline)) { chains[i] = Isa::fma(chains[i], factor, summand); });
  }
  std::uint64_t checksum = 0;
  unroll<kFloatChains>([&]<int i>(Index<i>) __attribute__((always_inline)) {
    checksum += static_cast<std::uint64_t>(Isa::sum(chains[i]));
  });
  return checksum;
}

}  // namespace paceline::kernels

// The noise of sampling, token by token; paceline/acceptance/noise.py says what it is.
#pragma once

#include <initializer_list>

#include "sampling/elementary.hpp"

namespace paceline {

// The key of a row: what every number drawn for it depends on, beside the token.
inline NoiseKey make_noise_key(std::uint64_t seed, std::uint64_t position, std::uint64_t stream) {
  NoiseKey key{0x243f6a8885a308d3, 0x13198a2e03707344};
  for (const std::uint64_t word : {seed, position, stream}) {
    for (std::uint64_t* state : {&key.a, &key.b}) {
      std::uint64_t x = (*state ^ word) + kGolden;
      x = (x ^ x >> 30) * kMixFactors[0];
      x = (x ^ x >> 27) * kMixFactors[1];
      *state = x ^ x >> 31;
    }
  }
  return key;
}

inline double gumbel(const NoiseKey& key, std::uint32_t token) {
  const std::uint64_t n = hash_token(key, token) >> 11;
  const double u = (n == 0 ? 0.5 : static_cast<double>(n)) * 0x1p-53;
  return -committed_log(-committed_log(u));
}

}  // namespace paceline

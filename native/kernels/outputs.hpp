// The outputs of a block as vectors.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// Vectors of V in the 16 outputs of a block.
template <class V>
inline constexpr int kVectors = kBlockRows / V::kLanes;

// Stores a row's vectors; of the last block only the outputs that there are.
template <class V>
inline void store_outputs(const typename V::Float* vectors, int count, float* out) {
  if (count >= kBlockRows) {
    for (int b = 0; b < kVectors<V>; ++b) V::store(out + V::kLanes * b, vectors[b]);
    return;
  }
  float values[kBlockRows];
  for (int b = 0; b < kVectors<V>; ++b) V::store(values + V::kLanes * b, vectors[b]);
  for (int i = 0; i < count; ++i) out[i] = values[i];
}

}  // namespace paceline::kernels

// Products with float32, float16 and bfloat16 weights, in float32 on the unquantised activations.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/outputs.hpp"

namespace paceline::kernels {

inline constexpr int kFloatRows = 4;  // rows of a pass: their sums must stay in registers

template <class V, WeightType kType>
inline typename V::Float load_weights(const std::uint8_t* block, std::size_t index) {
  if constexpr (kType == WeightType::kF16) return V::load_half(block + 2 * index);
  if constexpr (kType == WeightType::kBF16) return V::load_bfloat(block + 2 * index);
  return V::load(reinterpret_cast<const float*>(block) + index);
}

// Even and odd columns are added apart, and the two sums at the end: independent chains, one fixed order.
template <class V, WeightType kType, int M>
inline void multiply_float_block(const Product& p, const std::uint8_t* block, int row, int num_outputs, float* out) {
  constexpr int B = kVectors<V>;
  typename V::Float acc[M][B][2];
  const float* x[M];
  for (int m = 0; m < M; ++m) {
    x[m] = p.inputs.values + static_cast<std::size_t>(row + m) * p.inputs.columns;
    for (auto& vector : acc[m]) vector[0] = vector[1] = V::zero();
  }
  for (int k = 0; k < p.weights.columns; ++k) {
    for (int b = 0; b < B; ++b) {
      const auto w = load_weights<V, kType>(block, static_cast<std::size_t>(kBlockRows) * k + V::kLanes * b);
      for (int m = 0; m < M; ++m) acc[m][b][k & 1] = V::fma(w, V::splat(x[m][k]), acc[m][b][k & 1]);
    }
  }
  for (int m = 0; m < M; ++m) {
    typename V::Float sums[B];
    for (int b = 0; b < B; ++b) sums[b] = V::add(acc[m][b][0], acc[m][b][1]);
    store_outputs<V>(sums, num_outputs, out + m * p.out_stride);
  }
}

template <class V, WeightType kType, int M>
inline void multiply_float_rows(const Product& p, const std::uint8_t* block, int row, int count, int num_outputs,
                                float* out) {
  if constexpr (M > 1) {
    if (count < M) return multiply_float_rows<V, kType, M - 1>(p, block, row, count, num_outputs, out);
  }
  multiply_float_block<V, kType, M>(p, block, row, num_outputs, out);
}

template <class V, WeightType kType>
inline void multiply_float(const Product& p, const Blocks& blocks) {
  for (int stream = 0; stream < blocks.num_streams; ++stream) {
    for (int b = blocks.first + stream * blocks.stride; b < blocks.last + stream * blocks.stride; ++b) {
      const std::uint8_t* block = p.weights.data + b * p.weights.block_bytes;
      for (int row = 0; row < p.num_rows; row += kFloatRows) {
        const int left = p.num_rows - row;
        multiply_float_rows<V, kType, kFloatRows>(p, block, row, left < kFloatRows ? left : kFloatRows,
                                                  p.num_outputs - b * kBlockRows,
                                                  p.out + row * p.out_stride + b * kBlockRows);
      }
    }
  }
}

}  // namespace paceline::kernels

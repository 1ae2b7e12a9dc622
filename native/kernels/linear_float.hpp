// Products with float32, float16 and bfloat16 weights, in float32 on the unquantised activations.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

inline constexpr int kFloatRows = 4;  // rows of a pass: 4 accumulators each must stay in registers

template <class Isa, WeightType kType>
inline typename Isa::F8 load_weights(const std::uint8_t* block, int column) {
  if constexpr (kType == WeightType::kF16) return Isa::load_half(block + std::size_t{2} * kBlockRows * column);
  if constexpr (kType == WeightType::kBF16) return Isa::load_bfloat(block + std::size_t{2} * kBlockRows * column);
  return Isa::load(reinterpret_cast<const float*>(block) + std::size_t{kBlockRows} * column);
}

// Column k is added to partial sum k mod 4, and the four are added pairwise at the end: four independent chains, one
// fixed order.
template <class Isa, WeightType kType, int M>
inline void multiply_float_block(const Product& p, const std::uint8_t* block, int row, float* out) {
  typename Isa::F8 acc[M][4];
  const float* x[M];
  for (int m = 0; m < M; ++m) {
    x[m] = p.inputs.values + static_cast<std::size_t>(row + m) * p.inputs.columns;
    for (auto& part : acc[m]) part = Isa::zero();
  }
  for (int k = 0; k < p.weights.columns; ++k) {
    const auto w = load_weights<Isa, kType>(block, k);
    for (int m = 0; m < M; ++m) acc[m][k & 3] = Isa::fma(w, Isa::splat(x[m][k]), acc[m][k & 3]);
  }
  for (int m = 0; m < M; ++m) {
    Isa::store(out + m * p.out_stride, Isa::add(Isa::add(acc[m][0], acc[m][1]), Isa::add(acc[m][2], acc[m][3])));
  }
}

template <class Isa, WeightType kType, int M>
inline void multiply_float_rows(const Product& p, const std::uint8_t* block, int row, int count, float* out) {
  if constexpr (M > 1) {
    if (count < M) return multiply_float_rows<Isa, kType, M - 1>(p, block, row, count, out);
  }
  multiply_float_block<Isa, kType, M>(p, block, row, out);
}

template <class Isa, WeightType kType>
inline void multiply_float(const Product& p, int first, int last) {
  for (int b = first; b < last; ++b) {
    const std::uint8_t* block = p.weights.data + b * p.weights.block_bytes;
    for (int row = 0; row < p.num_rows; row += kFloatRows) {
      const int left = p.num_rows - row;
      multiply_float_rows<Isa, kType, kFloatRows>(p, block, row, left < kFloatRows ? left : kFloatRows,
                                                  p.out + row * p.out_stride + b * kBlockRows);
    }
  }
}

}  // namespace paceline::kernels

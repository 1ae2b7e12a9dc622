// Products with quantised weights: each group of a block is unpacked once and used for all rows of the pass.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// One group's integer sums for `M` rows: sum over columns of code * input code, exact, with the type's offset removed.
template <class Isa, WeightType kType, int M>
inline void group_sums(const std::uint8_t* codes, const std::int8_t* const (&x)[M], const std::int32_t* const (&sums)[M],
                       int group, typename Isa::I8 (&out)[M]) {
  typename Isa::Codes plane;
  Isa::unpack(codes, plane);
  for (int m = 0; m < M; ++m) out[m] = Isa::dot(plane, x[m] + group * kGroup);
  if constexpr (kType == WeightType::kQ8_0) {
    Isa::unpack(codes + kPlaneBytes, plane);
    for (int m = 0; m < M; ++m) out[m] = Isa::add(out[m], Isa::times16(Isa::dot(plane, x[m] + group * kGroup)));
  }
  constexpr std::int32_t kOffset = kType == WeightType::kQ8_0 ? 128 : kType == WeightType::kQ4_0 ? 8 : 0;
  if constexpr (kOffset != 0) {
    for (int m = 0; m < M; ++m) out[m] = Isa::add(out[m], Isa::splat(-kOffset * sums[m][group]));
  }
}

// One block (8 outputs) for rows [row, row + M). Each output is, group by group, acc = fma(sum, d * scale, acc), then for
// Q4_1 acc = fma(m, scale * sum of codes, acc): the same operations in the same order for every M.
template <class Isa, WeightType kType, int M>
inline void multiply_block(const Product& p, const std::uint8_t* block, int row, float* out) {
  const int groups = num_groups(p.weights);
  const std::int8_t* x[M];
  const float* scales[M];
  const float* scaled_sums[M];
  const std::int32_t* sums[M];
  typename Isa::F8 acc[M];
  for (int m = 0; m < M; ++m) {
    const std::size_t r = row + m;
    x[m] = p.inputs.codes + r * p.inputs.columns;
    scales[m] = p.inputs.scales + r * groups;
    scaled_sums[m] = p.inputs.scaled_sums + r * groups;
    sums[m] = p.inputs.sums + r * groups;
    acc[m] = Isa::zero();
  }
  const std::uint8_t* d = block + scale_offset(p.weights);
  const std::uint8_t* minima = block + minimum_offset(p.weights);
  constexpr std::size_t kCodeBytes = code_bytes(kType);
  for (int group = 0; group < groups; ++group, block += kCodeBytes) {
    for (std::size_t line = 0; line < kCodeBytes; line += 64) Isa::prefetch(block + 2048 + line);
    typename Isa::I8 sum[M];
    group_sums<Isa, kType, M>(block, x, sums, group, sum);
    const auto scale = Isa::load_half(d + 2 * kBlockRows * group);
    for (int m = 0; m < M; ++m) {
      acc[m] = Isa::fma(Isa::to_float(sum[m]), Isa::mul(scale, Isa::splat(scales[m][group])), acc[m]);
    }
    if constexpr (kType == WeightType::kQ4_1) {
      const auto minimum = Isa::load_half(minima + 2 * kBlockRows * group);
      for (int m = 0; m < M; ++m) acc[m] = Isa::fma(minimum, Isa::splat(scaled_sums[m][group]), acc[m]);
    }
  }
  for (int m = 0; m < M; ++m) Isa::store(out + m * p.out_stride, acc[m]);
}

// Blocks [first, last) for rows [row, row + count), count <= M: picks the instance with exactly `count` rows.
template <class Isa, WeightType kType, int M>
inline void multiply_rows(const Product& p, int first, int last, int row, int count) {
  if constexpr (M > 1) {
    if (count < M) return multiply_rows<Isa, kType, M - 1>(p, first, last, row, count);
  }
  for (int b = first; b < last; ++b) {
    multiply_block<Isa, kType, M>(p, p.weights.data + b * p.weights.block_bytes, row,
                                  p.out + row * p.out_stride + b * kBlockRows);
  }
}

template <class Isa, WeightType kType>
inline void multiply_quantized(const Product& p, int first, int last) {
  for (int row = 0; row < p.num_rows; row += kMaxRows) {
    const int left = p.num_rows - row;
    multiply_rows<Isa, kType, kMaxRows>(p, first, last, row, left < kMaxRows ? left : kMaxRows);
  }
}

}  // namespace paceline::kernels

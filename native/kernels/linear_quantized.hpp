// Products with quantised weights: each group of a block is unpacked once and used for all rows of the pass.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// How far ahead of their use weights are asked for, in bytes: one block after the other is read, as one stream.
inline constexpr std::size_t kPrefetchDistance = 2048;

// What a pass reads of row m's inputs.
struct InputRow {
  const std::int8_t* codes;
  const std::int8_t* high;
  const std::int8_t* low;
  const float* scales;
  const std::int32_t* sums;
  const float* scaled_sums;
};

static inline InputRow input_row(const Activations& x, std::size_t row) {
  const std::size_t values = row * x.columns;
  const std::size_t groups = row * (x.columns / kGroup);
  return {x.codes + values,  x.high + values,  x.low + values,
          x.scales + groups, x.sums + groups, x.scaled_sums + groups};
}

// One group's integer sums for M rows: over its columns, weight code * input code, exact, the type's offset removed.
template <class Isa, WeightType kType, int M>
inline void group_sums(const std::uint8_t* weights, const InputRow (&x)[M], int group, typename Isa::I8 (&out)[M]) {
  typename Isa::Codes codes;
  const int first = group * kGroup;
  if constexpr (kType == WeightType::kQ8_0) {
    Isa::load_bytes(weights, codes);
    for (int m = 0; m < M; ++m) {
      out[m] = Isa::add(Isa::dot16(codes, x[m].high + first, x[m].low + first), Isa::splat(-128 * x[m].sums[group]));
    }
  } else {
    Isa::load_nibbles(weights, codes);
    for (int m = 0; m < M; ++m) {
      out[m] = Isa::dot(codes, x[m].codes + first);
      if constexpr (kType == WeightType::kQ4_0) out[m] = Isa::add(out[m], Isa::splat(-8 * x[m].sums[group]));
    }
  }
}

// One block (8 outputs) for rows [row, row + M). Each output is, group by group, acc = fma(sum, d * scale, acc), then for
// Q4_1 acc = fma(m, scale * sum of codes, acc): the same operations in the same order for every M.
template <class Isa, WeightType kType, int M>
inline void multiply_block(const Product& p, const std::uint8_t* block, int row, float* out) {
  InputRow x[M];
  typename Isa::F8 acc[M];
  for (int m = 0; m < M; ++m) {
    x[m] = input_row(p.inputs, row + m);
    acc[m] = Isa::zero();
  }
  const std::uint8_t* d = block;
  const std::uint8_t* minima = block + minimum_offset(p.weights);
  const std::uint8_t* ahead = block + kPrefetchDistance;
  block += code_offset(p.weights);
  constexpr std::size_t kCodeBytes = code_bytes(kType);
  constexpr std::size_t kGroupBytes = kCodeBytes + 2 * kBlockRows * (kType == WeightType::kQ4_1 ? 2 : 1);
  for (int group = 0; group < num_groups(p.weights); ++group, block += kCodeBytes) {
    for (std::size_t line = 0; line < kGroupBytes; line += 64) Isa::prefetch(ahead + line);
    ahead += kGroupBytes;
    typename Isa::I8 sum[M];
    group_sums<Isa, kType, M>(block, x, group, sum);
    const auto scale = Isa::load_half(d + 2 * kBlockRows * group);
    for (int m = 0; m < M; ++m) {
      acc[m] = Isa::fma(Isa::to_float(sum[m]), Isa::mul(scale, Isa::splat(x[m].scales[group])), acc[m]);
    }
    if constexpr (kType == WeightType::kQ4_1) {
      const auto minimum = Isa::load_half(minima + 2 * kBlockRows * group);
      for (int m = 0; m < M; ++m) acc[m] = Isa::fma(minimum, Isa::splat(x[m].scaled_sums[group]), acc[m]);
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

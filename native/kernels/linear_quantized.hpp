// Products with quantised weights: each group of a block is unpacked once and used for all rows of the pass.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// How far ahead of their use weights are asked for, in bytes: one block after the other is read, as one stream.
inline constexpr std::size_t kPrefetchDistance = 2048;

// One group of a block of 4-bit weights: its codes, scales and minima, ready for any number of rows.
template <class Isa, WeightType kType>
struct NibbleGroup {
  using Input = QuantizedGroup;
  typename Isa::Codes codes;
  typename Isa::F8 scale;
  typename Isa::F8 minimum;

  NibbleGroup(const std::uint8_t* bytes, const std::uint8_t* d, const std::uint8_t* m) : scale(Isa::load_half(d)) {
    Isa::load_nibbles(bytes, codes);
    if constexpr (kType == WeightType::kQ4_1) minimum = Isa::load_half(m);
  }

  // acc = fma(sum of weight code * input code, d * scale, acc), then for Q4_1 acc = fma(m, scale * sum of codes, acc).
  typename Isa::F8 add_to(typename Isa::F8 acc, const Input& x) const {
    auto sum = Isa::dot(codes, x.codes);
    if constexpr (kType == WeightType::kQ4_0) sum = Isa::add(sum, Isa::splat(-8 * x.sum));
    acc = Isa::fma(Isa::to_float(sum), Isa::mul(scale, Isa::splat(x.scale)), acc);
    if constexpr (kType == WeightType::kQ4_1) acc = Isa::fma(minimum, Isa::splat(x.scaled_sum), acc);
    return acc;
  }
};

// The same for 8-bit weights, whose codes are stored as code + 128.
template <class Isa>
struct ByteGroup {
  using Input = SplitGroup;
  typename Isa::Codes codes;
  typename Isa::F8 scale;

  ByteGroup(const std::uint8_t* bytes, const std::uint8_t* d, const std::uint8_t*) : scale(Isa::load_half(d)) {
    Isa::load_bytes(bytes, codes);
  }

  typename Isa::F8 add_to(typename Isa::F8 acc, const Input& x) const {
    const auto sum = Isa::add(Isa::dot16(codes, x.high, x.low), Isa::splat(-128 * x.sum));
    return Isa::fma(Isa::to_float(sum), Isa::mul(scale, Isa::splat(x.scale)), acc);
  }
};

template <class Isa, WeightType kType>
struct GroupOf {
  using Type = NibbleGroup<Isa, kType>;
};
template <class Isa>
struct GroupOf<Isa, WeightType::kQ8_0> {
  using Type = ByteGroup<Isa>;
};

static inline const QuantizedGroup* inputs_of(const Activations& x, const QuantizedGroup*) { return x.quantized; }
static inline const SplitGroup* inputs_of(const Activations& x, const SplitGroup*) { return x.split; }

// One block (8 outputs) for rows [row, row + count) of a panel. Each output adds group after group, by the same operations
// in the same order for every count.
template <class Isa, WeightType kType, int M>
inline void multiply_block(const Product& p, const std::uint8_t* block, int row, int count, float* out) {
  using Group = typename GroupOf<Isa, kType>::Type;
  constexpr std::size_t kCodeBytes = code_bytes(kType);
  constexpr std::size_t kGroupBytes = kCodeBytes + 2 * kBlockRows * (kType == WeightType::kQ4_1 ? 2 : 1);
  const typename Group::Input* x =
      inputs_of(p.inputs, static_cast<const typename Group::Input*>(nullptr)) + group_index(p.inputs, row, 0);
  const std::uint8_t* d = block;
  const std::uint8_t* minima = block + minimum_offset(p.weights);
  const std::uint8_t* ahead = block + kPrefetchDistance;
  block += code_offset(p.weights);
  typename Isa::F8 acc[M];
  for (int m = 0; m < count; ++m) acc[m] = Isa::zero();
  for (int group = 0; group < num_groups(p.weights); ++group) {
    for (std::size_t line = 0; line < kGroupBytes; line += 64) Isa::prefetch(ahead + line);
    const Group weights(block, d, minima);
    if constexpr (Isa::kHasInstances) {
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) acc[m] = weights.add_to(acc[m], x[m]);
    } else {
      for (int m = 0; m < count; ++m) acc[m] = weights.add_to(acc[m], x[m]);
    }
    ahead += kGroupBytes;
    block += kCodeBytes;
    d += 2 * kBlockRows;
    minima += 2 * kBlockRows;
    x += kMaxRows;
  }
  for (int m = 0; m < count; ++m) Isa::store(out + m * p.out_stride, acc[m]);
}

// Blocks [first, last) for rows [row, row + count), count <= M: picks the instance with exactly `count` rows if there is one.
template <class Isa, WeightType kType, int M>
inline void multiply_rows(const Product& p, int first, int last, int row, int count) {
  if constexpr (Isa::kHasInstances && M > 1) {
    if (count < M) return multiply_rows<Isa, kType, M - 1>(p, first, last, row, count);
  }
  for (int b = first; b < last; ++b) {
    multiply_block<Isa, kType, M>(p, p.weights.data + b * p.weights.block_bytes, row, Isa::kHasInstances ? M : count,
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

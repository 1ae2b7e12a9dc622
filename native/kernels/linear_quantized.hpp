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
  static constexpr int kTileRows = 4;  // rows whose sums for two blocks stay in registers
  typename Isa::Codes codes;
  typename Isa::F8 scale;
  typename Isa::F8 minimum;

  NibbleGroup(const std::uint8_t* bytes, const std::uint8_t* d, const std::uint8_t* m) : scale(Isa::load_half(d)) {
    Isa::load_nibbles(bytes, codes);
    if constexpr (kType == WeightType::kQ4_1) minimum = Isa::load_half(m);
  }

  // With sum = the exact sum of weight code * input code: acc = fma(sum, d * scale, acc), then for Q4_1
  // acc = fma(m, scale * sum of input codes, acc).
  typename Isa::F8 finish(typename Isa::F8 acc, typename Isa::I8 sum, const Input& x) const {
    if constexpr (kType == WeightType::kQ4_0) sum = Isa::add(sum, Isa::splat(-8 * x.sum));
    acc = Isa::fma(Isa::to_float(sum), Isa::mul(scale, Isa::splat(x.scale)), acc);
    if constexpr (kType == WeightType::kQ4_1) acc = Isa::fma(minimum, Isa::splat(x.scaled_sum), acc);
    return acc;
  }
  typename Isa::F8 add_to(typename Isa::F8 acc, const Input& x) const {
    return finish(acc, Isa::dot(codes, x.codes), x);
  }

  // Two blocks, R rows: each four inputs are broadcast once for both blocks.
  template <int R>
  static void add_pair(const NibbleGroup& a, const NibbleGroup& b, const Input* x, typename Isa::F8 (*acc)[2]) {
    typename Isa::PairSums sums[R][2];
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = Isa::no_sums();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const auto four = Isa::broadcast_four(x[r].codes + 4 * j);
        Isa::accumulate(sums[r][0], a.codes[j], four);
        Isa::accumulate(sums[r][1], b.codes[j], four);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      acc[r][0] = a.finish(acc[r][0], Isa::widen(sums[r][0]), x[r]);
      acc[r][1] = b.finish(acc[r][1], Isa::widen(sums[r][1]), x[r]);
    }
  }
};

// The same for 8-bit weights, whose codes are stored as code + 128.
template <class Isa>
struct ByteGroup {
  using Input = SplitGroup;
  static constexpr int kTileRows = 2;
  typename Isa::Codes codes;
  typename Isa::F8 scale;

  ByteGroup(const std::uint8_t* bytes, const std::uint8_t* d, const std::uint8_t*) : scale(Isa::load_half(d)) {
    Isa::load_bytes(bytes, codes);
  }

  typename Isa::F8 finish(typename Isa::F8 acc, typename Isa::I8 sum, const Input& x) const {
    sum = Isa::add(sum, Isa::splat(-128 * x.sum));
    return Isa::fma(Isa::to_float(sum), Isa::mul(scale, Isa::splat(x.scale)), acc);
  }
  typename Isa::F8 add_to(typename Isa::F8 acc, const Input& x) const {
    return finish(acc, Isa::dot16(codes, x.high, x.low), x);
  }

  template <int R>
  static void add_pair(const ByteGroup& a, const ByteGroup& b, const Input* x, typename Isa::F8 (*acc)[2]) {
    typename Isa::PairSums high[R][2];
    typename Isa::PairSums low[R][2];
    for (int r = 0; r < R; ++r) high[r][0] = high[r][1] = low[r][0] = low[r][1] = Isa::no_sums();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const auto four_high = Isa::broadcast_four(x[r].high + 4 * j);
        Isa::accumulate(high[r][0], a.codes[j], four_high);
        Isa::accumulate(high[r][1], b.codes[j], four_high);
        const auto four_low = Isa::broadcast_four(x[r].low + 4 * j);
        Isa::accumulate(low[r][0], a.codes[j], four_low);
        Isa::accumulate(low[r][1], b.codes[j], four_low);
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      acc[r][0] = a.finish(acc[r][0], Isa::widen16(high[r][0], low[r][0]), x[r]);
      acc[r][1] = b.finish(acc[r][1], Isa::widen16(high[r][1], low[r][1]), x[r]);
    }
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

// Bytes that a block's codes and scales take for one group.
template <WeightType kType>
inline constexpr std::size_t kGroupBytes = code_bytes(kType) + 2 * kBlockRows * (kType == WeightType::kQ4_1 ? 2 : 1);

// Reads the groups of one block, one after the other, and asks for what lies `distance` bytes ahead.
template <class Isa, WeightType kType>
class GroupReader {
 public:
  using Group = typename GroupOf<Isa, kType>::Type;

  GroupReader(const MatrixView& weights, const std::uint8_t* block, std::size_t distance)
      : d_(block),
        minima_(block + minimum_offset(weights)),
        codes_(block + code_offset(weights)),
        ahead_(block + distance) {}

  Group next() {
    for (std::size_t line = 0; line < kGroupBytes<kType>; line += 64) Isa::prefetch(ahead_ + line);
    const Group group(codes_, d_, minima_);
    ahead_ += kGroupBytes<kType>;
    codes_ += code_bytes(kType);
    d_ += 2 * kBlockRows;
    minima_ += 2 * kBlockRows;
    return group;
  }

 private:
  const std::uint8_t* d_;
  const std::uint8_t* minima_;
  const std::uint8_t* codes_;
  const std::uint8_t* ahead_;
};

template <class Isa, WeightType kType>
inline const typename GroupOf<Isa, kType>::Type::Input* first_inputs(const Product& p, int row) {
  using Input = typename GroupOf<Isa, kType>::Type::Input;
  return inputs_of(p.inputs, static_cast<const Input*>(nullptr)) + group_index(p.inputs, row, 0);
}

// One block (8 outputs) for rows [row, row + count) of a panel. Each output adds group after group, by the same
// operations in the same order for every count, alone or in a pair of blocks.
template <class Isa, WeightType kType, int M>
inline void multiply_block(const Product& p, const std::uint8_t* block, int row, int count, float* out) {
  GroupReader<Isa, kType> reader(p.weights, block, kPrefetchDistance);
  const auto* x = first_inputs<Isa, kType>(p, row);
  typename Isa::F8 acc[M];
  for (int m = 0; m < count; ++m) acc[m] = Isa::zero();
  for (int group = 0; group < num_groups(p.weights); ++group, x += kMaxRows) {
    const auto weights = reader.next();
    if constexpr (Isa::kHasInstances) {
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) acc[m] = weights.add_to(acc[m], x[m]);
    } else {
      for (int m = 0; m < count; ++m) acc[m] = weights.add_to(acc[m], x[m]);
    }
  }
  for (int m = 0; m < count; ++m) Isa::store(out + m * p.out_stride, acc[m]);
}

// Rows [first, M) of a pair of groups, kTileRows at a time.
template <class Group, int M, int first = 0, class Input, class F8>
[[gnu::always_inline]] inline void add_tiles(const Group& a, const Group& b, const Input* x, F8 (*acc)[2]) {
  if constexpr (first < M) {
    constexpr int kRows = M - first < Group::kTileRows ? M - first : Group::kTileRows;
    Group::template add_pair<kRows>(a, b, x + first, acc + first);
    add_tiles<Group, M, first + kRows>(a, b, x, acc);
  }
}

// Two neighbouring blocks for M rows.
template <class Isa, WeightType kType, int M>
inline void multiply_pair(const Product& p, const std::uint8_t* block, int row, float* out) {
  using Group = typename GroupOf<Isa, kType>::Type;
  const std::size_t block_bytes = p.weights.block_bytes;
  GroupReader<Isa, kType> first(p.weights, block, 2 * block_bytes);
  GroupReader<Isa, kType> second(p.weights, block + block_bytes, 2 * block_bytes);
  const auto* x = first_inputs<Isa, kType>(p, row);
  typename Isa::F8 acc[M][2];
  for (auto& both : acc) both[0] = both[1] = Isa::zero();
  for (int group = 0; group < num_groups(p.weights); ++group, x += kMaxRows) {
    const Group a = first.next();
    const Group b = second.next();
    add_tiles<Group, M>(a, b, x, acc);
  }
  for (int m = 0; m < M; ++m) {
    Isa::store(out + m * p.out_stride, acc[m][0]);
    Isa::store(out + m * p.out_stride + kBlockRows, acc[m][1]);
  }
}

// Where arithmetic is the limit and not memory, blocks go in pairs: the broadcasts of inputs are shared.
inline constexpr int kMinPairRows = 3;

// Blocks [first, last) for rows [row, row + count), count <= M: picks the instance with exactly `count` rows if there
// is one.
template <class Isa, WeightType kType, int M>
inline void multiply_rows(const Product& p, int first, int last, int row, int count) {
  if constexpr (Isa::kHasInstances && M > 1) {
    if (count < M) return multiply_rows<Isa, kType, M - 1>(p, first, last, row, count);
  }
  float* out = p.out + row * p.out_stride;
  int b = first;
  if constexpr (Isa::kHasInstances && M >= kMinPairRows) {
    for (; b + 2 <= last; b += 2) {
      multiply_pair<Isa, kType, M>(p, p.weights.data + b * p.weights.block_bytes, row, out + b * kBlockRows);
    }
  }
  for (; b < last; ++b) {
    multiply_block<Isa, kType, M>(p, p.weights.data + b * p.weights.block_bytes, row, Isa::kHasInstances ? M : count,
                                  out + b * kBlockRows);
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

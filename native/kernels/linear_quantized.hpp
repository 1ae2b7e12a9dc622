// Products with quantised weights: each group of a block is unpacked once and used for all rows of the pass.
#pragma once

#include <type_traits>

#include "kernels/group_codes.hpp"
#include "kernels/group_scales.hpp"
#include "kernels/kernels.hpp"
#include "kernels/unroll.hpp"

namespace paceline::kernels {

// How far ahead of their use weights are asked for, in bytes: one block after the other is read, as one stream.
inline constexpr std::size_t kPrefetchDistance = 2048;

// Into how many 16-bit sums the 8 pairs of a lane's products must go so that none overflows (a pair is at most
// 2 * max_code * 127 in magnitude) and none spans two scales.
static constexpr int num_parts(WeightType type) {
  int parts = has_half_scales(type) ? 2 : 1;
  while (8 / parts * 2 * format_of(type).max_code * 127 > 32767) parts *= 2;
  return parts;
}

// Calls f(Index) for every group, in order.
template <WeightType kType, class F>
[[gnu::always_inline]] inline void for_each_group(const MatrixView& weights, F f) {
  if constexpr (has_records(kType)) {
    for (int record = 0; record < num_groups(weights) / kRecordGroups; ++record) {
      unroll<kRecordGroups>(f);
    }
  } else {
    for (int group = 0; group < num_groups(weights); ++group) f(Index<0>{});
  }
}

// One group of a block: codes, scales and minima, ready for any number of rows.
template <class Isa, WeightType kType>
struct Group {
  using F8 = typename Isa::F8;
  using I8 = typename Isa::I8;
  using Scales = std::conditional_t<has_half_scales(kType), HalfScales<Isa, kType>, WholeScales<Isa, kType>>;
  static constexpr bool kIsSplit = format_of(kType).max_code > 63;
  using Input = std::conditional_t<kIsSplit, SplitGroup, QuantizedGroup>;
  static constexpr int kNumParts = kIsSplit ? 1 : num_parts(kType);
  // Rows whose sums stay in registers.
  static constexpr int kTileRows = !Isa::kHasTiles ? 1 : !kIsSplit && kNumParts == 1 ? 4 : 2;
  typename Isa::Codes codes;
  Scales scales;

  template <int kIndex>
  Group(const GroupPlace& place, Index<kIndex> index) : scales(place, index) {
    if constexpr (has_records(kType)) {
      load_record_codes<Isa, kType, kIndex>(place.codes, codes);
    } else {
      load_own_codes<Isa, kType>(place.codes, codes);
    }
  }
};

// Begins 16-bit sums, or goes on with them.
template <class Isa, bool kIsFirst, class Codes, class Four>
[[gnu::always_inline]] inline void add_pairs(typename Isa::Pairs& sums, const Codes& codes, const Four& four) {
  if constexpr (kIsFirst) {
    sums = Isa::multiply(codes, four);
  } else {
    Isa::accumulate(sums, codes, four);
  }
}

// Adds what B blocks' groups give for R rows to acc[row][block]. Each four inputs are broadcast once for all blocks.
template <class Isa, WeightType kType, int R, int B>
[[gnu::always_inline]] inline void add_products(const Group<Isa, kType>* groups, const QuantizedGroup* x,
                                                typename Isa::F8 (*acc)[B]) {
  constexpr int kNumParts = Group<Isa, kType>::kNumParts;
  constexpr int kColumns = 8 / kNumParts;
  typename Isa::I8 totals[R][B];
  unroll<kNumParts>([&]<int kPart>(Index<kPart>) __attribute__((always_inline)) {
    typename Isa::Pairs sums[R][B];
    unroll<kColumns>([&]<int j>(Index<j>) __attribute__((always_inline)) {
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        const auto four = Isa::broadcast_four(x[r].codes + 4 * (kColumns * kPart + j));
        unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
          add_pairs<Isa, j == 0>(sums[r][b], groups[b].codes[kColumns * kPart + j], four);
        });
      });
    });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        const auto wide = groups[b].scales.template widen<kPart, kNumParts>(sums[r][b]);
        totals[r][b] = kPart == 0 ? wide : Isa::add(totals[r][b], wide);
      });
    });
  });
  unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
    unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
      acc[r][b] = groups[b].scales.finish(acc[r][b], totals[r][b], x[r]);
    });
  });
}

// The same for 8-bit codes and inputs in two parts: parts are at most 8 in magnitude, so eight pairs stay within
// 8 * 2 * 255 * 8 = 32640.
template <class Isa, WeightType kType, int R, int B>
[[gnu::always_inline]] inline void add_products(const Group<Isa, kType>* groups, const SplitGroup* x,
                                                typename Isa::F8 (*acc)[B]) {
  typename Isa::Pairs high[R][B];
  typename Isa::Pairs low[R][B];
  unroll<8>([&]<int j>(Index<j>) __attribute__((always_inline)) {
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto four_high = Isa::broadcast_four(x[r].high + 4 * j);
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        add_pairs<Isa, j == 0>(high[r][b], groups[b].codes[j], four_high);
      });
      const auto four_low = Isa::broadcast_four(x[r].low + 4 * j);
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        add_pairs<Isa, j == 0>(low[r][b], groups[b].codes[j], four_low);
      });
    });
  });
  unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
    unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
      acc[r][b] = groups[b].scales.finish(acc[r][b], Isa::widen16(high[r][b], low[r][b]), x[r]);
    });
  });
}

// Reads the groups of one block, one after the other, and asks for what lies `distance` bytes ahead.
template <class Isa, WeightType kType>
class GroupReader {
  static constexpr Format kFormat = format_of(kType);

 public:
  GroupReader(const MatrixView& weights, const std::uint8_t* block, std::size_t distance)
      : place_{block + (has_records(kType) ? record_code_offset(kFormat) : code_offset(weights)), block,
               block + minimum_offset(weights)},
        ahead_(block + distance) {}

  // Goes on to the next group, of that index in its record.
  template <int kIndex>
  [[gnu::always_inline]] GroupPlace next(Index<kIndex>) {
    for (std::size_t line = 0; line < kGroupBytes; line += 64) Isa::prefetch(ahead_ + line);
    ahead_ += kGroupBytes;
    const GroupPlace place = place_;
    if constexpr (!has_records(kType)) {
      place_ = {place.codes + kFormat.code_bytes, place.d + kFormat.scale_bytes, place.minima + kFormat.scale_bytes};
    } else if constexpr (kIndex == kRecordGroups - 1) {
      place_ = {place.codes + record_bytes(kFormat), place.d + record_bytes(kFormat), nullptr};
    }
    return place;
  }

 private:
  // Bytes that a block takes for one group.
  static constexpr std::size_t kGroupBytes = has_records(kType)
                                                 ? record_bytes(kFormat) / kRecordGroups
                                                 : kFormat.code_bytes + kFormat.scale_bytes * (kFormat.has_minimum + 1);

  GroupPlace place_;
  const std::uint8_t* ahead_;
};

static inline const QuantizedGroup* inputs_of(const Activations& x, const QuantizedGroup*) { return x.quantized; }
static inline const SplitGroup* inputs_of(const Activations& x, const SplitGroup*) { return x.split; }

template <class Isa, WeightType kType>
inline const typename Group<Isa, kType>::Input* first_inputs(const Product& p, int row) {
  using Input = typename Group<Isa, kType>::Input;
  return inputs_of(p.inputs, static_cast<const Input*>(nullptr)) + group_index(p.inputs, row, 0);
}

// One block (8 outputs) for M rows of a panel from `row` on. Each output adds group after group, by the same operations
// in the same order for every number of rows, alone or in a pair of blocks.
template <class Isa, WeightType kType, int M>
inline void multiply_block(const Product& p, const std::uint8_t* block, int row, float* out) {
  GroupReader<Isa, kType> reader(p.weights, block, kPrefetchDistance);
  const auto* x = first_inputs<Isa, kType>(p, row);
  typename Isa::F8 acc[M][1];
  for (auto& row_acc : acc) row_acc[0] = Isa::zero();
  for_each_group<kType>(p.weights, [&](auto index) __attribute__((always_inline)) {
    const Group<Isa, kType> weights(reader.next(index), index);
    add_products<Isa, kType, M, 1>(&weights, x, acc);
    x += kMaxRows;
  });
  for (int m = 0; m < M; ++m) Isa::store(out + m * p.out_stride, acc[m][0]);
}

// The last rows of a pass, fewer than R + 1.
template <class Isa, WeightType kType, int R, int B, class Input>
[[gnu::always_inline]] inline void add_rest(const Group<Isa, kType>* groups, const Input* x, int count,
                                            typename Isa::F8 (*acc)[B]) {
  if constexpr (R > 0) {
    if (count == R) return add_products<Isa, kType, R, B>(groups, x, acc);
    add_rest<Isa, kType, R - 1, B>(groups, x, count, acc);
  }
}

// All rows of a pass, a tile of them after the other. Not inlined: one copy serves the groups of a record.
template <class Isa, WeightType kType, int B, class Input>
[[gnu::noinline]] void add_all(const Group<Isa, kType>* groups, const Input* x, int count, typename Isa::F8 (*acc)[B]) {
  constexpr int kTileRows = Group<Isa, kType>::kTileRows;
  int m = 0;
  for (; m + kTileRows <= count; m += kTileRows) add_products<Isa, kType, kTileRows, B>(groups, x + m, acc + m);
  add_rest<Isa, kType, kTileRows - 1, B>(groups, x + m, count - m, acc + m);
}

// B neighbouring blocks for `count` rows, a tile of rows after the other.
template <class Isa, WeightType kType, int B>
inline void multiply_tiles(const Product& p, const std::uint8_t* block, int row, int count, float* out) {
  const std::size_t block_bytes = p.weights.block_bytes;
  GroupReader<Isa, kType> first(p.weights, block, B * block_bytes);
  GroupReader<Isa, kType> second(p.weights, block + (B - 1) * block_bytes, B * block_bytes);
  const auto* x = first_inputs<Isa, kType>(p, row);
  typename Isa::F8 acc[kMaxRows][B];
  for (int m = 0; m < count; ++m) {
    for (int b = 0; b < B; ++b) acc[m][b] = Isa::zero();
  }
  for_each_group<kType>(p.weights, [&](auto index) __attribute__((always_inline)) {
    if constexpr (B == 1) {
      const Group<Isa, kType> group(first.next(index), index);
      add_all<Isa, kType, B>(&group, x, count, acc);
    } else {
      const Group<Isa, kType> groups[] = {{first.next(index), index}, {second.next(index), index}};
      add_all<Isa, kType, B>(groups, x, count, acc);
    }
    x += kMaxRows;
  });
  for (int m = 0; m < count; ++m) {
    for (int b = 0; b < B; ++b) Isa::store(out + m * p.out_stride + b * kBlockRows, acc[m][b]);
  }
}

// Where arithmetic is the limit and not memory, blocks go in pairs: the broadcasts of inputs are shared.
inline constexpr int kMinPairRows = 3;

template <class Isa, WeightType kType>
inline void multiply_one(const Product& p, const std::uint8_t* block, int row, int count, float* out) {
  if constexpr (Isa::kHasTiles) {
    if (count == 1) return multiply_block<Isa, kType, 1>(p, block, row, out);
    if (count == 2) return multiply_block<Isa, kType, 2>(p, block, row, out);
  }
  multiply_tiles<Isa, kType, 1>(p, block, row, count, out);
}

// Blocks [first, last) for rows [row, row + count) of a panel.
template <class Isa, WeightType kType>
inline void multiply_rows(const Product& p, int first, int last, int row, int count) {
  float* out = p.out + row * p.out_stride;
  const auto block = [&](int b) { return p.weights.data + b * p.weights.block_bytes; };
  int b = first;
  if constexpr (Isa::kHasTiles) {
    for (; count >= kMinPairRows && b + 2 <= last; b += 2) {
      multiply_tiles<Isa, kType, 2>(p, block(b), row, count, out + b * kBlockRows);
    }
  }
  for (; b < last; ++b) multiply_one<Isa, kType>(p, block(b), row, count, out + b * kBlockRows);
}

template <class Isa, WeightType kType>
inline void multiply_quantized(const Product& p, int first, int last) {
  for (int row = 0; row < p.num_rows; row += kMaxRows) {
    const int left = p.num_rows - row;
    multiply_rows<Isa, kType>(p, first, last, row, left < kMaxRows ? left : kMaxRows);
  }
}

}  // namespace paceline::kernels

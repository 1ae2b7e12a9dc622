// Products with quantised weights: a group of a block is unpacked in registers and meets a tile of input rows there.
#pragma once

#include <type_traits>

#include "kernels/kernels.hpp"
#include "kernels/outputs.hpp"
#include "kernels/scales.hpp"
#include "kernels/unroll.hpp"
#include "weights/code_bits.hpp"
#include "weights/tables.hpp"

namespace paceline::kernels {

// How far ahead of their use weights are asked for, in bytes: one block after the other is read, as one stream.
inline constexpr std::size_t kPrefetchDistance = 2048;

// How products of one type go with vectors of one kind.
template <class V, WeightType kType>
struct Scheme {
  static constexpr Format kFormat = format_of(kType);
  // 8-bit weights where sums have 16 bits: the inputs are split.
  static constexpr bool kIsSplit = kFormat.max_code == 255 && V::kLargestSum < 1 << 30;
  using Input = std::conditional_t<kIsSplit, SplitGroup, QuantizedGroup>;

  // Into how many sums the 8 pairs of a lane's products must go so that none overflows in the end and none spans two
  // scales. Of a code - zero code; a sum starts with what the zero code takes away, and may wrap on the way.
  static constexpr int num_parts() {
    const int largest = kFormat.max_code - kFormat.zero_code > kFormat.zero_code ? kFormat.max_code - kFormat.zero_code
                                                                                : kFormat.zero_code;
    int parts = has_half_scales(kType) ? 2 : 1;
    while (!kIsSplit && static_cast<long long>(8 / parts * 2) * largest * 127 > V::kLargestSum) parts *= 2;
    return parts;
  }
  static constexpr int kNumParts = num_parts();
  static constexpr TileSizes kTiles = kIsSplit ? V::kSplitTiles : V::kTiles;
};

// The packed words of a group for one vector.
template <class V>
struct VectorWords {
  const std::uint8_t* at;

  [[gnu::always_inline]] auto load(int i) const { return V::load_codes(at + 4 * kBlockRows * i); }
  template <int kMask, int kShift>
  [[gnu::always_inline]] static auto field(typename V::Codes w) {
    return V::template field<kMask, kShift>(w);
  }
  [[gnu::always_inline]] static auto either(typename V::Codes a, typename V::Codes b) { return V::either(a, b); }
};

// Word j of the codes of vector b.
template <class V, WeightType kType, int j, int b>
[[gnu::always_inline]] inline typename V::Codes load_word(const std::uint8_t* codes) {
  const auto word = unpack_word<format_of(kType).code_bits, j>(VectorWords<V>{codes + 4 * V::kLanes * b});
  if constexpr (table_of(kType) == nullptr) return word;
  return V::look_up(table_of(kType), word);
}

// What part kPart of the sums of one input group starts with: -zero code * the sum of its codes.
template <class V, WeightType kType, int kPart>
[[gnu::always_inline]] inline typename V::Sums start_sums(const QuantizedGroup& x) {
  constexpr int kNumParts = Scheme<V, kType>::kNumParts;
  static_assert(kNumParts <= 2, "the pair sums are of halves");
  auto sums = V::sums_of(x.pair_sums[kPart]);
  if constexpr (kNumParts == 1) sums = V::add_sums(sums, V::sums_of(x.pair_sums[1]));
  return V::template times<-format_of(kType).zero_code>(sums);
}

// Goes on with sums, or begins them where they do not start with something.
template <class V, bool kIsFirst>
[[gnu::always_inline]] inline void add_word(typename V::Sums& sums, typename V::Codes codes, typename V::Four four) {
  if constexpr (kIsFirst) {
    sums = V::multiply(codes, four);
  } else {
    V::accumulate(sums, codes, four);
  }
}

// Adds one group's products with R rows to their accumulators.
template <class V, WeightType kType, int R>
[[gnu::always_inline]] inline void add_group(const GroupPlace& place, const QuantizedGroup* x,
                                             typename V::Float (*acc)[kVectors<V>]) {
  constexpr int B = kVectors<V>;
  constexpr int kNumParts = Scheme<V, kType>::kNumParts;
  constexpr int kWords = 8 / kNumParts;
  constexpr bool kHasZero = format_of(kType).zero_code != 0;
  typename V::Int totals[R][B];
  unroll<kNumParts>([&]<int kPart>(Index<kPart>) __attribute__((always_inline)) {
    typename V::Sums sums[R][B];
    if constexpr (kHasZero) {
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        sums[r][0] = start_sums<V, kType, kPart>(x[r]);
        for (int b = 1; b < B; ++b) sums[r][b] = sums[r][0];
      });
    }
    unroll<kWords>([&]<int i>(Index<i>) __attribute__((always_inline)) {
      constexpr int j = kWords * kPart + i;
      typename V::Codes words[B];
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        words[b] = load_word<V, kType, j, b>(place.codes);
      });
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        const auto four = V::broadcast_four(x[r].codes + 4 * j);
        unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
          add_word<V, i == 0 && !kHasZero>(sums[r][b], words[b], four);
        });
      });
    });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        const auto wide = GroupScales<V, kType, b>::template widen<kPart, kNumParts>(place, sums[r][b]);
        totals[r][b] = kPart == 0 ? wide : V::add(totals[r][b], wide);
      });
    });
  });
  unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
    const GroupScales<V, kType, b> scales(place);
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      acc[r][b] = scales.finish(acc[r][b], totals[r][b], x[r]);
    });
  });
}

// The same for 8-bit codes and inputs in two parts: parts are at most 8 in magnitude, so eight pairs stay within
// 8 * 2 * 255 * 8 = 32640.
template <class V, WeightType kType, int R>
[[gnu::always_inline]] inline void add_group(const GroupPlace& place, const SplitGroup* x,
                                             typename V::Float (*acc)[kVectors<V>]) {
  constexpr int B = kVectors<V>;
  typename V::Sums high[R][B];
  typename V::Sums low[R][B];
  unroll<8>([&]<int j>(Index<j>) __attribute__((always_inline)) {
    typename V::Codes words[B];
    unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
      words[b] = load_word<V, kType, j, b>(place.codes);
    });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto four_high = V::broadcast_four(x[r].high + 4 * j);
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        add_word<V, j == 0>(high[r][b], words[b], four_high);
      });
      const auto four_low = V::broadcast_four(x[r].low + 4 * j);
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        add_word<V, j == 0>(low[r][b], words[b], four_low);
      });
    });
  });
  unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
    const GroupScales<V, kType, b> scales(place);
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto zero = V::splat(-format_of(kType).zero_code * x[r].sum);
      acc[r][b] = scales.finish(acc[r][b], V::add(V::widen16(high[r][b], low[r][b]), zero), x[r]);
    });
  });
}

// Where the groups of one block lie, one after the other.
template <WeightType kType>
class GroupReader {
  static constexpr Format kFormat = format_of(kType);
  static constexpr bool kHasRecords = has_records(kType);
  static constexpr int kScaleBytes = kBlockRows * (kHasRecords ? kFormat.fine_scales / kRecordGroups : kFormat.scale_bytes);

 public:
  // Bytes that a block takes for one group, and its lines rounded up.
  static constexpr std::size_t kGroupBytes =
      kHasRecords ? record_bytes(kFormat) / kRecordGroups
                  : group_code_bytes(kFormat) + kScaleBytes * (kFormat.has_minimum ? 2 : 1);

  GroupReader(const MatrixView& weights, const std::uint8_t* block)
      : ahead_(block + kPrefetchDistance) {
    if constexpr (kHasRecords) {
      start_record(block);
    } else {
      place_ = {block + code_offset(weights), block, block + minimum_offset(weights)};
    }
  }

  void start_record(const std::uint8_t* record) {
    place_ = {record + record_code_offset(kFormat), record + fine_scale_offset(kFormat), nullptr};
  }

  template <class V>
  [[gnu::always_inline]] GroupPlace next() {
    for (std::size_t line = 0; line < kGroupBytes; line += 64) V::prefetch(ahead_ + line);
    ahead_ += kGroupBytes;
    const GroupPlace place = place_;
    place_.codes += group_code_bytes(kFormat);
    place_.scales += kScaleBytes;
    if constexpr (!kHasRecords) place_.minima += kScaleBytes;
    return place;
  }

 private:
  GroupPlace place_{};
  const std::uint8_t* ahead_;
};

// How `count` rows are cut into tiles: of R rows, and of R - 1 after them.
struct Tiles {
  int num_large;
  int num_small;
};

// Calls f(Index<rows>, first row) for each tile.
template <int R, bool kIsOne, class F>
[[gnu::always_inline]] inline void for_each_tile(const Tiles& tiles, F f) {
  if constexpr (kIsOne) {
    f(Index<R>{}, 0);
  } else {
    int first = 0;
    for (int i = 0; i < tiles.num_large; ++i, first += R) f(Index<R>{}, first);
    if constexpr (R > 1) {
      for (int i = 0; i < tiles.num_small; ++i, first += R - 1) f(Index<R - 1>{}, first);
    }
  }
}

template <class V, int N>
[[gnu::always_inline]] inline void set_zero(typename V::Float (&acc)[N][kVectors<V>]) {
  for (auto& row : acc) {
    for (auto& vector : row) vector = V::zero();
  }
}

// One block for rows of a panel, `x` being their first group. Each output adds group after group, by the same
// operations in the same order whatever the tiles. kIsOne: all rows are one tile.
template <class V, WeightType kType, int R, bool kIsOne>
inline void multiply_block(const MatrixView& weights, const std::uint8_t* block,
                           const typename Scheme<V, kType>::Input* x, const Tiles& tiles,
                           typename V::Float (&acc)[kIsOne ? R : kMaxRows][kVectors<V>]) {
  set_zero<V>(acc);
  GroupReader<kType> reader(weights, block);
  if constexpr (!has_records(kType)) {
    for (int group = 0; group < num_groups(weights); ++group, x += kMaxRows) {
      const GroupPlace place = reader.template next<V>();
      for_each_tile<R, kIsOne>(tiles, [&]<int r>(Index<r>, int first) __attribute__((always_inline)) {
        add_group<V, kType, r>(place, x + first, acc + first);
      });
    }
  } else {
    for (int record = 0; record < num_groups(weights) / kRecordGroups; ++record) {
      typename V::Float parts[kIsOne ? R : kMaxRows][kVectors<V>];
      set_zero<V>(parts);
      reader.start_record(block);
      for (int group = 0; group < kRecordGroups; ++group, x += kMaxRows) {
        const GroupPlace place = reader.template next<V>();
        for_each_tile<R, kIsOne>(tiles, [&]<int r>(Index<r>, int first) __attribute__((always_inline)) {
          add_group<V, kType, r>(place, x + first, parts + first);
        });
      }
      const auto* first_x = x - kRecordGroups * kMaxRows;
      for_each_tile<R, kIsOne>(tiles, [&]<int r>(Index<r>, int first) __attribute__((always_inline)) {
        fold_record<V, kType, r>(block, first_x + first, parts + first, acc + first);
      });
      block += record_bytes(format_of(kType));
    }
  }
}

static inline const QuantizedGroup* inputs_of(const Activations& x, const QuantizedGroup*) { return x.quantized; }
static inline const SplitGroup* inputs_of(const Activations& x, const SplitGroup*) { return x.split; }

// Blocks [first, last) for rows [row, row + count) of a panel.
template <class V, WeightType kType, int R, bool kIsOne>
inline void multiply_blocks(const Product& p, int first, int last, int row, int count, const Tiles& tiles) {
  using Input = typename Scheme<V, kType>::Input;
  const Input* x = inputs_of(p.inputs, static_cast<const Input*>(nullptr)) + group_index(p.inputs, row, 0);
  for (int b = first; b < last; ++b) {
    typename V::Float acc[kIsOne ? R : kMaxRows][kVectors<V>];
    multiply_block<V, kType, R, kIsOne>(p.weights, p.weights.data + b * p.weights.block_bytes, x, tiles, acc);
    float* out = p.out + row * p.out_stride + b * kBlockRows;
    for (int m = 0; m < count; ++m) store_outputs<V>(acc[m], p.num_outputs - b * kBlockRows, out + m * p.out_stride);
  }
}

// One tile of `count` rows of a panel.
template <class V, WeightType kType, int R>
inline void multiply_tile(const Product& p, int first, int last, int row, int count) {
  if constexpr (R > 1) {
    if (count < R) return multiply_tile<V, kType, R - 1>(p, first, last, row, count);
  }
  multiply_blocks<V, kType, R, true>(p, first, last, row, count, {1, 0});
}

// `count` rows of a panel in as few tiles as possible, as even as possible.
template <class V, WeightType kType, int R>
inline void multiply_tiles(const Product& p, int first, int last, int row, int count) {
  constexpr int kLargest = Scheme<V, kType>::kTiles.of_several;
  const int num_tiles = (count + kLargest - 1) / kLargest;
  if constexpr (2 * (R - 1) >= kLargest && R > 1) {
    if (count <= num_tiles * (R - 1)) return multiply_tiles<V, kType, R - 1>(p, first, last, row, count);
  }
  const int num_small = num_tiles * R - count;
  multiply_blocks<V, kType, R, false>(p, first, last, row, count, {num_tiles - num_small, num_small});
}

template <class V, WeightType kType>
inline void multiply_quantized(const Product& p, int first, int last) {
  constexpr TileSizes kTiles = Scheme<V, kType>::kTiles;
  for (int row = 0; row < p.num_rows; row += kMaxRows) {
    const int count = p.num_rows - row < kMaxRows ? p.num_rows - row : kMaxRows;
    if (count <= kTiles.alone) {
      multiply_tile<V, kType, kTiles.alone>(p, first, last, row, count);
    } else {
      multiply_tiles<V, kType, kTiles.of_several>(p, first, last, row, count);
    }
  }
}

}  // namespace paceline::kernels

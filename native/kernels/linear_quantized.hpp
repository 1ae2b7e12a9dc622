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

// How far ahead of their use weights are asked for, in bytes of each stream.
inline constexpr std::size_t kPrefetchDistance = 1024;

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
  // Codes over 127 where products take signed ones: less 128.
  static constexpr bool kIsMadeSigned = V::kHasSignedCodes && kFormat.max_code > 127;
  static constexpr int kZeroCode = kFormat.zero_code - (kIsMadeSigned ? 128 : 0);
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
  auto word = unpack_word<format_of(kType).code_bits, j>(VectorWords<V>{codes + 4 * V::kLanes * b});
  if constexpr (table_of(kType) != nullptr) word = V::look_up(table_of(kType), word);
  if constexpr (Scheme<V, kType>::kIsMadeSigned) word = V::to_signed(word);
  return word;
}

// What part kPart of the sums of one input group starts with: -zero code * the sum of its codes.
template <class V, WeightType kType, int kPart>
[[gnu::always_inline]] inline typename V::Sums start_sums(const QuantizedGroup& x) {
  constexpr int kNumParts = Scheme<V, kType>::kNumParts;
  static_assert(kNumParts <= 2, "the pair sums are of halves");
  auto sums = V::sums_of(x.pair_sums[kPart]);
  if constexpr (kNumParts == 1) sums = V::add_sums(sums, V::sums_of(x.pair_sums[1]));
  return V::template times<-Scheme<V, kType>::kZeroCode>(sums);
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
  constexpr bool kHasZero = Scheme<V, kType>::kZeroCode != 0;
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
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { words[b] = load_word<V, kType, j, b>(place.codes); });
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        const auto four = V::broadcast_four(x[r].codes + 4 * j);
        unroll<B>([&]<int b>(Index<b>)
                      __attribute__((always_inline)) { add_word<V, i == 0 && !kHasZero>(sums[r][b], words[b], four); });
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
    unroll<R>([&]<int r>(Index<r>)
                  __attribute__((always_inline)) { acc[r][b] = scales.finish(acc[r][b], totals[r][b], x[r]); });
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
    unroll<B>([&]<int b>(Index<b>)
                  __attribute__((always_inline)) { words[b] = load_word<V, kType, j, b>(place.codes); });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto four_high = V::broadcast_four(x[r].high + 4 * j);
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { add_word<V, j == 0>(high[r][b], words[b], four_high); });
      const auto four_low = V::broadcast_four(x[r].low + 4 * j);
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { add_word<V, j == 0>(low[r][b], words[b], four_low); });
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

// How many streams one row of inputs is multiplied with side by side: as many as leave their accumulators in registers.
// It leaves nothing else to wait for.
template <class V, WeightType kType>
constexpr int strip_blocks() {
  const int blocks = V::kStripVectors / (kVectors<V> * Scheme<V, kType>::kNumParts);
  return blocks >= kStreams ? kStreams : blocks >= 2 ? 2 : 1;
}

// A block of each of S streams.
template <int S>
struct Strip {
  const std::uint8_t* first;
  std::size_t distance;  // bytes from one stream's block to the next one's

  // Asks for the `bytes` of every stream that are read `kPrefetchDistance` later than what lies at `offset`, line by
  // line, so that the streams go on together.
  template <class V>
  [[gnu::always_inline]] void prefetch(std::size_t offset, std::size_t bytes) const {
    for (std::size_t line = 0; line < bytes; line += 64) {
      for (int s = 0; s < S; ++s) V::prefetch(first + s * distance + offset + kPrefetchDistance + line);
    }
  }
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

// The vectors of up to kRows rows for each block of a strip.
template <class V, int S, int kRows>
struct StripSums {
  typename V::Float of[S][kRows][kVectors<V>];

  [[gnu::always_inline]] StripSums() {
    for (auto& block : of) {
      for (auto& row : block) {
        for (auto& vector : row) vector = V::zero();
      }
    }
  }
};

// A strip for rows of a panel, `x` being their first group. Each output adds group after group, by the same operations
// in the same order whatever the tiles and strips. kIsOne: all rows are one tile.
template <class V, WeightType kType, int S, int R, bool kIsOne>
[[gnu::always_inline]] inline void multiply_strip(const Strip<S>& strip, int num_records,
                                                  const typename Scheme<V, kType>::Input* x, const Tiles& tiles,
                                                  StripSums<V, S, kIsOne ? R : kMaxRows>& acc) {
  constexpr Format kFormat = format_of(kType);
  constexpr int kGroups = record_groups(kType);
  constexpr std::size_t kRecordBytes = record_bytes(kFormat);
  constexpr std::size_t kGroupBytes = kRecordBytes / kGroups;
  constexpr int kScaleStep = kBlockRows * kFormat.fine_scales / kGroups;
  std::size_t offset = 0;
  for (int i = 0; i < num_records; ++i) {
    const std::uint8_t* record = strip.first + i * kRecordBytes;
    GroupPlace place{record + record_code_offset(kFormat), record + (kGroups > 1 ? fine_scale_offset(kFormat) : 0)};
    const auto add = [&](auto& sums) __attribute__((always_inline)) {
      strip.template prefetch<V>(offset, kGroupBytes);
      unroll<S>([&]<int s>(Index<s>) __attribute__((always_inline)) {
        const GroupPlace at{place.codes + s * strip.distance, place.scales + s * strip.distance};
        for_each_tile<R, kIsOne>(tiles, [&]<int r>(Index<r>, int first) __attribute__((always_inline)) {
          add_group<V, kType, r>(at, x + first, sums.of[s] + first);
        });
      });
      place = {place.codes + group_code_bytes(kFormat), place.scales + kScaleStep};
      offset += kGroupBytes;
      x += kMaxRows;
    };
    if constexpr (kGroups == 1) {
      add(acc);
    } else {
      StripSums<V, S, kIsOne ? R : kMaxRows> parts;
      for (int group = 0; group < kGroups; ++group) add(parts);
      const auto* first_x = x - kGroups * kMaxRows;
      for (int s = 0; s < S; ++s, record += strip.distance) {
        for_each_tile<R, kIsOne>(tiles, [&]<int r>(Index<r>, int first) __attribute__((always_inline)) {
          fold_record<V, kType, r>(record, first_x + first, parts.of[s] + first, acc.of[s] + first);
        });
      }
    }
  }
}

static inline const QuantizedGroup* inputs_of(const Activations& x, const QuantizedGroup*) { return x.quantized; }
static inline const SplitGroup* inputs_of(const Activations& x, const SplitGroup*) { return x.split; }

// Some blocks for rows [row, row + count) of a panel, S streams at a time.
template <class V, WeightType kType, int S, int R, bool kIsOne>
inline void multiply_blocks(const Product& p, const Blocks& blocks, int row, int count, const Tiles& tiles) {
  if constexpr (S > 1) {
    if (blocks.num_streams % S != 0) return multiply_blocks<V, kType, 1, R, kIsOne>(p, blocks, row, count, tiles);
  }
  using Input = typename Scheme<V, kType>::Input;
  const Input* x = inputs_of(p.inputs, static_cast<const Input*>(nullptr)) + group_index(p.inputs, row, 0);
  const std::size_t block_bytes = p.weights.block_bytes;
  for (int stream = 0; stream < blocks.num_streams; stream += S) {
    for (int b = blocks.first + stream * blocks.stride; b < blocks.last + stream * blocks.stride; ++b) {
      StripSums<V, S, kIsOne ? R : kMaxRows> acc;
      multiply_strip<V, kType, S, R, kIsOne>({p.weights.data + b * block_bytes, blocks.stride * block_bytes},
                                             p.weights.columns / format_of(kType).columns, x, tiles, acc);
      for (int s = 0; s < S; ++s) {
        const int output = (b + s * blocks.stride) * kBlockRows;
        for (int m = 0; m < count; ++m) {
          store_outputs<V>(acc.of[s][m], p.num_outputs - output, p.out + (row + m) * p.out_stride + output);
        }
      }
    }
  }
}

// One tile of `count` rows of a panel.
template <class V, WeightType kType, int R>
inline void multiply_tile(const Product& p, const Blocks& blocks, int row, int count) {
  if constexpr (R > 1) {
    if (count < R) return multiply_tile<V, kType, R - 1>(p, blocks, row, count);
  }
  multiply_blocks<V, kType, R == 1 ? strip_blocks<V, kType>() : 1, R, true>(p, blocks, row, count, {1, 0});
}

// `count` rows of a panel in as few tiles as possible, as even as possible.
template <class V, WeightType kType, int R>
inline void multiply_tiles(const Product& p, const Blocks& blocks, int row, int count) {
  constexpr int kLargest = Scheme<V, kType>::kTiles.of_several;
  const int num_tiles = (count + kLargest - 1) / kLargest;
  if constexpr (2 * (R - 1) >= kLargest && R > 1) {
    if (count <= num_tiles * (R - 1)) return multiply_tiles<V, kType, R - 1>(p, blocks, row, count);
  }
  const int num_small = num_tiles * R - count;
  multiply_blocks<V, kType, 1, R, false>(p, blocks, row, count, {num_tiles - num_small, num_small});
}

template <class V, WeightType kType>
inline void multiply_quantized(const Product& p, const Blocks& blocks) {
  constexpr TileSizes kTiles = Scheme<V, kType>::kTiles;
  for (int row = 0; row < p.num_rows; row += kMaxRows) {
    const int count = p.num_rows - row < kMaxRows ? p.num_rows - row : kMaxRows;
    if (count <= kTiles.alone) {
      multiply_tile<V, kType, kTiles.alone>(p, blocks, row, count);
    } else {
      multiply_tiles<V, kType, kTiles.of_several>(p, blocks, row, count);
    }
  }
}

}  // namespace paceline::kernels

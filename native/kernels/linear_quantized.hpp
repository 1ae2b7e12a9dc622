// Products with quantised weights: which blocks are read side by side, and in which tiles rows meet them.
#pragma once

#include "kernels/group_products.hpp"

namespace paceline::kernels {

// How far ahead of their use weights are asked for, in bytes of each stream.
inline constexpr std::size_t kPrefetchDistance = 1024;

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

// The weighted sum of a chunk's values: position by position, each channel on its own.
#pragma once

#include "kernels/attention_view.hpp"

namespace paceline::kernels {

// Positions [first, last) of a chunk that have their own slots, and the queries that see all of them.
struct ValueRange {
  const Chunk& chunk;
  int first, last;
  const float* const* weights;
  float* const* sums;
  const Chunk* ahead;  // keys to ask memory for meanwhile, or null
};

// sums += weight * value for the position whose values begin at `values`.
template <class Isa, int Q, int C>
[[gnu::always_inline]] inline void add_position(const std::uint16_t* values, const float* const* weights, int at,
                                                typename Isa::F8 (&sums)[Q][C]) {
  using F8 = typename Isa::F8;
  if constexpr (Q <= 3) {  // one vector of channels at a time
    F8 weight[Q];
    for (int i = 0; i < Q; ++i) weight[i] = Isa::splat(weights[i][at]);
    for (int j = 0; j < C; ++j) {
      const F8 value = Isa::load_half(values + 8 * j);
      for (int i = 0; i < Q; ++i) sums[i][j] = Isa::fma(value, weight[i], sums[i][j]);
    }
  } else {  // one query at a time
    F8 value[C];
    for (int j = 0; j < C; ++j) value[j] = Isa::load_half(values + 8 * j);
    for (int i = 0; i < Q; ++i) {
      const F8 weight = Isa::splat(weights[i][at]);
      for (int j = 0; j < C; ++j) sums[i][j] = Isa::fma(value[j], weight, sums[i][j]);
    }
  }
}

// sums[c] += weight * value for channels [c, c + 8 C).
template <class Isa, int Q, int C>
inline void weigh_channels(const ValueRange& range, int head_dim, int c) {
  using F8 = typename Isa::F8;
  F8 sums[Q][C];
  for (int i = 0; i < Q; ++i) {
    for (int j = 0; j < C; ++j) sums[i][j] = Isa::load(range.sums[i] + c + 8 * j);
  }
  const int share_begin = kPageSize * c;  // every pass over the channels asks for its share of the keys
  const int share_end = kPageSize * (c + 8 * C);
  for (int at = range.first; at < range.last;) {
    const int block = at / kPageSize;
    const int end = range.last < (block + 1) * kPageSize ? range.last : (block + 1) * kPageSize;
    if (range.ahead != nullptr && block < range.ahead->num_blocks) {
      for (int i = share_begin; i < share_end; i += 32) Isa::prefetch(range.ahead->blocks[block] + i);
    }
    const std::uint16_t* values = range.chunk.blocks[block] + (kPageSize + at % kPageSize) * head_dim + c;
    for (; at + 4 <= end; at += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i, values += head_dim) add_position<Isa, Q, C>(values, range.weights, at + i, sums);
    }
    for (; at < end; ++at, values += head_dim) add_position<Isa, Q, C>(values, range.weights, at, sums);
  }
  for (int i = 0; i < Q; ++i) {
    for (int j = 0; j < C; ++j) Isa::store(range.sums[i] + c + 8 * j, sums[i][j]);
  }
}

template <class Isa>
inline void weigh_range(const ValueRange& range, int num_queries, int head_dim) {
  if (range.first >= range.last) return;
  with_count(num_queries, [&]<int Q>() {
    constexpr int kVectors = Q == 1 ? 8 : Q <= 3 ? 4 : 2;
    int c = 0;
    for (; c + 8 * kVectors <= head_dim; c += 8 * kVectors) weigh_channels<Isa, Q, kVectors>(range, head_dim, c);
    for (; c < head_dim; c += 8) weigh_channels<Isa, Q, 1>(range, head_dim, c);
  });
}

// Positions [first, last) for queries [i, end) of the tile, which belong to one row.
template <class Isa>
inline void weigh_row(int head_dim, const LayerStore& store, int kv_head, const Chunk& chunk, const Tile& tile, int i,
                      int end, int first, int last) {
  const int straight = tile.straight[i];
  weigh_range<Isa>({chunk, first, last < straight ? last : straight, tile.scores + i, tile.sums + i, nullptr}, end - i,
                   head_dim);
  Chunk slot_chunk;
  const float* weights[kTileQueries];
  for (int at = first > straight ? first : straight; at < last; ++at) {
    const int slot = tile.rows[i]->path[at - straight];
    slot_chunk.blocks[0] = page_head(store, *tile.rows[i], slot, kv_head) + slot % kPageSize * head_dim;
    for (int q = i; q < end; ++q) weights[q - i] = tile.scores[q] + at;
    weigh_range<Isa>({slot_chunk, 0, 1, weights, tile.sums + i, nullptr}, end - i, head_dim);
  }
}

// Adds up the chunk's values for every query of the tile. Positions that all see go together; what single rows see
// before and behind them is added for those alone: nothing that a row must not see is even multiplied by zero.
template <class Isa>
inline void weigh_chunk(int head_dim, const LayerStore& store, int kv_head, const Chunk& chunk, const Tile& tile,
                        const Chunk* ahead) {
  int first = 0, last = kChunk;
  for (int i = 0; i < tile.count; ++i) {
    for (int c = 0; c < head_dim; c += 8) Isa::store(tile.sums[i] + c, Isa::zero());
    if (tile.first[i] > first) first = tile.first[i];
    if (tile.last[i] < last) last = tile.last[i];
    if (tile.straight[i] < last) last = tile.straight[i];
  }
  if (last < first) last = first;
  for (int i = 0, end = 0; i < tile.count; i = end) {
    end = end_of_row(tile, i);
    const int stop = first < tile.last[i] ? first : tile.last[i];
    weigh_row<Isa>(head_dim, store, kv_head, chunk, tile, i, end, tile.first[i], stop);
  }
  weigh_range<Isa>({chunk, first, last, tile.scores, tile.sums, ahead}, tile.count, head_dim);
  for (int i = 0, end = 0; i < tile.count; i = end) {
    end = end_of_row(tile, i);
    const int begin = last > tile.first[i] ? last : tile.first[i];
    weigh_row<Isa>(head_dim, store, kv_head, chunk, tile, i, end, begin, tile.last[i]);
  }
}

}  // namespace paceline::kernels

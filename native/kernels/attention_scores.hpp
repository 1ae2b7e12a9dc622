// Scores of a chunk's positions and their softmax.
//
// A score is one lane's sum over the head's channels, from channel 0 on, whatever other queries and positions there
// are. The weights of a chunk are added lane by lane over blocks of 8 positions.
#pragma once

#include "kernels/attention_view.hpp"
#include "kernels/elementwise.hpp"

namespace paceline::kernels {

// The keys of positions [first, first + kPageSize) as [head_dim][kPageSize]: in place where the positions are a page's
// own slots, otherwise gathered. Lanes past the visible positions hold anything.
static inline const std::uint16_t* keys_of_block(int head_dim, const LayerStore& store, const RowView& row, int kv_head,
                                                 int first, std::uint16_t* scratch) {
  const int last = first + kPageSize < row.num_visible ? first + kPageSize : row.num_visible;
  if (last <= row.num_straight) return page_head(store, row, first, kv_head);
  if (first < row.num_straight) {
    __builtin_memcpy(scratch, page_head(store, row, first, kv_head), sizeof *scratch * kPageSize * head_dim);
  }
  for (int position = first < row.num_straight ? row.num_straight : first; position < last; ++position) {
    const int slot = slot_of(row, position);
    const std::uint16_t* keys = page_head(store, row, slot, kv_head) + slot % kPageSize;
    for (int c = 0; c < head_dim; ++c) scratch[c * kPageSize + position - first] = keys[c * kPageSize];
  }
  return scratch;
}

// sums += key * query for channel c.
template <class Isa, int Q, int B>
[[gnu::always_inline]] inline void add_channel(const std::uint16_t* const* keys, const float* const* queries, int c,
                                               typename Isa::F8 (&sums)[Q][2 * B]) {
  using F8 = typename Isa::F8;
  if constexpr (Q <= 3) {  // one key at a time
    F8 q[Q];
    for (int i = 0; i < Q; ++i) q[i] = Isa::splat(queries[i][c]);
    for (int b = 0; b < 2 * B; ++b) {
      const F8 key = Isa::load_half(keys[b / 2] + c * kPageSize + b % 2 * 8);
      for (int i = 0; i < Q; ++i) sums[i][b] = Isa::fma(key, q[i], sums[i][b]);
    }
  } else {  // one query at a time
    F8 key[2 * B];
    for (int b = 0; b < 2 * B; ++b) key[b] = Isa::load_half(keys[b / 2] + c * kPageSize + b % 2 * 8);
    for (int i = 0; i < Q; ++i) {
      const F8 q = Isa::splat(queries[i][c]);
      for (int b = 0; b < 2 * B; ++b) sums[i][b] = Isa::fma(key[b], q, sums[i][b]);
    }
  }
}

// Scores of Q queries at kPageSize * B positions from `at` on, whose keys are `keys`. Q * B * 2 sums: enough that none
// waits for the one before, few enough for the registers.
template <class Isa, int Q, int B>
inline void score_blocks(const AttentionShape& shape, const std::uint16_t* const* keys, const float* const* queries,
                         float* const* scores, int at) {
  using F8 = typename Isa::F8;
  F8 sums[Q][2 * B];
  for (auto& query : sums) {
    for (auto& sum : query) sum = Isa::zero();
  }
  for (int start = 0; start < shape.head_dim; start += 8) {
#pragma GCC unroll 4
    for (int c = start; c < start + 8; ++c) add_channel<Isa, Q, B>(keys, queries, c, sums);
  }
  const F8 scale = Isa::splat(shape.scale);
  for (int i = 0; i < Q; ++i) {
    for (int b = 0; b < 2 * B; ++b) Isa::store(scores[i] + at + 8 * b, Isa::mul(sums[i][b], scale));
  }
}

template <class Isa>
inline void prefetch_halves(const std::uint16_t* data, int count) {
  for (int i = 0; i < count; i += 32) Isa::prefetch(data + i);
}

// What to ask memory for while scores are computed: these come early in a task, values and later keys have their turn.
struct ScorePrefetch {
  bool has_keys = false;    // of the block after the next
  bool has_values = false;  // of the same block
};

template <class Isa, int Q>
inline void score_straight(const AttentionShape& shape, const Chunk& chunk, const Tile& tile, int first, int last,
                           const ScorePrefetch& prefetch) {
  constexpr int kBlocks = Q == 1 ? 4 : Q <= 3 ? 2 : 1;
  const int size = kPageSize * shape.head_dim;
  for (int block = first; block < last;) {
    const int count = block + kBlocks <= last ? kBlocks : 1;
    for (int i = block; i < block + count; ++i) {
      if (prefetch.has_keys && i + kBlocks < last) prefetch_halves<Isa>(chunk.blocks[i + kBlocks], size);
      if (prefetch.has_values) prefetch_halves<Isa>(chunk.blocks[i] + size, size);
    }
    if (count == kBlocks) {
      score_blocks<Isa, Q, kBlocks>(shape, chunk.blocks + block, tile.queries, tile.scores, block * kPageSize);
    } else {
      score_blocks<Isa, Q, 1>(shape, chunk.blocks + block, tile.queries, tile.scores, block * kPageSize);
    }
    block += count;
  }
}

// The scores of blocks that hold positions of a tree, row by row.
template <class Isa>
inline void score_paths(const AttentionShape& shape, const LayerStore& store, int kv_head, int start, int first_block,
                        const Tile& tile, std::uint16_t* scratch) {
  for (int i = 0, end = 0; i < tile.count; i = end) {
    end = end_of_row(tile, i);
    const int first = tile.first[i] / kPageSize > first_block ? tile.first[i] / kPageSize : first_block;
    for (int at = first * kPageSize; at < tile.last[i]; at += kPageSize) {
      const std::uint16_t* keys = keys_of_block(shape.head_dim, store, *tile.rows[i], kv_head, start + at, scratch);
      with_count(end - i,
                 [&]<int Q>() { score_blocks<Isa, Q, 1>(shape, &keys, tile.queries + i, tile.scores + i, at); });
    }
  }
}

// The scores that the tile's queries see of the chunk, and others beside them.
template <class Isa>
inline void score_chunk(const AttentionShape& shape, const LayerStore& store, int kv_head, const Chunk& chunk,
                        const Tile& tile, const ScorePrefetch& prefetch, std::uint16_t* scratch) {
  int first = kChunk, last = 0, num_shared = chunk.num_blocks;
  for (int i = 0; i < tile.count; ++i) {
    if (tile.first[i] < first) first = tile.first[i];
    if (tile.last[i] > last) last = tile.last[i];
    if (tile.last[i] > tile.straight[i]) {  // a tree's block may begin in the straight part
      num_shared = clamp(num_shared, 0, clamp(tile.straight[i], 0, kChunk) / kPageSize);
    }
  }
  num_shared = clamp(num_shared, 0, (last + kPageSize - 1) / kPageSize);
  with_count(tile.count,
             [&]<int Q>() { score_straight<Isa, Q>(shape, chunk, tile, first / kPageSize, num_shared, prefetch); });
  if (num_shared * kPageSize < last) score_paths<Isa>(shape, store, kv_head, chunk.start, num_shared, tile, scratch);
}

// Turns the scores of positions [first, last) into exponentials relative to their maximum, in place. The other entries
// of their blocks of 8 are set to zero, which the sum then adds exactly.
template <class Isa>
inline void softmax(float* scores, int first, int last, float* maximum, float* total) {
  const int begin = first / 8 * 8;
  const int end = (last + 7) / 8 * 8;
  for (int i = begin; i < first; ++i) scores[i] = scores[first];
  for (int i = last; i < end; ++i) scores[i] = scores[first];
  auto lanes = Isa::load(scores + begin);
  for (int i = begin + 8; i < end; i += 8) lanes = Isa::max(lanes, Isa::load(scores + i));
  *maximum = Isa::maximum(lanes);
  const auto largest = Isa::splat(*maximum);
  auto sum = Isa::zero();
  for (int i = begin; i < end; i += 8) {
    auto weights = exponential<Isa>(Isa::sub(Isa::load(scores + i), largest));
    Isa::store(scores + i, weights);
    if (i < first || i + 8 > last) {
      for (int j = i; j < first; ++j) scores[j] = 0.0f;
      for (int j = last > i ? last : i; j < i + 8; ++j) scores[j] = 0.0f;
      weights = Isa::load(scores + i);
    }
    sum = Isa::add(sum, weights);
  }
  *total = Isa::sum(sum);
}

}  // namespace paceline::kernels

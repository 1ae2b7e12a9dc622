// Which positions queries see, and where their keys and values lie.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// The first position that the row sees.
static inline int first_visible(const AttentionShape& shape, const RowView& row) {
  return shape.window > 0 && row.num_visible > shape.window ? row.num_visible - shape.window : 0;
}

static inline int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

static inline int slot_of(const RowView& row, int position) {
  return position < row.num_straight ? position : row.path[position - row.num_straight];
}

// Keys of (page of `slot`, kv_head); its values follow kPageSize * head_dim halves later.
static inline const std::uint16_t* page_head(const LayerStore& store, const RowView& row, int slot, int kv_head) {
  return store.base + row.pages[slot / kPageSize] * store.page_stride + kv_head * store.head_stride;
}

// The blocks of kPageSize positions of a chunk as they lie in the pages, keys first: those that any of some rows of one
// segment sees outside its tree.
struct Chunk {
  int start = 0;  // first position
  int num_blocks = 0;
  const std::uint16_t* blocks[kChunk / kPageSize];
};

static inline Chunk make_chunk(const LayerStore& store, const RowView& row, int num_straight, int index, int kv_head) {
  Chunk chunk;
  chunk.start = index * kChunk;
  const int count = clamp(num_straight - chunk.start, 0, kChunk);
  chunk.num_blocks = (count + kPageSize - 1) / kPageSize;
  for (int i = 0; i < chunk.num_blocks; ++i) {
    chunk.blocks[i] = page_head(store, row, chunk.start + i * kPageSize, kv_head);
  }
  return chunk;
}

// Queries that go through a chunk together, all of which see something of it. Positions count from the chunk's start.
struct Tile {
  int count = 0;
  const RowView* rows[kTileQueries];
  int first[kTileQueries], last[kTileQueries];  // what the query sees
  int straight[kTileQueries];                   // positions below have their own slots; may be negative
  const float* queries[kTileQueries];
  float* scores[kTileQueries];  // of the chunk's positions
  float* sums[kTileQueries];    // of weighted values
  float maxima[kTileQueries], totals[kTileQueries];
};

// Past the last query that belongs to the same row as query i.
static inline int end_of_row(const Tile& tile, int i) {
  int end = i + 1;
  while (end < tile.count && tile.rows[end] == tile.rows[i]) ++end;
  return end;
}

// Calls f.template operator()<n>() with the number n of queries, 1 to kTileQueries.
template <class F>
inline void with_count(int n, const F& f) {
  switch (n) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    default:
      return f.template operator()<kTileQueries>();
  }
}

}  // namespace paceline::kernels

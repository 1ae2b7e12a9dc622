// Attention over paged float16 keys and values: queries of one key/value head, in tiles that share what they read.
//
// A query goes through the chunks of kChunk positions that it sees, in order. Each gives a partial: weighted values,
// largest score, sum of weights. Partials are put together one by one, in order. So a row's result depends on what it
// sees alone, not on pages, slots, tiles, tasks or threads. Positions that are not visible are skipped, whatever their
// slots hold: blocks before a window are not even read.
#pragma once

#include "kernels/attention_scores.hpp"
#include "kernels/attention_values.hpp"

namespace paceline::kernels {

// Adds the partial (sums, maximum, total) to what the chunks before it gave.
template <class Isa>
inline void add_partial(int head_dim, const float* sums, float maximum, float total, float* out, float* out_maximum,
                        float* out_total) {
  const float largest = maximum > *out_maximum ? maximum : *out_maximum;  // one that is NaN shows in its total
  float factors[8] = {*out_maximum - largest, maximum - largest};
  Isa::store(factors, exponential<Isa>(Isa::load(factors)));
  const auto old_factor = Isa::splat(factors[0]);
  const auto new_factor = Isa::splat(factors[1]);
  for (int c = 0; c < head_dim; c += 8) {
    Isa::store(out + c, Isa::fma(Isa::load(out + c), old_factor, Isa::mul(Isa::load(sums + c), new_factor)));
  }
  *out_total = *out_total * factors[0] + total * factors[1];
  *out_maximum = largest;
}

template <class Isa>
inline void divide(int head_dim, float total, float* out) {
  const auto inverse = Isa::splat(1.0f / total);
  for (int c = 0; c < head_dim; c += 8) Isa::store(out + c, Isa::mul(Isa::load(out + c), inverse));
}

template <class Isa>
void merge(const AttentionShape& shape, const RowView& row, const float* partials, std::size_t stride, float* out) {
  const int head_dim = shape.head_dim;
  __builtin_memcpy(out, partials, sizeof *out * head_dim);
  float maximum = partials[head_dim];
  float total = partials[head_dim + 1];
  for (int chunk = first_visible(shape, row) / kChunk + 1; chunk * kChunk < row.num_visible; ++chunk) {
    partials += stride;
    add_partial<Isa>(head_dim, partials, partials[head_dim], partials[head_dim + 1], out, &maximum, &total);
  }
  divide<Isa>(head_dim, total, out);
}

// A task on its way through the chunks.
template <class Isa>
class Attention {
 public:
  Attention(const AttentionShape& shape, const LayerStore& store, const AttentionRows& rows, const AttentionTask& task,
            const AttentionScratch& scratch)
      : shape_(shape),
        store_(store),
        rows_(rows),
        task_(task),
        queries_(task.queries),
        scratch_(scratch),
        group_(shape.num_heads / shape.num_kv_heads),
        num_tiles_((queries_.last - queries_.first + kTileQueries - 1) / kTileQueries) {
    for (int i = queries_.first; i < queries_.last; i += group_) see_straight(i);
    see_straight(queries_.last - 1);
  }

  void run() {
    Chunk chunk = chunk_at(task_.first_chunk);
    for (int index = task_.first_chunk; index < task_.last_chunk; ++index) {
      const Chunk next = chunk_at(index + 1);
      for (int tile = 0; tile < num_tiles_; ++tile) attend_tile(chunk, next, index, tile);
      chunk = next;
    }
    if (task_.partials != nullptr) return;
    for (int i = queries_.first; i < queries_.last; ++i) divide<Isa>(shape_.head_dim, total_of(i)[1], out_of(i));
  }

 private:
  int row_of(int query) const { return queries_.first_row + query / group_; }
  int head_of(int query) const { return queries_.kv_head * group_ + query % group_; }
  float* out_of(int query) const {
    return rows_.out + row_of(query) * rows_.out_stride + head_of(query) * shape_.head_dim;
  }
  // Largest score and sum of weights so far.
  float* total_of(int query) const { return scratch_.totals + (query - queries_.first) * 2; }
  float* partial_of(int query, int chunk) const {
    const int num_queries = queries_.last - queries_.first;
    const std::size_t index = (chunk - task_.first_chunk) * num_queries + query - queries_.first;
    return task_.partials + index * partial_size(shape_.head_dim);
  }

  void see_straight(int query) {
    const RowView& row = rows_.views[row_of(query)];
    const int count = row.num_straight < row.num_visible ? row.num_straight : row.num_visible;
    if (count > num_straight_) num_straight_ = count;
  }

  Chunk chunk_at(int index) const {
    return make_chunk(store_, rows_.views[queries_.first_row], num_straight_, index, queries_.kv_head);
  }

  // The queries of a tile that see something of the chunk. What they get goes to the partials, or, where there are
  // none, to the output at once if it is a row's first, and otherwise to the scratch.
  Tile make_tile(int start, int chunk, int first, int last, int (&queries)[kTileQueries]) const {
    Tile tile;
    for (int query = first; query < last; ++query) {
      const RowView& row = rows_.views[row_of(query)];
      const int visible = first_visible(shape_, row);
      if (row.num_visible <= start || visible >= start + kChunk) continue;
      const int i = tile.count++;
      queries[i] = query;
      tile.rows[i] = &row;
      tile.first[i] = clamp(visible - start, 0, kChunk);
      tile.last[i] = clamp(row.num_visible - start, 0, kChunk);
      tile.straight[i] = row.num_straight - start;
      tile.queries[i] = rows_.queries + row_of(query) * rows_.query_stride + head_of(query) * shape_.head_dim;
      tile.scores[i] = scratch_.scores + i * kChunk;
      tile.sums[i] = task_.partials != nullptr   ? partial_of(query, chunk)
                     : visible / kChunk == chunk ? out_of(query)
                                                 : scratch_.partials + i * partial_size(shape_.head_dim);
    }
    return tile;
  }

  void attend_tile(const Chunk& chunk, const Chunk& next, int index, int tile_index) const {
    const int num_queries = queries_.last - queries_.first;
    int queries[kTileQueries];
    Tile tile = make_tile(chunk.start, index, queries_.first + num_queries * tile_index / num_tiles_,
                          queries_.first + num_queries * (tile_index + 1) / num_tiles_, queries);
    if (tile.count == 0) return;
    const ScorePrefetch prefetch{index == task_.first_chunk && tile_index == 0, tile_index == 0};
    score_chunk<Isa>(shape_, store_, queries_.kv_head, chunk, tile, prefetch, scratch_.keys);
    for (int i = 0; i < tile.count; ++i) {
      softmax<Isa>(tile.scores[i], tile.first[i], tile.last[i], &tile.maxima[i], &tile.totals[i]);
    }
    weigh_chunk<Isa>(shape_.head_dim, store_, queries_.kv_head, chunk, tile,
                     tile_index == num_tiles_ - 1 ? &next : nullptr);
    for (int i = 0; i < tile.count; ++i) keep(tile, i, queries[i], index);
  }

  void keep(const Tile& tile, int i, int query, int chunk) const {
    float* total = task_.partials != nullptr ? tile.sums[i] + shape_.head_dim : total_of(query);
    if (task_.partials != nullptr || first_visible(shape_, *tile.rows[i]) / kChunk == chunk) {
      total[0] = tile.maxima[i];
      total[1] = tile.totals[i];
      return;
    }
    add_partial<Isa>(shape_.head_dim, tile.sums[i], tile.maxima[i], tile.totals[i], out_of(query), &total[0],
                     &total[1]);
  }

  const AttentionShape& shape_;
  const LayerStore& store_;
  const AttentionRows& rows_;
  const AttentionTask& task_;
  const AttentionQueries& queries_;
  const AttentionScratch& scratch_;
  const int group_;
  const int num_tiles_;
  int num_straight_ = 0;  // positions that any of the rows sees outside its tree
};

template <class Isa>
void attend(const AttentionShape& shape, const LayerStore& store, const AttentionRows& rows, const AttentionTask& task,
            const AttentionScratch& scratch) {
  Attention<Isa>(shape, store, rows, task, scratch).run();
}

template <class Isa>
void store_kv(const float* key, const float* value, int head_dim, std::uint16_t* head, int offset) {
  std::uint16_t* values = head + kPageSize * head_dim + offset * head_dim;
  for (int c = 0; c < head_dim; c += 8) {
    std::uint16_t halves[8];
    Isa::store_half(halves, Isa::load(key + c));
    for (int i = 0; i < 8; ++i) head[(c + i) * kPageSize + offset] = halves[i];
    Isa::store_half(values + c, Isa::load(value + c));
  }
}

}  // namespace paceline::kernels

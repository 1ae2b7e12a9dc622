// Attention of one row over paged float16 keys and values.
//
// Scores are computed for 16 logical positions at a time, each in a lane of its own, so a score is the same sum over
// the head's channels wherever its position lies. The softmax sums lane by lane over blocks of 8 positions from
// position 0; the values are added position by position. Nothing depends on pages, slots, chunks or threads, and
// positions that are not visible are skipped, whatever their slots hold: blocks before a window are not even read.
#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"

namespace paceline::kernels {

// The first position that the row sees.
static inline int first_visible(const AttentionShape& shape, const RowView& row) {
  return shape.window > 0 && row.num_visible > shape.window ? row.num_visible - shape.window : 0;
}

// Where the block of `size` positions with `position` in it begins.
static inline int block_start(int position, int size) { return position - position % size; }

static inline int slot_of(const RowView& row, int position) {
  return position < row.num_straight ? position : row.path[position - row.num_straight];
}

// Keys of (page of `slot`, kv_head); its values follow kPageSize * head_dim halves later.
static inline const std::uint16_t* page_head(const LayerStore& store, const RowView& row, int slot, int kv_head) {
  return store.base + row.pages[slot / kPageSize] * store.page_stride + kv_head * store.head_stride;
}

// The keys of positions [first, first + 16) as [head_dim][16]: in place where the positions are a page's own slots,
// otherwise gathered. Lanes past the visible positions hold anything.
static inline const std::uint16_t* keys_of_block(const AttentionShape& shape, const LayerStore& store,
                                                 const RowView& row, int kv_head, int first, std::uint16_t* scratch) {
  const int last = first + kPageSize < row.num_visible ? first + kPageSize : row.num_visible;
  if (last <= row.num_straight) return page_head(store, row, first, kv_head);
  for (int position = first; position < last; ++position) {
    const int slot = slot_of(row, position);
    const std::uint16_t* keys = page_head(store, row, slot, kv_head) + slot % kPageSize;
    for (int c = 0; c < shape.head_dim; ++c) scratch[c * kPageSize + position - first] = keys[c * kPageSize];
  }
  return scratch;
}

// Asks for the keys of the block from `first` on. Pages lie anywhere: no hardware prefetcher finds the next one.
template <class Isa>
inline void prefetch_keys(const AttentionShape& shape, const LayerStore& store, const RowView& row, int kv_head,
                          int first) {
  if (first >= row.num_straight) return;
  const std::uint16_t* keys = page_head(store, row, first, kv_head);
  for (int i = 0; i < kPageSize * shape.head_dim; i += 32) Isa::prefetch(keys + i);
}

// The same for channels [c, c + count) of the block's values.
template <class Isa>
inline void prefetch_values(const AttentionShape& shape, const LayerStore& store, const RowView& row, int kv_head,
                            int first, int c, int count) {
  if (first >= row.num_straight) return;
  const std::uint16_t* values = page_head(store, row, first, kv_head) + kPageSize * shape.head_dim + c;
  for (int i = 0; i < kPageSize; ++i) {
    for (int k = 0; k < count; k += 32) Isa::prefetch(values + i * shape.head_dim + k);
  }
}

// Scores of 16 positions. A score is (sum over even channels) + (sum over odd channels): two chains of additions each,
// so that one head alone keeps the units busy too.
template <class Isa, int H>
inline void score_block(const AttentionShape& shape, const std::uint16_t* keys, const float* queries, float* scores,
                        std::size_t stride) {
  typename Isa::F8 low[H][2];
  typename Isa::F8 high[H][2];
  for (int h = 0; h < H; ++h) low[h][0] = low[h][1] = high[h][0] = high[h][1] = Isa::zero();
  for (int c = 0; c < shape.head_dim; c += 2) {
    for (int odd = 0; odd < 2; ++odd) {
      const auto k0 = Isa::load_half(keys + (c + odd) * kPageSize);
      const auto k1 = Isa::load_half(keys + (c + odd) * kPageSize + 8);
      for (int h = 0; h < H; ++h) {
        const auto q = Isa::splat(queries[h * shape.head_dim + c + odd]);
        low[h][odd] = Isa::fma(k0, q, low[h][odd]);
        high[h][odd] = Isa::fma(k1, q, high[h][odd]);
      }
    }
  }
  const auto scale = Isa::splat(shape.scale);
  for (int h = 0; h < H; ++h) {
    Isa::store(scores + h * stride, Isa::mul(Isa::add(low[h][0], low[h][1]), scale));
    Isa::store(scores + h * stride + 8, Isa::mul(Isa::add(high[h][0], high[h][1]), scale));
  }
}

// Turns the scores of positions [first, count) into exponentials relative to their maximum, in place, and returns their
// sum. The other entries of their blocks of 8 are set to zero, which the sum then adds exactly.
template <class Isa>
inline float softmax(float* scores, int first, int count) {
  const int begin = block_start(first, 8);
  const int padded = (count + 7) / 8 * 8;
  for (int i = begin; i < first; ++i) scores[i] = scores[first];
  for (int i = count; i < padded; ++i) scores[i] = scores[first];
  auto lanes = Isa::load(scores + begin);
  for (int i = begin + 8; i < padded; i += 8) lanes = Isa::max(lanes, Isa::load(scores + i));
  const auto maximum = Isa::splat(Isa::maximum(lanes));
  auto total = Isa::zero();
  for (int i = begin; i < padded; i += 8) {
    Isa::store(scores + i, exponential<Isa>(Isa::sub(Isa::load(scores + i), maximum)));
    for (int j = i; j < first; ++j) scores[j] = 0.0f;
    for (int j = count; j < i + 8; ++j) scores[j] = 0.0f;
    total = Isa::add(total, Isa::load(scores + i));
  }
  return Isa::sum(total);
}

// The values of up to 16 positions from `first` on, one pointer each.
static inline void values_of_block(const AttentionShape& shape, const LayerStore& store, const RowView& row,
                                   int kv_head, int first, int count, const std::uint16_t* (&out)[kPageSize]) {
  const int values = kPageSize * shape.head_dim;
  if (first + count <= row.num_straight) {
    const std::uint16_t* base = page_head(store, row, first, kv_head) + values;
    for (int i = 0; i < count; ++i) out[i] = base + i * shape.head_dim;
    return;
  }
  for (int i = 0; i < count; ++i) {
    const int slot = slot_of(row, first + i);
    out[i] = page_head(store, row, slot, kv_head) + values + slot % kPageSize * shape.head_dim;
  }
}

// out[h][c] for channels [c, c + 8 C) = sum over visible positions of weight * value, divided by the total.
template <class Isa, int H, int C>
inline void weigh_values(const AttentionShape& shape, const LayerStore& store, const RowView& row,
                         const AttentionScratch& scratch, int kv_head, int c, const float* totals, float* out) {
  typename Isa::F8 acc[H][C];
  for (auto& head : acc) {
    for (auto& part : head) part = Isa::zero();
  }
  const int visible = first_visible(shape, row);
  for (int first = block_start(visible, kPageSize); first < row.num_visible; first += kPageSize) {
    const int count = row.num_visible - first < kPageSize ? row.num_visible - first : kPageSize;
    const std::uint16_t* values[kPageSize];
    values_of_block(shape, store, row, kv_head, first, count, values);
    prefetch_values<Isa>(shape, store, row, kv_head, first + kPageSize, c, 8 * C);
    for (int i = visible > first ? visible - first : 0; i < count; ++i) {
      for (int j = 0; j < C; ++j) {
        const auto v = Isa::load_half(values[i] + c + 8 * j);
        for (int h = 0; h < H; ++h) {
          acc[h][j] = Isa::fma(v, Isa::splat(scratch.scores[h * scratch.score_stride + first + i]), acc[h][j]);
        }
      }
    }
  }
  for (int h = 0; h < H; ++h) {
    const auto inverse = Isa::splat(1.0f / totals[h]);
    for (int j = 0; j < C; ++j) Isa::store(out + h * shape.head_dim + c + 8 * j, Isa::mul(acc[h][j], inverse));
  }
}

template <class Isa, int H>
inline void attend_heads(const AttentionShape& shape, const LayerStore& store, const RowView& row,
                         const AttentionScratch& scratch, const float* queries, int kv_head, float* out) {
  const int visible = first_visible(shape, row);
  for (int first = block_start(visible, kPageSize); first < row.num_visible; first += kPageSize) {
    const std::uint16_t* keys = keys_of_block(shape, store, row, kv_head, first, scratch.keys);
    prefetch_keys<Isa>(shape, store, row, kv_head, first + kPageSize);
    score_block<Isa, H>(shape, keys, queries, scratch.scores + first, scratch.score_stride);
  }
  float totals[H];
  for (int h = 0; h < H; ++h) {
    totals[h] = softmax<Isa>(scratch.scores + h * scratch.score_stride, visible, row.num_visible);
  }
  int c = 0;
  for (; c + 32 <= shape.head_dim; c += 32)
    weigh_values<Isa, H, 4>(shape, store, row, scratch, kv_head, c, totals, out);
  for (; c < shape.head_dim; c += 8) weigh_values<Isa, H, 1>(shape, store, row, scratch, kv_head, c, totals, out);
}

template <class Isa>
void attend(const AttentionShape& shape, const LayerStore& store, const RowView& row, const AttentionScratch& scratch,
            const float* queries, int first, int last, int kv_head, float* out) {
  const float* q = queries + first * shape.head_dim;
  float* o = out + first * shape.head_dim;
  switch (last - first) {
    case 1:
      return attend_heads<Isa, 1>(shape, store, row, scratch, q, kv_head, o);
    case 2:
      return attend_heads<Isa, 2>(shape, store, row, scratch, q, kv_head, o);
    default:
      return attend_heads<Isa, kMaxHeads>(shape, store, row, scratch, q, kv_head, o);
  }
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

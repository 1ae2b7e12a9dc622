// Attention over pages in any order, with drafts off the path, windows, heads of several sizes, and partials merged.
#include "tests/recorder.hpp"

namespace paceline {
namespace {

constexpr int kMaxVisible = kChunk + 64;
constexpr int kNumPages = kMaxVisible / kPageSize + 2;
constexpr int kNumKvHeads = 2;
constexpr int kGroupHeads = kTileQueries;  // query heads that share keys

struct Store {
  std::vector<std::uint16_t> halves;
  LayerStore view;

  Store(const Kernels& kernels, int head_dim) {
    const std::size_t head_stride = 2 * kPageSize * head_dim;
    halves.resize(head_stride * kNumKvHeads * kNumPages);
    view = {halves.data(), head_stride * kNumKvHeads, head_stride};
    Random random(head_dim);
    for (int i = 0; i < kNumPages * kNumKvHeads; ++i) {
      for (int slot = 0; slot < kPageSize; ++slot) {
        const auto key = random.floats(head_dim, 3.0f);
        kernels.store_kv(key.data(), random.floats(head_dim).data(), head_dim, halves.data() + i * head_stride, slot);
      }
    }
  }
};

void run_row(const Kernels& kernels, const Store& store, int head_dim, int num_visible, int num_drafts, int window,
             Recorder& out) {
  std::vector<std::int32_t> pages(kNumPages);
  for (int i = 0; i < kNumPages; ++i) pages[i] = (i * 5 + 3) % kNumPages;
  std::vector<std::int32_t> path(num_drafts);
  const int num_straight = num_visible - num_drafts;
  for (int i = 0; i < num_drafts; ++i) path[i] = num_straight + 2 * i + 1;
  const RowView row{pages.data(), num_visible, num_straight, path.data()};
  const AttentionShape shape{head_dim, kNumKvHeads * kGroupHeads, kNumKvHeads, 0.125f, window};
  const std::size_t partial = partial_size(head_dim);
  std::vector<float> scores(kTileQueries * kChunk), partials(kTileQueries * partial), totals(2 * kTaskQueries);
  std::vector<std::uint16_t> keys(kPageSize * head_dim);
  const AttentionScratch scratch{scores.data(), partials.data(), totals.data(), keys.data()};
  const auto queries = Random(num_visible).floats(static_cast<std::size_t>(shape.num_heads) * head_dim);
  std::vector<float> result(queries.size());
  const AttentionRows rows{&row, queries.data(), queries.size(), result.data(), result.size()};
  const int first_chunk = window > 0 && num_visible > window ? (num_visible - window) / kChunk : 0;
  const int last_chunk = (num_visible + kChunk - 1) / kChunk;
  out.begin("attention: head of " + std::to_string(head_dim) + ", " + std::to_string(num_visible) + " positions, " +
            std::to_string(num_drafts) + " drafts, window " + std::to_string(window));
  for (int heads = 1; heads <= kGroupHeads; ++heads) {
    kernels.attend(shape, store.view, rows, {{0, 1, 0, heads}, first_chunk, last_chunk, nullptr}, scratch);
    out.add_all(result);
    std::vector<float> chunks((last_chunk - first_chunk) * heads * partial);
    kernels.attend(shape, store.view, rows, {{0, 1, 0, heads}, first_chunk, last_chunk, chunks.data()}, scratch);
    std::vector<float> merged(head_dim);
    kernels.merge(shape, row, chunks.data() + (heads - 1) * partial, heads * partial, merged.data());
    out.add_all(merged);
  }
}

}  // namespace

void run_attention(const Kernels& kernels, Recorder& out) {
  for (const int head_dim : {8, 24, 64, 72, 128}) {
    const Store store(kernels, head_dim);
    for (const int num_visible : {1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 101, kChunk, kChunk + 1, kChunk + 40}) {
      for (const int num_drafts : {0, 1, 6}) {
        if (num_drafts >= num_visible) continue;
        for (const int window : {0, 5, 33}) run_row(kernels, store, head_dim, num_visible, num_drafts, window, out);
      }
    }
  }
}

}  // namespace paceline

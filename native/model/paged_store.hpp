// Keys and values of all layers in pages. Who owns a page is decided elsewhere.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "support/aligned.hpp"

namespace paceline {

class PagedStore {
 public:
  PagedStore(int num_pages, int num_layers, int num_kv_heads, int head_dim);

  int num_pages() const { return num_pages_; }
  std::size_t bytes() const { return halves_.size() * sizeof(std::uint16_t); }

  LayerStore layer(int index);

  // Copies slot to slot within one sequence's pages, all layers, in the order given. Throws before the first copy.
  void copy_slots(const std::vector<int>& pages, const std::vector<std::pair<int, int>>& moves);
  void copy_page(int source, int destination);

  // Fills pages with small reproducible numbers, so that timing reads real memory (untouched pages all map to one).
  void fill(const std::vector<int>& pages);
  // Fills pages with NaN, so that reading what was never written cannot go unnoticed.
  void poison(const std::vector<int>& pages);

 private:
  void check_page(int page) const;
  std::size_t head_halves() const { return std::size_t{2} * kPageSize * head_dim_; }
  // Behind the heads lies room for the keys of another one: so the blocks that a head has in successive pages fall into
  // all sets of the caches. Without it pages would often be a multiple of 4 or 64 KB apart, and fight for a few sets.
  std::size_t page_halves() const { return head_halves() * num_kv_heads_ * num_layers_ + head_halves() / 2; }
  std::uint16_t* page(int index) { return halves_.data() + index * page_halves(); }
  void copy_slot(std::uint16_t* from_page, int from, std::uint16_t* to_page, int to);

  int num_pages_;
  int num_layers_;
  int num_kv_heads_;
  int head_dim_;
  AlignedBuffer<std::uint16_t> halves_;  // [page][layer][kv head][keys, values]
};

}  // namespace paceline

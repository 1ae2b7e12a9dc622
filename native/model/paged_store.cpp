#include "model/paged_store.hpp"

#include <cstring>

#include "support/check.hpp"

namespace paceline {

PagedStore::PagedStore(int num_pages, int num_layers, int num_kv_heads, int head_dim)
    : num_pages_(num_pages), num_layers_(num_layers), num_kv_heads_(num_kv_heads), head_dim_(head_dim) {
  require(num_pages > 0, "the store needs at least one page");
  halves_ = AlignedBuffer<std::uint16_t>(page_halves() * num_pages);
}

LayerStore PagedStore::layer(int index) {
  return {halves_.data() + index * num_kv_heads_ * head_halves(), page_halves(), head_halves()};
}

void PagedStore::check_page(int page) const {
  require(page >= 0 && page < num_pages_,
          "page " + std::to_string(page) + " is not one of the store's " + std::to_string(num_pages_));
}

void PagedStore::copy_slot(std::uint16_t* from_page, int from, std::uint16_t* to_page, int to) {
  for (int head = 0; head < num_layers_ * num_kv_heads_; ++head) {
    const std::uint16_t* source = from_page + head * head_halves();
    std::uint16_t* target = to_page + head * head_halves();
    for (int c = 0; c < head_dim_; ++c) target[c * kPageSize + to] = source[c * kPageSize + from];
    const int values = kPageSize * head_dim_;
    std::memmove(target + values + to * head_dim_, source + values + from * head_dim_,
                 sizeof(std::uint16_t) * head_dim_);
  }
}

void PagedStore::copy_slots(const std::vector<int>& pages, const std::vector<std::pair<int, int>>& moves) {
  const int capacity = static_cast<int>(pages.size()) * kPageSize;
  for (const int index : pages) check_page(index);
  for (const auto& [from, to] : moves) {
    require(from >= 0 && from < capacity && to >= 0 && to < capacity, "a slot to copy lies outside the pages given");
  }
  for (const auto& [from, to] : moves) {
    copy_slot(page(pages[from / kPageSize]), from % kPageSize, page(pages[to / kPageSize]), to % kPageSize);
  }
}

void PagedStore::copy_page(int source, int destination) {
  check_page(source);
  check_page(destination);
  std::memmove(page(destination), page(source), page_halves() * sizeof(std::uint16_t));
}

void PagedStore::fill(const std::vector<int>& pages) {
  std::uint32_t state = 1;
  for (const int index : pages) {
    check_page(index);
    for (std::size_t i = 0; i < page_halves(); ++i) {
      state = state * 1664525u + 1013904223u;
      page(index)[i] =
          static_cast<std::uint16_t>(0x2c00u | (state >> 22) | (state & 0x8000u));  // magnitude 1/16 to 1/8
    }
  }
}

void PagedStore::poison(const std::vector<int>& pages) {
  for (const int index : pages) {
    check_page(index);
    std::memset(page(index), 0xff,
                page_halves() * sizeof(std::uint16_t));  // sign, all of the exponent and the mantissa
  }
}

}  // namespace paceline

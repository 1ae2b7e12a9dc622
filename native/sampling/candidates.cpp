#include "sampling/candidates.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace paceline {
namespace {

constexpr int kBins = 1024;
constexpr std::size_t kFewEnough = 64;  // to be sorted

struct Item {
  float value;
  std::int32_t id;
  std::int64_t weight;
};

// Bins of values from `highest` down to `lowest`, which lie apart. A value is never in a bin before that of a higher
// one, whatever the roundings, and the two ends are never in the same.
struct Bins {
  double highest;
  double scale;

  Bins(float high, float low) : highest(high), scale((kBins - 1) / (static_cast<double>(high) - low)) {}
  int of(float value) const { return std::min(static_cast<int>((highest - value) * scale), kBins - 1); }
};

// Where the kept ones end.
struct Cut {
  float value;
  std::int32_t id;
};

// Walks the items in order until their weights reach the limit.
Cut walk(const std::vector<Item>& items, std::int64_t limit) {
  std::size_t i = 0;
  for (std::int64_t sum = items[0].weight; sum < limit && i + 1 < items.size(); sum += items[i].weight) ++i;
  return {items[i].value, items[i].id};
}

// The bin in which the sum reaches the limit, which becomes what is left of it there.
int find_bin(const std::array<std::int64_t, kBins>& sums, std::int64_t& limit) {
  int bin = 0;
  while (bin < kBins - 1 && sums[bin] < limit) limit -= sums[bin++];
  return bin;
}

Cut find_cut(std::vector<Item> items, std::int64_t limit) {
  while (true) {
    const auto [low, high] =
        std::minmax_element(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.value < b.value; });
    if (low->value == high->value) return walk(items, limit);  // in order of ids already
    if (items.size() <= kFewEnough) {
      std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.value > b.value; });
      return walk(items, limit);
    }
    const Bins bins(high->value, low->value);
    std::array<std::int64_t, kBins> sums{};
    for (const Item& item : items) sums[bins.of(item.value)] += item.weight;
    const int bin = find_bin(sums, limit);
    std::erase_if(items, [&](const Item& item) { return bins.of(item.value) != bin; });
  }
}

Cut find_cut(const Candidates& c, std::int64_t limit) {
  const auto [low, high] = std::minmax_element(c.values.data(), c.values.data() + c.size);
  std::vector<Item> items;
  std::array<std::int64_t, kBins> sums{};
  if (*low == *high) {
    for (std::size_t i = 0; i < c.size; ++i) items.push_back({c.values[i], c.ids[i], c.weights[i]});
    return walk(items, limit);
  }
  const Bins bins(*high, *low);
  for (std::size_t i = 0; i < c.size; ++i) sums[bins.of(c.values[i])] += c.weights[i];
  const int bin = find_bin(sums, limit);
  for (std::size_t i = 0; i < c.size; ++i) {
    if (bins.of(c.values[i]) == bin) items.push_back({c.values[i], c.ids[i], c.weights[i]});
  }
  if (items.empty()) return {*low, c.ids[c.size - 1]};  // the limit lies behind all
  return find_cut(std::move(items), limit);
}

}  // namespace

void keep_prefix(Candidates& c, std::int64_t limit) {
  const Cut cut = find_cut(c, limit);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < c.size; ++i) {
    const float value = c.values[i];
    c.values[kept] = value;
    c.ids[kept] = c.ids[i];
    kept += value > cut.value || (value == cut.value && c.ids[i] <= cut.id) ? 1 : 0;
  }
  c.size = kept;
}

}  // namespace paceline

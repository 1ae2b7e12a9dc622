#include "sampling/candidates.hpp"

#include <algorithm>
#include <array>
#include <utility>
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

struct Range {
  float low;
  float high;
};

Range find_range(const float* values, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  float low[kLanes], high[kLanes];
  std::fill(low, low + kLanes, values[0]);
  std::fill(high, high + kLanes, values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      low[j] = values[i + j] < low[j] ? values[i + j] : low[j];
      high[j] = values[i + j] > high[j] ? values[i + j] : high[j];
    }
  }
  for (; i < count; ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  return {*std::min_element(low, low + kLanes), *std::max_element(high, high + kLanes)};
}

// Two tables in turns: tokens side by side are often of one bin, and would wait for each other's sums.
std::array<std::int64_t, kBins> sum_bins(const Candidates& c) {
  std::array<std::int64_t, kBins> even{}, odd{};
  std::size_t i = 0;
  for (; i + 2 <= c.size; i += 2) {
    even[c.bins[i]] += c.weights[i];
    odd[c.bins[i + 1]] += c.weights[i + 1];
  }
  if (i < c.size) even[c.bins[i]] += c.weights[i];
  for (int bin = 0; bin < kBins; ++bin) even[bin] += odd[bin];
  return even;
}

// Fills the candidates' bins; returns the one with the cut, and the cut.
std::pair<int, Cut> find_cut(Candidates& c, std::int64_t limit) {
  const Range range = find_range(c.values.data(), c.size);
  std::fill(c.bins.data(), c.bins.data() + c.size, 0);
  int bin = 0;
  if (range.low != range.high) {
    const Bins bins(range.high, range.low);
    for (std::size_t i = 0; i < c.size; ++i) c.bins[i] = static_cast<std::int16_t>(bins.of(c.values[i]));
    bin = find_bin(sum_bins(c), limit);
  }
  std::vector<Item> items;
  for (std::size_t i = 0; i < c.size; ++i) {
    if (c.bins[i] == bin) items.push_back({c.values[i], c.ids[i], c.weights[i]});
  }
  if (items.empty()) return {kBins, {}};  // all sum to less
  return {bin, find_cut(std::move(items), limit)};
}

}  // namespace

std::int64_t weight_above(const Candidates& c, float value, std::int32_t id) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < c.size; ++i) {
    const bool is_above = (c.values[i] > value) | ((c.values[i] == value) & (c.ids[i] < id));
    sum += c.weights[i] & -static_cast<std::int64_t>(is_above);
  }
  return sum;
}

void keep_prefix(Candidates& c, std::int64_t limit) {
  const auto [bin, cut] = find_cut(c, limit);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < c.size; ++i) {
    bool is_kept = c.bins[i] < bin;
    if (c.bins[i] == bin) is_kept = c.values[i] > cut.value || (c.values[i] == cut.value && c.ids[i] <= cut.id);
    c.values[kept] = c.values[i];
    c.ids[kept] = c.ids[i];
    kept += is_kept ? 1 : 0;
  }
  c.size = kept;
}

}  // namespace paceline

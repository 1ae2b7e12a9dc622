#include "sampling/row_search.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace paceline {
namespace {

typedef float Lanes __attribute__((vector_size(16)));  // what every processor compares at once

constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);
constexpr std::size_t kChains = 4;  // of each kind, as many as hide the time of an addition
constexpr std::size_t kStep = kChains * kLanes;
constexpr std::size_t kPart = 4096;  // numbers; what is searched again for the place of its highest

// `zero` is NaN where a number is not finite: times 0, it is no 0.
template <class T>
struct Summary {
  T highest;
  T zero;

  void add(T values) {
    highest = values > highest ? values : highest;
    zero += values * 0.0f;
  }
};

constexpr float kLowest = -std::numeric_limits<float>::infinity();

Summary<float> summarize(const float* values, std::size_t count) {
  Summary<Lanes> chains[kChains];
  for (auto& chain : chains) chain = {Lanes{} + kLowest, Lanes{}};
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::size_t c = 0; c < kChains; ++c) {
      Lanes lanes;
      std::memcpy(&lanes, values + i + c * kLanes, sizeof lanes);
      chains[c].add(lanes);
    }
  }
  Summary<float> all{kLowest, 0.0f};
  for (; i < count; ++i) all.add(values[i]);
  for (const auto& chain : chains) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      all.highest = std::max(all.highest, chain.highest[lane]);
      all.zero += chain.zero[lane];
    }
  }
  return all;
}

}  // namespace

std::ptrdiff_t search_row(const float* values, std::size_t count) {
  std::size_t best = 0;
  Summary<float> row = summarize(values, std::min(kPart, count));
  for (std::size_t begin = kPart; begin < count; begin += kPart) {
    const Summary<float> part = summarize(values + begin, std::min(kPart, count - begin));
    if (part.highest > row.highest) {
      row.highest = part.highest;
      best = begin;
    }
    row.zero += part.zero;
  }
  if (row.zero != 0.0f) return -1;
  return std::find(values + best, values + count, row.highest) - values;
}

}  // namespace paceline

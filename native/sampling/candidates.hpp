// The tokens of a row that truncation has left so far.
#pragma once

#include <cstdint>

#include "support/aligned.hpp"

namespace paceline {

// Ids ascend.
struct Candidates {
  explicit Candidates(std::size_t capacity) : values(capacity), ids(capacity), weights(capacity) {}
  AlignedBuffer<float> values;
  AlignedBuffer<std::int32_t> ids;
  AlignedBuffer<std::int64_t> weights;  // not negative
  std::size_t size = 0;

  void add(float value, std::int32_t id) {
    values[size] = value;
    ids[size++] = id;
  }
};

// Keeps the smallest number of the highest, of equal values those of lower ids, whose weights sum to at least `limit`;
// all of them where they sum to less. Values are finite, `limit` at least 1.
void keep_prefix(Candidates& candidates, std::int64_t limit);

}  // namespace paceline

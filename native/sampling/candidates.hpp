// The tokens of a row that truncation has left so far. Higher means: of a higher value, or of an equal one and a lower
// id.
#pragma once

#include <cstdint>

#include "support/aligned.hpp"

namespace paceline {

// Ids ascend.
struct Candidates {
  explicit Candidates(std::size_t capacity) : values(capacity), ids(capacity), weights(capacity), bins(capacity) {}
  AlignedBuffer<float> values;
  AlignedBuffer<std::int32_t> ids;
  AlignedBuffer<std::int64_t> weights;  // not negative
  AlignedBuffer<std::int16_t> bins;     // scratch
  std::size_t size = 0;
};

// The sum of the weights of what is higher than the token `id` of that value.
std::int64_t weight_above(const Candidates& candidates, float value, std::int32_t id);

// Keeps the smallest number of the highest whose weights sum to at least `limit`; all of them where they sum to less.
// Weights are then no longer those of what is kept. Values are finite, `limit` and the number of candidates at least 1.
void keep_prefix(Candidates& candidates, std::int64_t limit);

}  // namespace paceline

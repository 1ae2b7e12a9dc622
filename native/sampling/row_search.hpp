// The greedy choice in one row of logits, and whether the row may be chosen from at all.
#pragma once

#include <cstddef>

namespace paceline {

// The lowest index of the highest of `count` numbers, -0 and 0 being equal; -1 where one of them is NaN or an infinity.
// `count` is at least 1.
std::ptrdiff_t search_row(const float* values, std::size_t count);

}  // namespace paceline

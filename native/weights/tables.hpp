// The values that the 4-bit codes of the table types stand for, each plus the type's zero code.
#pragma once

#include <cstdint>

#include "weights/view.hpp"

namespace paceline {

static constexpr std::uint8_t kIQ4Table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
// Twice the 4-bit floats 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
static constexpr std::uint8_t kMXFP4Table[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

static constexpr const std::uint8_t* table_of(WeightType type) {
  switch (type) {
    case WeightType::kIQ4_NL:
    case WeightType::kIQ4_XS:
      return kIQ4Table;
    case WeightType::kMXFP4:
      return kMXFP4Table;
    default:
      return nullptr;
  }
}

}  // namespace paceline

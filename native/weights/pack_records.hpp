// Packing of the types that share scales among 256 columns.
#pragma once

#include <cstring>

#include "weights/view.hpp"

namespace paceline {

// Puts the 4-byte words of one row's codes beside those of the other rows.
inline void interleave(const std::uint8_t* source, int num_bytes, int row, std::uint8_t* out) {
  for (int w = 0; w < num_bytes / 4; ++w) std::memcpy(out + 32 * w + 4 * row, source + 4 * w, 4);
}

// Packs one row of a record of `type` from the file.
void pack_record(WeightType type, const std::uint8_t* source, int row, std::uint8_t* record);

}  // namespace paceline

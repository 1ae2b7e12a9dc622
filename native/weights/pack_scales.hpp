// From the scales and minima of a GGUF file's units to those of packed records.
#pragma once

#include "weights/view.hpp"

namespace paceline {

// Packs all scales and minima of one row of a record.
void pack_scales(WeightType type, const std::uint8_t* source, int row, std::uint8_t* record);

}  // namespace paceline

// From the scales and minima of a GGUF file's units to those of packed blocks.
#pragma once

#include "weights/view.hpp"

namespace paceline {

// Scale and minimum of one row's group, of a type without records.
void pack_group_scales(const MatrixView& view, const std::uint8_t* source, int row, int group, std::uint8_t* block);

// All scales and minima of one row of a record.
void pack_record_scales(WeightType type, const std::uint8_t* source, int row, std::uint8_t* record);

}  // namespace paceline

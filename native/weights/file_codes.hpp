// The codes of a GGUF file's quantised units.
#pragma once

#include <cstdint>

#include "weights/view.hpp"

namespace paceline {

// Writes the 32 codes of group `group` of a file's unit, one a byte, as they are packed: unsigned, of the format's
// `code_bits`. Signed bytes c become c + 128.
void read_codes(WeightType type, const std::uint8_t* unit, int group, std::uint8_t* codes);

}  // namespace paceline

// From the rows of a GGUF file to packed blocks.
#pragma once

#include "weights/view.hpp"

namespace paceline {

// Packs rows [16 block, 16 block + num_rows) of `source` into `out`, `view.block_bytes` bytes. Rows from num_rows on
// are 0.
void pack_block(const MatrixView& view, const std::uint8_t* source, int block, int num_rows, std::uint8_t* out);

}  // namespace paceline

// Single rows of a packed matrix as float32: for embeddings, and as the plain statement of what blocks stand for.
#pragma once

#include "weights/view.hpp"

namespace paceline {

// Writes row `row` of the matrix, `view.columns` values.
void unpack_row(const MatrixView& view, int row, float* out);

}  // namespace paceline

// A weight matrix in packed form, in the memory of an arena that outlives it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/arena.hpp"
#include "support/thread_pool.hpp"
#include "weights/view.hpp"

namespace paceline {

// Bytes that `columns` (whole units of the type) of one row take in a GGUF file.
std::size_t file_row_bytes(WeightType type, std::size_t columns);

class Matrix {
 public:
  Matrix() = default;
  // Packs `rows` x `columns` weights as they stand in a GGUF file, row after row. Throws on sizes that do not agree.
  Matrix(WeightType type, int rows, int columns, const std::uint8_t* source, std::size_t source_bytes, Arena& arena,
         ThreadPool& pool);

  int rows() const { return rows_; }
  int columns() const { return view_.columns; }
  bool is_empty() const { return rows_ == 0; }
  WeightType type() const { return view_.type; }
  std::size_t bytes() const { return view_.num_blocks * view_.block_bytes; }
  const MatrixView& view() const { return view_; }

  // Writes row `row` as float32 to `out`, `columns()` values.
  void dequantize_row(int row, float* out) const;

 private:
  int rows_ = 0;
  MatrixView view_;
};

}  // namespace paceline

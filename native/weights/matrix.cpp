#include "weights/matrix.hpp"

#include "support/check.hpp"
#include "weights/pack.hpp"
#include "weights/unpack.hpp"

namespace paceline {
namespace {

std::size_t packed_block_bytes(const MatrixView& view) {
  const Format f = format_of(view.type);
  const std::size_t unit = is_quantized(view.type) ? record_bytes(f) : kBlockRows * f.file_bytes;
  const std::size_t bytes = view.columns / f.columns * unit;
  return (bytes + 63) / 64 * 64;
}

}  // namespace

std::size_t file_row_bytes(WeightType type, std::size_t columns) {
  const Format f = format_of(type);
  return columns / f.columns * f.file_bytes;
}

Matrix::Matrix(WeightType type, int rows, int columns, const std::uint8_t* source, std::size_t source_bytes,
               Arena& arena, ThreadPool& pool)
    : rows_(rows) {
  require(is_known(type), "unknown weight type " + std::to_string(static_cast<int>(type)));
  require(rows > 0 && columns > 0, "a matrix needs at least one row and one column");
  const int unit = format_of(type).columns;
  require(columns % unit == 0, "rows of this type must be whole units of " + std::to_string(unit) + " columns");
  require(source_bytes == static_cast<std::size_t>(rows) * file_row_bytes(type, columns),
          "the weights' bytes do not match their shape");
  view_.type = type;
  view_.columns = columns;
  view_.num_blocks = (rows + kBlockRows - 1) / kBlockRows;
  view_.block_bytes = packed_block_bytes(view_);
  std::uint8_t* data = arena.allocate(bytes());
  view_.data = data;
  pool.for_each(view_.num_blocks, [&](int block) {
    const int left = rows - block * kBlockRows;
    pack_block(view_, source, block, left < kBlockRows ? left : kBlockRows, data + block * view_.block_bytes);
  });
}

void Matrix::dequantize_row(int row, float* out) const { unpack_row(view_, row, out); }

}  // namespace paceline

#include "weights/matrix.hpp"

#include <cstring>

#include "support/check.hpp"
#include "support/f16.hpp"
#include "weights/pack.hpp"

namespace paceline {
namespace {

float read_half(const std::uint8_t* halves, int index) {
  std::uint16_t half;
  std::memcpy(&half, halves + 2 * index, 2);
  return f16_to_f32(half);
}

float read_value(WeightType type, const std::uint8_t* values, std::size_t index) {
  if (type == WeightType::kF16) {
    std::uint16_t half;
    std::memcpy(&half, values + 2 * index, 2);
    return f16_to_f32(half);
  }
  float value;
  std::memcpy(&value, values + 4 * index, 4);
  return value;
}

// The 4-bit code of `column` (0..31) of block row `row` in a group.
int read_nibble(const std::uint8_t* codes, int row, int column) {
  const std::uint8_t byte = codes[(column & 15) / 4 * 32 + 4 * row + (column & 3)];
  return column < 16 ? byte & 15 : byte >> 4;
}

float read_weight(const MatrixView& view, const std::uint8_t* block, int row, int column) {
  const int group = column / kGroup;
  const int within = column % kGroup;
  const std::uint8_t* codes = block + code_offset(view) + group * code_bytes(view.type);
  const float d = read_half(block, group * kBlockRows + row);
  switch (view.type) {
    case WeightType::kQ4_0:
      return d * static_cast<float>(read_nibble(codes, row, within) - 8);
    case WeightType::kQ4_1:
      return d * static_cast<float>(read_nibble(codes, row, within)) +
             read_half(block + minimum_offset(view), group * kBlockRows + row);
    default:
      return d * static_cast<float>(codes[within / 4 * 32 + 4 * row + within % 4] - 128);
  }
}

std::size_t packed_block_bytes(const MatrixView& view) {
  const std::size_t values = static_cast<std::size_t>(view.columns) * kBlockRows;
  const std::size_t bytes = is_quantized(view.type) ? code_offset(view) + num_groups(view) * code_bytes(view.type)
                                                    : values * (view.type == WeightType::kF32 ? 4 : 2);
  return (bytes + 63) / 64 * 64;
}

}  // namespace

std::size_t file_row_bytes(WeightType type, std::size_t columns) {
  switch (type) {
    case WeightType::kF32:
      return columns * 4;
    case WeightType::kF16:
      return columns * 2;
    case WeightType::kQ4_0:
      return columns / kGroup * 18;
    case WeightType::kQ4_1:
      return columns / kGroup * 20;
    case WeightType::kQ8_0:
      return columns / kGroup * 34;
  }
  require(false, "unknown weight type " + std::to_string(static_cast<int>(type)));
  return 0;
}

Matrix::Matrix(WeightType type, int rows, int columns, const std::uint8_t* source, std::size_t source_bytes,
               Arena& arena, ThreadPool& pool)
    : rows_(rows) {
  require(rows > 0 && columns > 0, "a matrix needs at least one row and one column");
  require(!is_quantized(type) || columns % kGroup == 0, "quantised rows must be whole groups of 32 columns");
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

void Matrix::dequantize_row(int row, float* out) const {
  const std::uint8_t* block = view_.data + row / kBlockRows * view_.block_bytes;
  const int r = row % kBlockRows;
  for (int k = 0; k < view_.columns; ++k) {
    if (is_quantized(view_.type)) {
      out[k] = read_weight(view_, block, r, k);
    } else {
      out[k] = read_value(view_.type, block, static_cast<std::size_t>(k) * kBlockRows + r);
    }
  }
}

}  // namespace paceline

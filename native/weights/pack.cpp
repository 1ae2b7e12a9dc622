#include "weights/pack.hpp"

#include <cstring>

#include "weights/matrix.hpp"

namespace paceline {
namespace {

// Q4: a file keeps column i in the low nibble of byte i and column 16 + i in the high one, as blocks do.
void pack_nibbles(const std::uint8_t* source, int row, std::uint8_t* codes) {
  for (int j = 0; j < 4; ++j) std::memcpy(codes + 32 * j + 4 * row, source + 4 * j, 4);
}

void pack_bytes(const std::uint8_t* source, int row, std::uint8_t* codes) {
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 4; ++i)
      codes[32 * j + 4 * row + i] = source[4 * j + i] ^ 0x80u;  // two's complement c to c + 128
  }
}

// One group of one row. File order: Q4_0 d, codes; Q4_1 d, m, codes; Q8_0 d, codes.
void pack_group(const MatrixView& view, const std::uint8_t* source, int row, int group, std::uint8_t* block) {
  std::uint8_t* codes = block + code_offset(view) + group * code_bytes(view.type);
  const std::size_t half = std::size_t{2} * (group * kBlockRows + row);
  std::memcpy(block + half, source, 2);
  if (view.type == WeightType::kQ4_1) {
    std::memcpy(block + minimum_offset(view) + half, source + 2, 2);
    pack_nibbles(source + 4, row, codes);
  } else if (view.type == WeightType::kQ4_0) {
    pack_nibbles(source + 2, row, codes);
  } else {  // Q8_0
    pack_bytes(source + 2, row, codes);
  }
}

void pack_float_row(int value_bytes, const std::uint8_t* source, int row, int columns, std::uint8_t* out) {
  for (int k = 0; k < columns; ++k) {
    std::memcpy(out + (static_cast<std::size_t>(k) * kBlockRows + row) * value_bytes, source + k * value_bytes,
                value_bytes);
  }
}

}  // namespace

void pack_block(const MatrixView& view, const std::uint8_t* source, int block, int num_rows, std::uint8_t* out) {
  std::memset(out, 0, view.block_bytes);
  const std::size_t row_bytes = file_row_bytes(view.type, view.columns);
  const std::size_t group_bytes = file_row_bytes(view.type, kGroup);
  for (int row = 0; row < num_rows; ++row) {
    const std::uint8_t* from = source + (static_cast<std::size_t>(block) * kBlockRows + row) * row_bytes;
    if (!is_quantized(view.type)) {
      pack_float_row(view.type == WeightType::kF32 ? 4 : 2, from, row, view.columns, out);
      continue;
    }
    for (int group = 0; group < num_groups(view); ++group) {
      pack_group(view, from + group * group_bytes, row, group, out);
    }
  }
}

}  // namespace paceline

#include "weights/pack.hpp"

#include <cstring>

#include "weights/pack_records.hpp"

namespace paceline {
namespace {

void pack_bytes(const std::uint8_t* source, int row, std::uint8_t* codes) {
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 4; ++i)
      codes[32 * j + 4 * row + i] = source[4 * j + i] ^ 0x80u;  // two's complement c to c + 128
  }
}

// The fifth bits of 32 codes: bit c of `bits` belongs to column c. In a block, bit j of byte 4 r + i belongs to column
// 4 j + i.
void pack_fifth_bits(const std::uint8_t* source, int row, std::uint8_t* out) {
  std::uint32_t bits;
  std::memcpy(&bits, source, 4);
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int j = 0; j < 8; ++j) byte |= (bits >> (4 * j + i) & 1u) << j;
    out[4 * row + i] = static_cast<std::uint8_t>(byte);
  }
}

// One group of one row. File order: d, m where there is one, fifth bits where there are some, codes.
void pack_group(const MatrixView& view, const std::uint8_t* source, int row, int group, std::uint8_t* block) {
  const Format f = format_of(view.type);
  const int scale_bytes = f.scale_bytes / kBlockRows;
  std::uint8_t* codes = block + code_offset(view) + static_cast<std::size_t>(group) * f.code_bytes;
  const std::size_t at = static_cast<std::size_t>(group) * f.scale_bytes + row * scale_bytes;
  std::memcpy(block + at, source, scale_bytes);
  source += scale_bytes;
  if (f.has_minimum) {
    std::memcpy(block + minimum_offset(view) + at, source, scale_bytes);
    source += scale_bytes;
  }
  if (f.max_code == 31) {
    pack_fifth_bits(source, row, codes + 128);
    source += 4;
  }
  if (view.type == WeightType::kQ8_0) return pack_bytes(source, row, codes);
  interleave(source, 16, row, codes);
}

void pack_float_row(int value_bytes, const std::uint8_t* source, int row, int columns, std::uint8_t* out) {
  for (int k = 0; k < columns; ++k) {
    std::memcpy(out + (static_cast<std::size_t>(k) * kBlockRows + row) * value_bytes, source + k * value_bytes,
                value_bytes);
  }
}

void pack_row(const MatrixView& view, const std::uint8_t* source, int row, std::uint8_t* out) {
  const Format f = format_of(view.type);
  if (!is_quantized(view.type)) return pack_float_row(f.file_bytes, source, row, view.columns, out);
  for (int unit = 0; unit < view.columns / f.columns; ++unit, source += f.file_bytes) {
    if (has_records(view.type)) {
      pack_record(view.type, source, row, out + static_cast<std::size_t>(unit) * record_bytes(f));
    } else {
      pack_group(view, source, row, unit, out);
    }
  }
}

}  // namespace

void pack_block(const MatrixView& view, const std::uint8_t* source, int block, int num_rows, std::uint8_t* out) {
  const Format f = format_of(view.type);
  const std::size_t row_bytes = static_cast<std::size_t>(view.columns / f.columns) * f.file_bytes;
  std::memset(out, 0, view.block_bytes);
  for (int row = 0; row < num_rows; ++row) {
    pack_row(view, source + (static_cast<std::size_t>(block) * kBlockRows + row) * row_bytes, row, out);
  }
}

}  // namespace paceline

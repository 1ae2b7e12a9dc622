#include "weights/pack.hpp"

#include <cstring>

#include "weights/matrix.hpp"

namespace paceline {
namespace {

// The 32 codes of one group of one row, each as the unsigned number that the planes store.
struct Codes {
  std::uint8_t code[kGroup];
};

// GGUF Q4: byte i holds column i in the low nibble and column 16 + i in the high one.
Codes read_q4(const std::uint8_t* bytes) {
  Codes codes;
  for (int i = 0; i < kGroup / 2; ++i) {
    codes.code[i] = bytes[i] & 15;
    codes.code[kGroup / 2 + i] = bytes[i] >> 4;
  }
  return codes;
}

Codes read_q8(const std::uint8_t* bytes) {
  Codes codes;
  for (int i = 0; i < kGroup; ++i) codes.code[i] = static_cast<std::uint8_t>(bytes[i] ^ 0x80u);  // c + 128
  return codes;
}

// Writes bits [shift, shift + 4) of the codes of block row `row` into a plane.
void write_plane(const Codes& codes, int row, int shift, std::uint8_t* plane) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) {
      const unsigned low = (codes.code[4 * j + i] >> shift) & 15u;
      const unsigned high = (codes.code[16 + 4 * j + i] >> shift) & 15u;
      plane[32 * j + 4 * row + i] = static_cast<std::uint8_t>(low | (high << 4));
    }
  }
}

// One group of one row. File order: Q4_0 d, codes; Q4_1 d, m, codes; Q8_0 d, codes.
void pack_group(const MatrixView& view, const std::uint8_t* source, int row, int group, std::uint8_t* block) {
  std::uint8_t* plane = block + group * code_bytes(view.type);
  const std::size_t half = std::size_t{2} * (group * kBlockRows + row);
  std::memcpy(block + scale_offset(view) + half, source, 2);
  switch (view.type) {
    case WeightType::kQ4_0: return write_plane(read_q4(source + 2), row, 0, plane);
    case WeightType::kQ4_1:
      std::memcpy(block + minimum_offset(view) + half, source + 2, 2);
      return write_plane(read_q4(source + 4), row, 0, plane);
    default: {  // Q8_0
      const Codes codes = read_q8(source + 2);
      write_plane(codes, row, 0, plane);
      write_plane(codes, row, 4, plane + kPlaneBytes);
    }
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

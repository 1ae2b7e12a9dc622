#include "weights/pack.hpp"

#include <cstring>

#include "weights/code_bits.hpp"
#include "weights/file_codes.hpp"
#include "weights/pack_scales.hpp"

namespace paceline {
namespace {

template <int kBits>
void pack_codes_of(const std::uint8_t* codes, int row, std::uint8_t* out) {
  std::uint32_t words[8];
  std::uint32_t packed[8];
  std::memcpy(words, codes, sizeof words);
  pack_words<kBits>(words, packed);
  for (int i = 0; i < kBits; ++i) std::memcpy(out + 4 * (kBlockRows * i + row), packed + i, 4);
}

// One row's group, `out` being the block's codes of that group.
void pack_codes(int bits, const std::uint8_t* codes, int row, std::uint8_t* out) {
  switch (bits) {
    case 2:
      return pack_codes_of<2>(codes, row, out);
    case 3:
      return pack_codes_of<3>(codes, row, out);
    case 4:
      return pack_codes_of<4>(codes, row, out);
    case 5:
      return pack_codes_of<5>(codes, row, out);
    case 6:
      return pack_codes_of<6>(codes, row, out);
    default:
      return pack_codes_of<8>(codes, row, out);
  }
}

void pack_float_row(int value_bytes, const std::uint8_t* source, int row, int columns, std::uint8_t* out) {
  for (int k = 0; k < columns; ++k) {
    std::memcpy(out + (static_cast<std::size_t>(k) * kBlockRows + row) * value_bytes, source + k * value_bytes,
                value_bytes);
  }
}

// One unit of the file: a record's row.
void pack_record(WeightType type, const std::uint8_t* source, int row, std::uint8_t* record) {
  const Format f = format_of(type);
  pack_scales(type, source, row, record);
  std::uint8_t* codes = record + record_code_offset(f);
  for (int group = 0; group < record_groups(type); ++group, codes += group_code_bytes(f)) {
    std::uint8_t bytes[kGroup];
    read_codes(type, source, group, bytes);
    pack_codes(f.code_bits, bytes, row, codes);
  }
}

void pack_row(const MatrixView& view, const std::uint8_t* source, int row, std::uint8_t* out) {
  const Format f = format_of(view.type);
  if (!is_quantized(view.type)) return pack_float_row(f.file_bytes, source, row, view.columns, out);
  for (int k = 0; k < view.columns; k += f.columns, source += f.file_bytes, out += record_bytes(f)) {
    pack_record(view.type, source, row, out);
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

#include "weights/unpack.hpp"

#include <bit>
#include <cstring>

#include "support/f16.hpp"
#include "weights/tables.hpp"

namespace paceline {
namespace {

float read_half(const std::uint8_t* p) {
  std::uint16_t half;
  std::memcpy(&half, p, 2);
  return f16_to_f32(half);
}

float read_float(const std::uint8_t* p) {
  float value;
  std::memcpy(&value, p, 4);
  return value;
}

float read_value(WeightType type, const std::uint8_t* p) {
  if (type == WeightType::kF32) return read_float(p);
  if (type == WeightType::kF16) return read_half(p);
  std::uint16_t bits;
  std::memcpy(&bits, p, 2);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Half of 2^(e - 127): the tables hold twice the values.
float half_power(std::uint8_t e) {
  const std::uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

// The byte of interleaved words that holds column `column` (0..31) of row `row`.
int byte_at(const std::uint8_t* words, int row, int column) { return words[column / 4 * 32 + 4 * row + column % 4]; }

// The code of a column (0..31) in group `group` of a record, or in a group of its own where there are no records.
int read_code(WeightType type, const std::uint8_t* codes, int group, int row, int column) {
  const int half = group / 4;
  const int quarter = group % 4;
  switch (type) {
    case WeightType::kQ8_0:
      return byte_at(codes, row, column);
    case WeightType::kQ8_K:
      return byte_at(codes + 256 * group, row, column);
    case WeightType::kQ2_K:
      return byte_at(codes + 256 * half, row, column) >> 2 * quarter & 3;
    case WeightType::kQ3_K:
      return (byte_at(codes + 256 * half, row, column) >> 2 * quarter & 3) |
             (byte_at(codes + 512, row, column) >> group & 1) << 2;
    case WeightType::kQ4_K:
      return byte_at(codes + group / 2 * 256, row, column) >> 4 * (group % 2) & 15;
    case WeightType::kQ5_K:
      return (byte_at(codes + group / 2 * 256, row, column) >> 4 * (group % 2) & 15) |
             (byte_at(codes + 1024, row, column) >> group & 1) << 4;
    case WeightType::kQ6_K:
      return (byte_at(codes + 512 * half + 256 * (quarter % 2), row, column) >> 4 * (quarter / 2) & 15) |
             (byte_at(codes + 1024 + 256 * half, row, column) >> 2 * quarter & 3) << 4;
    default:
      break;
  }
  if (type == WeightType::kIQ4_XS) codes += 128 * group;
  const int nibble = byte_at(codes, row, column % 16) >> (column < 16 ? 0 : 4) & 15;
  if (const std::uint8_t* table = table_of(type)) return table[nibble];
  if (format_of(type).max_code == 15) return nibble;
  return nibble | (codes[128 + 4 * row + column % 4] >> column / 4 & 1) << 4;  // Q5_0, Q5_1
}

// value = scale * (code - zero code) + minimum.
struct Scale {
  float scale;
  float minimum;
};

Scale read_group_scale(const MatrixView& view, const std::uint8_t* block, int group, int row) {
  const std::size_t at = static_cast<std::size_t>(group) * kBlockRows + row;
  if (view.type == WeightType::kMXFP4) return {half_power(block[at]), 0.0f};
  const bool has_minimum = format_of(view.type).has_minimum;
  return {read_half(block + 2 * at), has_minimum ? read_half(block + minimum_offset(view) + 2 * at) : 0.0f};
}

Scale read_record_scale(WeightType type, const std::uint8_t* record, int group, int row, int column) {
  const Format f = format_of(type);
  if (type == WeightType::kQ8_K) return {read_float(record + 4 * row), 0.0f};
  const float d = read_half(record + 2 * row);
  const float dmin = f.has_minimum ? read_half(record + f.scale_bytes + 2 * row) : 0.0f;
  const int place = has_half_scales(type) ? (group * kBlockRows + row) * 2 + column / 16 : group * kBlockRows + row;
  const std::uint8_t scale = record[fine_scale_offset(f) + place];
  if (type == WeightType::kQ2_K) return {d * static_cast<float>(scale & 15), -dmin * static_cast<float>(scale >> 4)};
  if (!f.has_minima) return {d * static_cast<float>(static_cast<std::int8_t>(scale)), 0.0f};
  return {d * static_cast<float>(scale), -dmin * static_cast<float>(record[fine_minimum_offset(f) + place])};
}

float read_weight(const MatrixView& view, const std::uint8_t* block, int row, int column) {
  const Format f = format_of(view.type);
  const int unit = column / f.columns;
  const int within = column % kGroup;
  Scale scale{};
  int code = 0;
  if (has_records(view.type)) {
    const std::uint8_t* record = block + static_cast<std::size_t>(unit) * record_bytes(f);
    const int group = column % f.columns / kGroup;
    scale = read_record_scale(view.type, record, group, row, within);
    code = read_code(view.type, record + record_code_offset(f), group, row, within);
  } else {
    scale = read_group_scale(view, block, unit, row);
    code =
        read_code(view.type, block + code_offset(view) + static_cast<std::size_t>(unit) * f.code_bytes, 0, row, within);
  }
  return scale.scale * static_cast<float>(code - f.zero_code) + scale.minimum;
}

}  // namespace

void unpack_row(const MatrixView& view, int row, float* out) {
  const std::uint8_t* block = view.data + row / kBlockRows * view.block_bytes;
  const int r = row % kBlockRows;
  const std::size_t value_bytes = format_of(view.type).file_bytes;
  for (int k = 0; k < view.columns; ++k) {
    out[k] = is_quantized(view.type)
                 ? read_weight(view, block, r, k)
                 : read_value(view.type, block + (static_cast<std::size_t>(k) * kBlockRows + r) * value_bytes);
  }
}

}  // namespace paceline

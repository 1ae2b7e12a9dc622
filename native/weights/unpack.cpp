#include "weights/unpack.hpp"

#include <bit>
#include <cstring>

#include "support/f16.hpp"
#include "weights/code_bits.hpp"
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

template <int kBits>
void read_row_codes(const std::uint8_t* group, int row, std::uint8_t* codes) {
  const RowWords words{group + 4 * row};
  const std::uint32_t unpacked[] = {unpack_word<kBits, 0>(words), unpack_word<kBits, 1>(words),
                                    unpack_word<kBits, 2>(words), unpack_word<kBits, 3>(words),
                                    unpack_word<kBits, 4>(words), unpack_word<kBits, 5>(words),
                                    unpack_word<kBits, 6>(words), unpack_word<kBits, 7>(words)};
  std::memcpy(codes, unpacked, kGroup);
}

// The 32 codes of one row of a packed group, as they are multiplied.
void read_packed_codes(WeightType type, const std::uint8_t* group, int row, std::uint8_t* codes) {
  switch (format_of(type).code_bits) {
    case 2:
      read_row_codes<2>(group, row, codes);
      break;
    case 3:
      read_row_codes<3>(group, row, codes);
      break;
    case 4:
      read_row_codes<4>(group, row, codes);
      break;
    case 5:
      read_row_codes<5>(group, row, codes);
      break;
    case 6:
      read_row_codes<6>(group, row, codes);
      break;
    default:
      read_row_codes<8>(group, row, codes);
  }
  if (const std::uint8_t* table = table_of(type)) {
    for (int c = 0; c < kGroup; ++c) codes[c] = table[codes[c]];
  }
}

// value = scale * (code - zero code) + minimum.
struct Scale {
  float scale;
  float minimum;
};

// d or m of one row, of which `bytes` each.
float read_scale(const std::uint8_t* scales, int bytes, int row) {
  if (bytes == 4) return read_float(scales + 4 * row);
  return bytes == 2 ? read_half(scales + 2 * row) : half_power(scales[row]);
}

// Of half `half` of group `group` of a record.
Scale read_scales(WeightType type, const std::uint8_t* record, int group, int row, int half) {
  const Format f = format_of(type);
  const float d = read_scale(record, f.scale_bytes, row);
  const float m = f.has_minimum ? read_scale(record + kBlockRows * f.scale_bytes, f.scale_bytes, row) : 0.0f;
  if (f.fine_scales == 0) return {d, m};
  const int index = has_half_scales(type) ? 2 * group + half : group;
  const std::uint8_t scale = record[fine_scale_offset(f) + index * kBlockRows + row];
  if (type == WeightType::kQ2_K) return {d * static_cast<float>(scale & 15), -m * static_cast<float>(scale >> 4)};
  if (!f.has_minima) return {d * static_cast<float>(static_cast<std::int8_t>(scale)), 0.0f};
  const std::uint8_t minimum = record[fine_minimum_offset(f) + index * kBlockRows + row];
  return {d * static_cast<float>(scale), -m * static_cast<float>(minimum)};
}

// One group of one row: 32 values.
void unpack_group(WeightType type, const std::uint8_t* record, int row, int group, float* out) {
  const Format f = format_of(type);
  std::uint8_t codes[kGroup];
  read_packed_codes(type, record + record_code_offset(f) + group * group_code_bytes(f), row, codes);
  for (int half = 0; half < 2; ++half) {
    const Scale s = read_scales(type, record, group, row, half);
    for (int c = half * kGroup / 2; c < (half + 1) * kGroup / 2; ++c) {
      out[c] = s.scale * static_cast<float>(codes[c] - f.zero_code) + s.minimum;
    }
  }
}

}  // namespace

void unpack_row(const MatrixView& view, int row, float* out) {
  const std::uint8_t* block = view.data + row / kBlockRows * view.block_bytes;
  const int r = row % kBlockRows;
  const Format f = format_of(view.type);
  if (is_quantized(view.type)) {
    for (int k = 0; k < view.columns; k += f.columns, block += record_bytes(f)) {
      for (int group = 0; group < record_groups(view.type); ++group) {
        unpack_group(view.type, block, r, group, out + k + kGroup * group);
      }
    }
    return;
  }
  const std::size_t value_bytes = f.file_bytes;
  for (int k = 0; k < view.columns; ++k) {
    out[k] = read_value(view.type, block + (static_cast<std::size_t>(k) * kBlockRows + r) * value_bytes);
  }
}

}  // namespace paceline

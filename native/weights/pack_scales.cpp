#include "weights/pack_scales.hpp"

#include <cstring>

namespace paceline {
namespace {

struct Record {
  const Format format;
  std::uint8_t* const out;
  const int row;

  void copy_scale(const std::uint8_t* d) const { std::memcpy(out + format.scale_bytes * row, d, format.scale_bytes); }
  void copy_minimum(const std::uint8_t* m) const {
    std::memcpy(out + kBlockRows * format.scale_bytes + format.scale_bytes * row, m, format.scale_bytes);
  }
  // Scale of group `index`, or of half-group `index`.
  std::uint8_t& scale(int index) const { return out[fine_scale_offset(format) + index * kBlockRows + row]; }
  std::uint8_t& minimum(int index) const { return out[fine_minimum_offset(format) + index * kBlockRows + row]; }
};

// d, dmin, 12 bytes of 6-bit scales and minima, then for Q5_K 32 bytes of fifth bits, then 128 bytes of nibbles.
void pack_q45(const Record& r, const std::uint8_t* source) {
  r.copy_scale(source);
  r.copy_minimum(source + 2);
  const std::uint8_t* packed = source + 4;
  for (int j = 0; j < 4; ++j) {
    r.scale(j) = packed[j] & 63;
    r.minimum(j) = packed[4 + j] & 63;
    r.scale(4 + j) = static_cast<std::uint8_t>((packed[8 + j] & 15) | (packed[j] >> 6) << 4);
    r.minimum(4 + j) = static_cast<std::uint8_t>(packed[8 + j] >> 4 | (packed[4 + j] >> 6) << 4);
  }
}

// 128 bytes of low and 64 of high bits, 16 signed scales, d.
void pack_q6(const Record& r, const std::uint8_t* source) {
  r.copy_scale(source + 208);
  for (int j = 0; j < 16; ++j) r.scale(j) = source[192 + j];
}

// 32 bytes of high and 64 of low bits, 12 bytes of 6-bit scales, d.
void pack_q3(const Record& r, const std::uint8_t* source) {
  r.copy_scale(source + 108);
  const std::uint8_t* packed = source + 96;
  for (int j = 0; j < 16; ++j) {
    const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    const int high = packed[8 + j % 4] >> (2 * (j / 4)) & 3;
    r.scale(j) = static_cast<std::uint8_t>((low | high << 4) - 32);
  }
}

// 16 bytes of a 4-bit scale and, above it, a 4-bit minimum, 64 of codes, d, dmin.
void pack_q2(const Record& r, const std::uint8_t* source) {
  r.copy_scale(source + 80);
  r.copy_minimum(source + 82);
  for (int j = 0; j < 16; ++j) r.scale(j) = source[j];
}

// d, 2 bytes of high and 4 of low bits of scales, 128 bytes of nibbles.
void pack_iq4(const Record& r, const std::uint8_t* source) {
  r.copy_scale(source);
  for (int j = 0; j < 8; ++j) {
    const int low = source[4 + j / 2] >> (4 * (j % 2)) & 15;
    const int high = source[2 + j / 4] >> (2 * (j % 4)) & 3;
    r.scale(j) = static_cast<std::uint8_t>((low | high << 4) - 32);
  }
}

}  // namespace

void pack_scales(WeightType type, const std::uint8_t* source, int row, std::uint8_t* record) {
  const Record r{format_of(type), record, row};
  switch (type) {
    case WeightType::kQ2_K:
      return pack_q2(r, source);
    case WeightType::kQ3_K:
      return pack_q3(r, source);
    case WeightType::kQ6_K:
      return pack_q6(r, source);
    case WeightType::kIQ4_XS:
      return pack_iq4(r, source);
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return pack_q45(r, source);
    default:  // d, m where there is one, then codes
      r.copy_scale(source);
      if (r.format.has_minimum) r.copy_minimum(source + r.format.scale_bytes);
  }
}

}  // namespace paceline

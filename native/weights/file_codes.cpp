#include "weights/file_codes.hpp"

#include <cstring>

namespace paceline {
namespace {

constexpr int kHalfGroup = kGroup / 2;

// 16 bytes: columns 0 to 15 are the low halves, 16 to 31 the high halves.
void read_nibbles(const std::uint8_t* source, std::uint8_t* codes) {
  for (int c = 0; c < kHalfGroup; ++c) codes[c] = source[c] & 15;
  for (int c = 0; c < kHalfGroup; ++c) codes[kHalfGroup + c] = source[c] >> 4;
}

// The bits `mask` above `shift` of 32 bytes.
void read_fields(const std::uint8_t* source, int shift, unsigned mask, std::uint8_t* codes) {
  for (int c = 0; c < kGroup; ++c) codes[c] = static_cast<std::uint8_t>(source[c] >> shift & mask);
}

// The same, added from bit `left` on.
void add_fields(const std::uint8_t* source, int shift, unsigned mask, int left, std::uint8_t* codes) {
  for (int c = 0; c < kGroup; ++c) codes[c] = static_cast<std::uint8_t>(codes[c] | (source[c] >> shift & mask) << left);
}

void read_bytes(const std::uint8_t* source, std::uint8_t* codes) {
  for (int c = 0; c < kGroup; ++c) codes[c] = source[c] ^ 0x80u;
}

// Bit c of 4 bytes is the fifth bit of column c.
void add_fifth_bits(const std::uint8_t* source, std::uint8_t* codes) {
  for (int c = 0; c < kGroup; ++c) {
    codes[c] = static_cast<std::uint8_t>(codes[c] | (source[c / 8] >> c % 8 & 1) << 4);
  }
}

}  // namespace

void read_codes(WeightType type, const std::uint8_t* unit, int group, std::uint8_t* codes) {
  const int half = group / 4;
  const int quarter = group % 4;
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kIQ4_NL:
      return read_nibbles(unit + 2, codes);
    case WeightType::kQ4_1:
      return read_nibbles(unit + 4, codes);
    case WeightType::kMXFP4:
      return read_nibbles(unit + 1, codes);
    case WeightType::kIQ4_XS:
      return read_nibbles(unit + 8 + kHalfGroup * group, codes);
    case WeightType::kQ5_0:
      read_nibbles(unit + 6, codes);
      return add_fifth_bits(unit + 2, codes);
    case WeightType::kQ5_1:
      read_nibbles(unit + 8, codes);
      return add_fifth_bits(unit + 4, codes);
    case WeightType::kQ8_0:
      return read_bytes(unit + 2, codes);
    case WeightType::kQ8_K:
      return read_bytes(unit + 4 + kGroup * group, codes);
    case WeightType::kQ2_K:
      return read_fields(unit + 16 + kGroup * half, 2 * quarter, 3, codes);
    case WeightType::kQ3_K:
      read_fields(unit + 32 + kGroup * half, 2 * quarter, 3, codes);
      return add_fields(unit, group, 1, 2, codes);
    case WeightType::kQ4_K:
      return read_fields(unit + 16 + kGroup * (group / 2), 4 * (group % 2), 15, codes);
    case WeightType::kQ5_K:
      read_fields(unit + 48 + kGroup * (group / 2), 4 * (group % 2), 15, codes);
      return add_fields(unit + 16, group, 1, 4, codes);
    case WeightType::kQ6_K:
      read_fields(unit + 64 * half + kGroup * (quarter % 2), 4 * (quarter / 2), 15, codes);
      return add_fields(unit + 128 + kGroup * half, 2 * quarter, 3, 4, codes);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      break;  // have no codes
  }
}

}  // namespace paceline

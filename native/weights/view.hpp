// Weight matrices in the layout that the small-batch kernels read.
//
// Output rows are grouped by 16 into *blocks* (the last one padded with zero rows), input columns by 32 into *groups*.
// A block is contiguous and begins on a cache line. Codes of a group are packed as `code_bits.hpp` says, by itself: its
// 4-byte words of 16 rows lie side by side, byte i of word w of row r at 64 w + 4 r + i. So 8, 4 or 16 lanes of a
// register are as many rows, and nothing depends on which group of its block it is.
//
// A block is a sequence of *records*, each of what shares a scale in the file: one group, or for the K types the 8
// groups of 256 columns. So it is read as one stream. A record is
//
//   d [16] (float16; MXFP4: exponent bytes; Q8_K: float32), for types with a minimum m or dmin [16] float16,
//   scales within the record and their minima, where the type has them, codes [groups]
//
// where scales are bytes [8 groups][16 rows], for Q2_K, Q3_K, Q6_K one for each half of a group, [8 groups][2][16].
// Float types are values [columns][16]. The numbers are exactly the file's.
//
// This header is also read by units compiled for one processor only: everything in it is plain or has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

enum class WeightType : int {  // numbered as in GGUF
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

inline constexpr int kBlockRows = 16;
inline constexpr int kGroup = 32;
inline constexpr int kRecordGroups = 8;  // of the K types

// What one type's file and packed blocks hold, for one output row.
struct Format {
  int columns;       // that one unit of the file packs: 1, 32 or 256
  int file_bytes;    // of such a unit
  int scale_bytes;   // d of one group or record
  bool has_minimum;  // as many bytes of m or dmin follow
  int fine_scales;   // bytes a record has of scales within it, minima not counted
  bool has_minima;   // as many bytes of minima follow
  int code_bits;     // of a packed code
  int max_code;      // as multiplied: unsigned, after a table's offset
  int zero_code;     // the code that stands for 0
};

static constexpr Format format_of(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return {1, 4, 0, false, 0, false, 0, 0, 0};
    case WeightType::kF16:
    case WeightType::kBF16:
      return {1, 2, 0, false, 0, false, 0, 0, 0};
    case WeightType::kQ4_0:
      return {32, 18, 2, false, 0, false, 4, 15, 8};
    case WeightType::kQ4_1:
      return {32, 20, 2, true, 0, false, 4, 15, 0};
    case WeightType::kQ5_0:
      return {32, 22, 2, false, 0, false, 5, 31, 16};
    case WeightType::kQ5_1:
      return {32, 24, 2, true, 0, false, 5, 31, 0};
    case WeightType::kQ8_0:
      return {32, 34, 2, false, 0, false, 8, 255, 128};
    case WeightType::kIQ4_NL:
      return {32, 18, 2, false, 0, false, 4, 255, 128};
    case WeightType::kMXFP4:
      return {32, 17, 1, false, 0, false, 4, 24, 12};
    case WeightType::kQ2_K:
      return {256, 84, 2, true, 16, false, 2, 3, 0};  // a scale byte holds its minimum too
    case WeightType::kQ3_K:
      return {256, 110, 2, false, 16, false, 3, 7, 4};
    case WeightType::kQ4_K:
      return {256, 144, 2, true, 8, true, 4, 15, 0};
    case WeightType::kQ5_K:
      return {256, 176, 2, true, 8, true, 5, 31, 0};
    case WeightType::kQ6_K:
      return {256, 210, 2, false, 16, false, 6, 63, 32};
    case WeightType::kQ8_K:
      return {256, 292, 4, false, 0, false, 8, 255, 128};
    case WeightType::kIQ4_XS:
      return {256, 136, 2, false, 8, false, 4, 255, 128};
  }
  return {};  // not a type: no columns
}

static constexpr bool is_known(WeightType type) { return format_of(type).columns != 0; }
static constexpr bool is_quantized(WeightType type) { return format_of(type).columns > 1; }
static constexpr int record_groups(WeightType type) { return format_of(type).columns / kGroup; }
static constexpr bool has_half_scales(WeightType type) { return format_of(type).fine_scales == 2 * kRecordGroups; }

// Bytes of the codes of one group of a block.
static constexpr int group_code_bytes(const Format& f) { return kBlockRows * kGroup / 8 * f.code_bits; }

// Where the parts of a record begin.
static constexpr int fine_scale_offset(const Format& f) { return kBlockRows * f.scale_bytes * (f.has_minimum ? 2 : 1); }
static constexpr int fine_minimum_offset(const Format& f) { return fine_scale_offset(f) + kBlockRows * f.fine_scales; }
static constexpr int record_code_offset(const Format& f) {
  return fine_minimum_offset(f) + (f.has_minima ? kBlockRows * f.fine_scales : 0);
}
static constexpr int record_bytes(const Format& f) {
  return record_code_offset(f) + f.columns / kGroup * group_code_bytes(f);
}

// What a kernel sees of a matrix.
struct MatrixView {
  WeightType type = WeightType::kF32;
  int num_blocks = 0;
  int columns = 0;
  std::size_t block_bytes = 0;
  const std::uint8_t* data = nullptr;
};

}  // namespace paceline

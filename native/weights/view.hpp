// Weight matrices in the layout that the small-batch kernels read.
//
// Output rows are grouped by 8 into *blocks* (the last one padded with zero rows), input columns by 32 into *groups*.
// A block is contiguous and begins on a cache line. Its scales come first: what a block needs at once is then what has
// been prefetched behind the block before it.
//
//   Q4_0, Q4_1   d [groups][8] float16, for Q4_1 m [groups][8] float16, codes [groups][128 bytes]
//   Q8_0         d [groups][8] float16, codes [groups][256 bytes]
//   F16, F32     values [columns][8]
//
// Within 128 bytes of 4-bit codes, byte 32 j + 4 r + i holds, for block row r, column 4 j + i in the low nibble and
// column 16 + 4 j + i in the high one, 0 <= j < 4. Within 256 bytes of 8-bit codes, byte 32 j + 4 r + i holds column 4
// j + i, 0 <= j < 8, as code + 128. The numbers are exactly the file's:
//   Q4_0 d (c - 8)   Q4_1 d c + m   Q8_0 d c
//
// This header is also read by units compiled for one processor only: everything in it is plain or has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

enum class WeightType : int { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ8_0 = 8 };  // numbered as in GGUF

inline constexpr int kBlockRows = 8;
inline constexpr int kGroup = 32;

// Bytes of the codes of 8 rows of one group; 0 for the float types.
static constexpr std::size_t code_bytes(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
      return kBlockRows * kGroup / 2;
    case WeightType::kQ8_0:
      return kBlockRows * kGroup;
    default:
      return 0;
  }
}

static constexpr bool is_quantized(WeightType type) { return code_bytes(type) != 0; }

// What a kernel sees of a matrix.
struct MatrixView {
  WeightType type = WeightType::kF32;
  int num_blocks = 0;
  int columns = 0;
  std::size_t block_bytes = 0;
  const std::uint8_t* data = nullptr;
};

static inline int num_groups(const MatrixView& m) { return m.columns / kGroup; }

// Where the minima and the codes begin within a block of quantised weights; the scales begin at 0.
static inline std::size_t minimum_offset(const MatrixView& m) { return std::size_t{2} * kBlockRows * num_groups(m); }
static inline std::size_t code_offset(const MatrixView& m) {
  const std::size_t scales = minimum_offset(m) * (m.type == WeightType::kQ4_1 ? 2 : 1);
  return (scales + 63) / 64 * 64;  // codes begin on a cache line: no 32-byte load straddles two
}

}  // namespace paceline

// The kernels that a forward calls, as one table for each instruction set. Plain data only: this header is included by
// translation units compiled for different processors, so it defines no function that the linker could share.
//
// Row invariance: every value that a kernel writes for a row is the same sum in the same order, whatever other rows,
// tiles or threads there are. A kernel may split rows and outputs among threads, never a reduction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sampling/elementary.hpp"
#include "weights/view.hpp"

namespace paceline {

inline constexpr int kMaxRows = 16;   // rows that one pass over a weight block serves
inline constexpr int kPageSize = 16;  // slots in a page; also the positions that attention scores at a time

// Positions whose softmax attention takes on its own: chunk i is [i * kChunk, (i + 1) * kChunk), whoever sees of it
// what. So what a row gets from a chunk does not depend on how chunks are dealt out.
inline constexpr int kChunk = 256;
inline constexpr int kTileQueries = 6;   // queries whose sums the registers hold
inline constexpr int kTaskQueries = 24;  // queries that a task takes through a chunk while the cache holds it

// The steps of the arithmetic probes.
inline constexpr int kCodeMultiplyAdds = 512;
inline constexpr int kFloatChains = 10;
inline constexpr int kFloatLanes = 8;

// 32 inputs of one row, quantised: value = scale * code.
struct QuantizedGroup {
  std::int8_t codes[kGroup];
  float scale;
  float scaled_sum;              // scale * sum of the codes
  std::int16_t pair_sums[2][2];  // of codes 4 j and 4 j + 1, and of 4 j + 2 and 4 j + 3; of each half of the group
};

// The same codes in two parts, for 8-bit weights: code = 16 * high + low with high in [-8, 8] and low in [-8, 7], whose
// products with 8-bit weights leave room to be added up in 16 bits.
struct SplitGroup {
  std::int8_t high[kGroup];
  std::int8_t low[kGroup];
  float scale;
  std::int32_t sum;  // of the codes
};

// Rows of inputs of a product, in float32 and quantised. Quantised rows come in panels of kMaxRows, group by group, so
// that what a pass needs of a group lies side by side: see `group_index`.
struct Activations {
  int columns = 0;
  float* values = nullptr;  // [rows][columns]
  QuantizedGroup* quantized = nullptr;
  SplitGroup* split = nullptr;
};

// Where group `group` of row `row` lies.
static inline std::size_t group_index(const Activations& x, std::size_t row, std::size_t group) {
  return (row / kMaxRows * (x.columns / kGroup) + group) * kMaxRows + row % kMaxRows;
}

// How many rows of inputs meet a group at a time at most: all of a pass, or one of several tiles of it.
struct TileSizes {
  int alone;
  int of_several;
};

// How many streams of weights a product with one row of inputs reads at a time.
inline constexpr int kStreams = 4;

// Blocks [first, last) of a matrix, and of each further stream the ones `stride` blocks behind the stream before it.
struct Blocks {
  int first;
  int last;
  int stride;
  int num_streams;
};

struct Product {
  MatrixView weights;
  Activations inputs;
  int num_rows = 0;
  int num_outputs = 0;   // of the last block only as many are written as there are
  float* out = nullptr;  // row m, output o at out[m * out_stride + o]
  std::size_t out_stride = 0;
};

// Where the keys and values of one layer lie. Halves of page p, head h start at base + p * page_stride + h *
// head_stride: keys [head_dim][kPageSize], then values [kPageSize][head_dim].
struct LayerStore {
  std::uint16_t* base = nullptr;
  std::size_t page_stride = 0;
  std::size_t head_stride = 0;
};

// What one row may see: positions [0, num_visible), less those that a layer's window hides. Position i lies in slot i
// for i < num_straight, and in slot path[i - num_straight] after that.
struct RowView {
  const std::int32_t* pages = nullptr;
  int num_visible = 0;
  int num_straight = 0;
  const std::int32_t* path = nullptr;
};

struct AttentionShape {
  int head_dim = 0;
  int num_heads = 0;  // query heads
  int num_kv_heads = 0;
  float scale = 0;  // of the scores
  int window = 0;   // positions that a row sees, its own included; 0: all
};

// Queries of a segment's rows, served by one key/value head: query i is head kv_head * group + i % group of row
// first_row + i / group, where group query heads share keys and values.
struct AttentionQueries {
  int first_row = 0;
  int kv_head = 0;
  int first = 0, last = 0;
};

// The rows of a forward, as attention needs them: those of row r begin at r times the stride.
struct AttentionRows {
  const RowView* views = nullptr;
  const float* queries = nullptr;
  std::size_t query_stride = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

// What a query gets from a chunk: its values weighted and added up, the largest score, the sum of the weights.
// Partials are such results in memory: chunk by chunk, query by query, partial_size(head_dim) floats each.
static inline std::size_t partial_size(int head_dim) { return static_cast<std::size_t>(head_dim) + 8; }

// Queries [first, last) over chunks [first_chunk, last_chunk). Without `partials` those must be all that any of them
// sees, and the results are put together; with them, each chunk's go to `partials`, whose first chunk is first_chunk.
struct AttentionTask {
  AttentionQueries queries;
  int first_chunk = 0, last_chunk = 0;
  float* partials = nullptr;
};

// Scratch of one thread for attention.
struct AttentionScratch {
  float* scores = nullptr;        // [kTileQueries][kChunk]
  float* partials = nullptr;      // [kTileQueries][partial_size]
  float* totals = nullptr;        // [kTaskQueries][2]
  std::uint16_t* keys = nullptr;  // [head_dim][kPageSize]
};

// Numbers of a row whose highest is found together.
inline constexpr int kScanBlock = 64;

// Below it round(2^42 exp(x)) is 0.
inline constexpr double kLowestExponent = -31.0;

// How top-p weighs. What is known when compiled would be followed into branches, and the loop not be vectorised.
struct Weighing {
  double temperature;
  double top;  // the highest number of the row, divided by the temperature
  double lowest = kLowestExponent;
};

// A token before the most likely one, of which top-p has to know how much lies above it.
struct Prospect {
  float value;
  float top;  // the highest number of the row
  float inverse_temperature;
};

// Sums of exp((number - top) / temperature), as float32 has them: an error of up to 1e-5 of each, and 1e-6.
struct Masses {
  double above;  // of the numbers not below the prospect's value, itself among them
  double total;
};

// Which tokens of a row may still win argmax((value - top) / temperature + g).
struct Contest {
  NoiseKey key;
  float top;
  float inverse_temperature;
  float limit;  // what the best so far has reached
};

inline constexpr float kContenderMargin = 2e-4f;
// An upper bound of g is kBoundAtZero - kBoundOfBit * (bits of 2^31 * (1 - u) as a float).
inline constexpr float kBoundOfBit = 0x1.62e430p-1f * 0x1p-23f;
inline constexpr float kBoundAtZero = 0x1.62e430p-1f * (127 + 31);

struct Kernels {
  const char* name;

  // Some blocks of the product, all rows.
  void (*multiply)(const Product&, const Blocks&);

  // Quantises columns [first, last) of row `row` of the activations' values; whole groups. A group with a value that is
  // not finite gets the scale NaN, so that the fault shows in everything computed from it.
  void (*quantize)(const Activations&, int row, int first, int last);

  // x += residual (where given), then out = x / rms(x) * weight.
  void (*rms_norm)(float* x, const float* residual, const float* weight, float epsilon, int count, float* out);

  // out[i] = silu(gate[i]) * up[i]; count is a multiple of 8.
  void (*swiglu)(const float* gate, const float* up, int count, float* out);
  // The same with the tanh form of GELU in place of silu.
  void (*geglu)(const float* gate, const float* up, int count, float* out);

  // Rotates the pairs (2 i, 2 i + 1) of a head in place by the angles of its position, i < rotated / 2.
  void (*rope)(float* head, const float* cosines, const float* sines, int rotated);
  // The same for the pairs (i, i + rotated / 2).
  void (*rope_split)(float* head, const float* cosines, const float* sines, int rotated);

  // Stores one head's key and value, float32, into slot offset `offset` of a page.
  void (*store_kv)(const float* key, const float* value, int head_dim, std::uint16_t* page_head, int offset);

  void (*attend)(const AttentionShape&, const LayerStore&, const AttentionRows&, const AttentionTask&,
                 const AttentionScratch&);
  // Puts together what query head `head` of a row got from the chunks that it sees: the first of them has its partial
  // at `partials`, each other one `stride` floats behind the one before.
  void (*merge)(const AttentionShape&, const RowView&, const float* partials, std::size_t stride, float* out);

  // Reads `bytes` as 1, 2, 4 or 8 parallel prefetched streams; returns a checksum.
  std::uint64_t (*read_streams)(const std::uint8_t* data, std::size_t bytes, int num_streams);

  // Each step does kCodeMultiplyAdds products of codes and inputs, from 256 bytes of codes and 32 of inputs; returns a
  // checksum.
  std::uint64_t (*multiply_codes)(const std::uint8_t* data, std::size_t num_steps);
  // Each step does x[j] = x[j] * data[j] + data[8 + j], j < 8, for kFloatChains chains x; chain i begins as
  // x[j] = data[16 + i + j]. Returns a checksum.
  std::uint64_t (*multiply_floats)(const float* data, std::size_t num_steps);

  // The highest number of each kScanBlock of a row, the last block being what is left of it. Returns whether all
  // numbers are finite; only then, or where some are -inf, are the highest meaningful.
  bool (*scan_row)(const float* values, std::size_t count, float* highest);
  // The weights for top-p of numbers that are finite or -inf. Returns their sum.
  std::int64_t (*weigh_all)(const Weighing&, const float* values, std::size_t count, std::int64_t* weights);
  // Of numbers that are finite or -inf. `above` may be more, by numbers that are less than 1e-30 below the value.
  Masses (*estimate_masses)(const Prospect&, const float* values, std::size_t count);
  // The indices i of values that may reach the contest's limit with the noise of token ids[i] + first, and few that do
  // not. Returns how many were written to `found`, which has room for `count` and one more.
  std::size_t (*find_contenders)(const Contest&, const float* values, const std::int32_t* ids, std::int32_t first,
                                 std::size_t count, std::int32_t* found);
};

extern const Kernels kPortableKernels;
// Null where this build has none.
extern const Kernels* const kAvx2Kernels;
extern const Kernels* const kAvx512Kernels;
extern const Kernels* const kNeonKernels;

}  // namespace paceline

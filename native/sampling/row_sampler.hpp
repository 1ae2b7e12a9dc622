// The canonical sampler: one token from one row of logits, the same as paceline/acceptance/reference.py draws.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"
#include "sampling/candidates.hpp"
#include "support/aligned.hpp"

namespace paceline {

// What is drawn from a row, and how. `values[i]` replaces the logit of token ids[i]; bit i % 32 of mask[i / 32] is 1
// where token i is allowed, and without a mask all are.
struct Draw {
  double temperature = 0;  // 0: the argmax
  double log_min_p = 0;    // -infinity: no min-p
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
  std::uint32_t stream = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> values;
  std::vector<std::uint32_t> mask;
};

inline constexpr int kNotFinite = -1;       // a logit is NaN or an infinity, or a replacement NaN or infinity
inline constexpr int kNothingAllowed = -2;  // no token is left

// For one thread; its memory is touched as far as it is needed.
class RowSampler {
 public:
  RowSampler(int vocab_size, const Kernels& kernels);

  // Throws std::invalid_argument where `draw` is out of range.
  void check(const Draw& draw) const;
  // The token, or one of the constants above. `draw` has passed the check; does not throw but for want of memory.
  int sample(const float* logits, const Draw& draw);

 private:
  static constexpr int kSearchBlock = 1024;

  // What a row is drawn with, and the best token so far.
  struct Search {
    double temperature;
    double top;  // of all logits, divided by the temperature
    Contest contest;
    double best;
    std::int32_t token;
  };

  bool edit(const float* logits, const Draw& draw);
  float highest_of_row() const;
  int first_of(float value, const float* row) const;
  float find_threshold(const Draw& draw, float top);
  bool reaches_most(float threshold) const;
  void narrow(const Draw& draw, float threshold, const float* row);
  bool is_surely_kept(const Draw& draw, float top, float value, const float* values, std::size_t count) const;
  bool keep_top_p(const Draw& draw, float top, const float* row, int token);
  float top_p_threshold(const Draw& draw, float top);
  std::int64_t weigh_row(const Weighing& weighing, float top, const float* row) const;
  float top_k_threshold(std::int64_t top_k);
  void gather(const float* row, float threshold);
  void enter(Search& search, float value, std::int32_t token) const;
  void search_block(Search& search, const float* values, const std::int32_t* ids, std::int32_t first,
                    std::size_t count);
  Search begin(const Draw& draw, float top, std::int32_t token) const;
  int search_row(Search& search, const float* row);
  int search_candidates(Search& search);

  std::size_t num_blocks() const { return highest_.size(); }

  const std::size_t vocab_size_;
  const Kernels& kernels_;
  AlignedBuffer<float> edited_;
  AlignedBuffer<float> highest_;  // of each block of the row
  AlignedBuffer<float> order_;    // scratch: as many
  Candidates candidates_;
  std::array<std::int32_t, kSearchBlock> count_up_;
  std::array<std::int32_t, kSearchBlock + 1> found_;
};

}  // namespace paceline

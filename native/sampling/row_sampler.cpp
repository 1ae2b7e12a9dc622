#include "sampling/row_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/noise.hpp"
#include "sampling/truncation.hpp"
#include "support/check.hpp"
#include "support/float_mode.hpp"

namespace paceline {
namespace {

constexpr int kFirstBlock = 64;  // of a search: the sooner the best is good, the fewer are looked at closely

}  // namespace

RowSampler::RowSampler(int vocab_size, const Kernels& kernels)
    : vocab_size_((require(vocab_size >= 1 && vocab_size <= 1 << 20, "a row must have 1 to 2^20 logits"), vocab_size)),
      kernels_(kernels),
      edited_(vocab_size_),
      highest_((vocab_size_ + kScanBlock - 1) / kScanBlock),
      order_(highest_.size()),
      candidates_(vocab_size_ + 1) {
  std::iota(count_up_.begin(), count_up_.end(), 0);
}

void RowSampler::check(const Draw& draw) const {
  require(draw.temperature == 0 || (draw.temperature >= 0x1p-64 && draw.temperature <= 0x1p64),
          "a temperature must be 0, or 2^-64 to 2^64");
  require(draw.log_min_p <= 0, "min_p must be at most 1");
  require(draw.top_k >= 0 && draw.top_p > 0 && draw.top_p <= 1, "top_k or top_p is out of range");
  require(draw.position <= INT64_MAX, "a position must be below 2^63");
  require(draw.ids.size() == draw.values.size(), "each replaced token needs one value");
  for (const std::int32_t id : draw.ids) {
    require(id >= 0 && static_cast<std::size_t>(id) < vocab_size_, "a replaced token is not in the vocabulary");
  }
  require(draw.mask.empty() || draw.mask.size() == (vocab_size_ + 31) / 32, "a mask needs a bit for each token");
}

int RowSampler::sample(const float* logits, const Draw& draw) {
  const FloatMode mode;
  if (!kernels_.scan_row(logits, vocab_size_, highest_.data())) return kNotFinite;
  const float* row = logits;
  if (!draw.ids.empty() || !draw.mask.empty()) {
    if (!edit(logits, draw)) return kNotFinite;
    row = edited_.data();
    kernels_.scan_row(row, vocab_size_, highest_.data());
  }
  const float top = highest_of_row();
  if (top == -kInfinity) return kNothingAllowed;
  const int first = first_of(top, row);
  if (draw.temperature == 0) return first;
  Search search = begin(draw, top, first);
  if (!truncates(draw, vocab_size_)) return search_row(search, row);
  const float threshold = find_threshold(draw, top);
  const bool is_whole = has_top_p_alone(draw, vocab_size_) && reaches_most(threshold);
  if (!is_whole) narrow(draw, threshold, row);
  const int token = is_whole ? search_row(search, row) : search_candidates(search);
  if (draw.top_p == 1) return token;
  // Mostly the best of all candidates is also the best of those that top-p keeps, which then need not be told apart.
  const Candidates& c = candidates_;
  const bool is_kept = is_whole ? is_surely_kept(draw, top, row[token], row, vocab_size_)
                                : is_surely_kept(draw, top, row[token], c.values.data(), c.size);
  if (is_kept) return token;
  if (is_whole) gather(row, threshold);
  if (keep_top_p(draw, top, row, token)) return token;
  search = begin(draw, top, first);
  return search_candidates(search);
}

// Whether top-p surely keeps a token of that value, as estimates of what lies above it and of all candidates tell.
// Unlikely values, ties among them, may be kept without being so surely.
bool RowSampler::is_surely_kept(const Draw& draw, float top, float value, const float* values,
                                std::size_t count) const {
  constexpr double kMost = 1 + 1e-4, kLeast = 1 - 1e-4, kSlack = 1e-5;  // ten times the errors
  const Masses masses = kernels_.estimate_masses({value, top, static_cast<float>(1 / draw.temperature)}, values, count);
  return masses.above * kMost + kSlack < draw.top_p * (masses.total * kLeast - kSlack);
}

// Keeps of the candidates what top-p does, or returns true where `token`, the best of them, is among those: mostly the
// candidates weigh enough to show it, without all that lies below them.
bool RowSampler::keep_top_p(const Draw& draw, float top, const float* row, int token) {
  const Weighing weighing{draw.temperature, static_cast<double>(top) / draw.temperature};
  Candidates& c = candidates_;
  std::int64_t total = kernels_.weigh_all(weighing, c.values.data(), c.size, c.weights.data());
  const std::int64_t above = weight_above(c, row[token], token);
  if (above < top_p_limit(draw.top_p, total)) return true;
  if (has_top_p_alone(draw, vocab_size_)) total = weigh_row(weighing, top, row);
  const std::int64_t limit = top_p_limit(draw.top_p, total);
  if (above < limit) return true;
  keep_prefix(c, limit);
  return false;
}

// Returns false where a replacement is no logit.
bool RowSampler::edit(const float* logits, const Draw& draw) {
  std::copy(logits, logits + vocab_size_, edited_.data());
  for (std::size_t i = 0; i < draw.ids.size(); ++i) {
    if (!(draw.values[i] < kInfinity)) return false;
    edited_[draw.ids[i]] = draw.values[i];
  }
  if (draw.mask.empty()) return true;
  for (std::size_t begin = 0; begin < vocab_size_; begin += 32) {
    const std::uint32_t word = draw.mask[begin / 32];
    if (word == ~std::uint32_t{0}) continue;
    const std::size_t count = std::min<std::size_t>(32, vocab_size_ - begin);
    float* block = edited_.data() + begin;
    for (std::size_t i = 0; i < count; ++i) block[i] = (word >> i & 1) != 0 ? block[i] : -kInfinity;
  }
  return true;
}

float RowSampler::highest_of_row() const {
  return *std::max_element(highest_.data(), highest_.data() + highest_.size());
}

int RowSampler::first_of(float value, const float* row) const {
  const float* block = std::find(highest_.data(), highest_.data() + highest_.size(), value);
  const float* begin = row + (block - highest_.data()) * kScanBlock;
  return static_cast<int>(std::find(begin, row + vocab_size_, value) - row);
}

// No number below it is kept.
float RowSampler::find_threshold(const Draw& draw, float top) {
  if (has_top_p_alone(draw, vocab_size_)) return top_p_threshold(draw, top);
  const double scaled_top = static_cast<double>(top) / draw.temperature;
  float threshold = kLowestFinite;
  if (has_min_p(draw)) threshold = lowest_at_least(scaled_top + draw.log_min_p, draw.temperature);
  if (has_top_k(draw, vocab_size_)) threshold = std::max(threshold, top_k_threshold(draw.top_k));
  return threshold;
}

// Whether so many numbers may reach the threshold that it is as well to look at all.
bool RowSampler::reaches_most(float threshold) const {
  const auto reaches = [=](float value) { return value >= threshold; };
  return 2 * static_cast<std::size_t>(std::count_if(highest_.data(), highest_.data() + num_blocks(), reaches)) >
         num_blocks();
}

// Makes candidates of what min-p and top-k keep; with top-p alone, of all that it can keep.
void RowSampler::narrow(const Draw& draw, float threshold, const float* row) {
  gather(row, threshold);
  Candidates& c = candidates_;
  if (!has_top_k(draw, vocab_size_) || static_cast<std::size_t>(draw.top_k) >= c.size) return;
  std::fill(c.weights.data(), c.weights.data() + c.size, 1);
  keep_prefix(c, draw.top_k);
}

// All that lies below it weighs together no more than top-p drops, or nothing at all. The whole weighs at least what
// the highest of the blocks do.
float RowSampler::top_p_threshold(const Draw& draw, float top) {
  const Weighing weighing{draw.temperature, static_cast<double>(top) / draw.temperature};
  double exponent = kLowestExponent;
  if (draw.top_p < 1 - 1e-6) {
    const auto least =
        static_cast<double>(kernels_.weigh_all(weighing, highest_.data(), num_blocks(), candidates_.weights.data()));
    const double each = (least * (1 - draw.top_p) * (1 - 1e-9) - 2) / static_cast<double>(vocab_size_) - 1;
    if (each > 1) exponent = std::max(exponent, std::log(each * 0x1p-42) - 1e-6);
  }
  return lowest_with(exponent, draw.temperature, top);
}

// The weight of the whole row.
std::int64_t RowSampler::weigh_row(const Weighing& weighing, float top, const float* row) const {
  const float lowest = lowest_with(kLowestExponent, weighing.temperature, top);
  std::array<std::int64_t, kScanBlock> weights;
  std::int64_t total = 0;
  for (std::size_t block = 0; block < num_blocks(); ++block) {
    if (highest_[block] < lowest) continue;
    const std::size_t begin = block * kScanBlock;
    total += kernels_.weigh_all(weighing, row + begin, std::min<std::size_t>(kScanBlock, vocab_size_ - begin),
                                weights.data());
  }
  return total;
}

// At least `top_k` numbers of the row reach it: one in each of as many blocks.
float RowSampler::top_k_threshold(std::int64_t top_k) {
  if (static_cast<std::size_t>(top_k) > num_blocks()) return kLowestFinite;
  std::copy(highest_.data(), highest_.data() + num_blocks(), order_.data());
  float* nth = order_.data() + top_k - 1;
  std::nth_element(order_.data(), nth, order_.data() + num_blocks(), std::greater<>());
  return std::max(*nth, kLowestFinite);
}

// Makes candidates of what reaches the threshold.
void RowSampler::gather(const float* row, float threshold) {
  Candidates& c = candidates_;
  std::size_t size = 0;
  for (std::size_t block = 0; block < num_blocks(); ++block) {
    if (highest_[block] < threshold) continue;
    const std::size_t end = std::min((block + 1) * kScanBlock, vocab_size_);
    for (std::size_t i = block * kScanBlock; i < end; ++i) {
      c.values[size] = row[i];
      c.ids[size] = static_cast<std::int32_t>(i);
      size += row[i] >= threshold ? 1 : 0;
    }
  }
  c.size = size;
}

RowSampler::Search RowSampler::begin(const Draw& draw, float top, std::int32_t token) const {
  Search search{
      draw.temperature,
      static_cast<double>(top) / draw.temperature,
      {make_noise_key(draw.seed, draw.position, draw.stream), top, static_cast<float>(1 / draw.temperature), 0},
      -std::numeric_limits<double>::infinity(),
      token};
  enter(search, top, token);
  return search;
}

// Compares a token with the best. The limit allows for the roundings of z + g, which count where z is large.
void RowSampler::enter(Search& search, float value, std::int32_t token) const {
  const double g = gumbel(search.contest.key, static_cast<std::uint32_t>(token));
  const double score = static_cast<double>(value) / search.temperature + g;
  if (!(score > search.best || (score == search.best && token < search.token))) return;
  search.best = score;
  search.token = token;
  const double slack = (std::abs(search.top) + 64) * 0x1p-50;
  search.contest.limit = static_cast<float>(score - search.top - slack);
}

void RowSampler::search_block(Search& search, const float* values, const std::int32_t* ids, std::int32_t first,
                              std::size_t count) {
  const std::size_t num_found = kernels_.find_contenders(search.contest, values, ids, first, count, found_.data());
  for (std::size_t i = 0; i < num_found; ++i) enter(search, values[found_[i]], ids[found_[i]] + first);
}

int RowSampler::search_row(Search& search, const float* row) {
  std::size_t size = kFirstBlock;
  for (std::size_t begin = 0; begin < vocab_size_; begin += size) {
    if (begin >= kSearchBlock) size = kSearchBlock;
    const std::size_t count = std::min(size, vocab_size_ - begin);
    search_block(search, row + begin, count_up_.data(), static_cast<std::int32_t>(begin), count);
  }
  return search.token;
}

int RowSampler::search_candidates(Search& search) {
  const Candidates& c = candidates_;
  std::size_t size = kFirstBlock;
  for (std::size_t begin = 0; begin < c.size; begin += size) {
    if (begin >= kSearchBlock) size = kSearchBlock;
    search_block(search, c.values.data() + begin, c.ids.data() + begin, 0, std::min(size, c.size - begin));
  }
  return search.token;
}

}  // namespace paceline

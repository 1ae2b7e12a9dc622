#include "sampling/row_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/noise.hpp"
#include "support/check.hpp"
#include "support/float_mode.hpp"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowestFinite = std::numeric_limits<float>::lowest();
constexpr int kFirstBlock = 64;  // of a search: the sooner the best is good, the fewer are looked at closely

bool has_top_k(const Draw& draw, std::size_t vocab_size) {
  return draw.top_k > 0 && static_cast<std::size_t>(draw.top_k) < vocab_size;
}

bool truncates(const Draw& draw, std::size_t vocab_size) {
  return draw.log_min_p > -std::numeric_limits<double>::infinity() || has_top_k(draw, vocab_size) || draw.top_p < 1;
}

// The lowest float32 that, divided by the temperature, is at least `least`.
float lowest_at_least(double least, double temperature) {
  const auto is_enough = [&](float value) { return static_cast<double>(value) / temperature >= least; };
  auto value = static_cast<float>(least * temperature);
  while (!is_enough(value)) value = std::nextafter(value, kInfinity);
  while (value > kLowestFinite && is_enough(std::nextafter(value, -kInfinity))) {
    value = std::nextafter(value, -kInfinity);
  }
  return value;
}

// A float32 so low that whatever is below it has an exponent below `exponent`: (value - top) / temperature.
float lowest_with(double exponent, double temperature, float top) {
  const double value = static_cast<double>(top) + exponent * temperature;
  return std::max(std::nextafter(static_cast<float>(value), -kInfinity), kLowestFinite);
}

// Sums of weights before which top-p keeps a token.
std::int64_t top_p_limit(double top_p, std::int64_t total) {
  return std::min(static_cast<std::int64_t>(std::ceil(top_p * static_cast<double>(total))), total);
}

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
  const std::int64_t limit = truncate(draw, top, row);
  const int token = search_candidates(search);
  if (limit == 0 || weight_above(candidates_, row[token], token) < limit) return token;
  keep_prefix(candidates_, limit);
  search = begin(draw, top, first);
  return search_candidates(search);
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

// Leaves the candidates that min-p and top-k keep, and perhaps fewer of those that top-p does not. Returns what top-p
// makes of them, a limit for `keep_prefix`, or 0 without top-p. Mostly the best of all candidates is also the best of
// those that top-p keeps, which then need not be told apart.
std::int64_t RowSampler::truncate(const Draw& draw, float top, const float* row) {
  const Weighing weighing{draw.temperature, static_cast<double>(top) / draw.temperature};
  const bool has_min_p = draw.log_min_p > -std::numeric_limits<double>::infinity();
  Candidates& c = candidates_;
  if (!has_min_p && !has_top_k(draw, vocab_size_)) return weigh_row(draw, weighing, top, row);
  float threshold = has_min_p ? lowest_at_least(weighing.top + draw.log_min_p, draw.temperature) : kLowestFinite;
  if (has_top_k(draw, vocab_size_)) threshold = std::max(threshold, top_k_threshold(draw.top_k));
  gather<false>(row, threshold);
  if (has_top_k(draw, vocab_size_) && static_cast<std::size_t>(draw.top_k) < c.size) {
    std::fill(c.weights.data(), c.weights.data() + c.size, 1);
    keep_prefix(c, draw.top_k);
  }
  if (draw.top_p == 1) return 0;
  return top_p_limit(draw.top_p, kernels_.weigh_all(weighing, c.values.data(), c.size, c.weights.data()));
}

// The same for top-p alone. What lies so low that together it weighs no more than top-p drops is no candidate.
std::int64_t RowSampler::weigh_row(const Draw& draw, const Weighing& weighing, float top, const float* row) {
  const float lowest = lowest_with(kLowestExponent, draw.temperature, top);
  std::int64_t total = 0;
  for (std::size_t block = 0; block < num_blocks(); ++block) {
    if (highest_[block] < lowest) continue;
    const std::size_t begin = block * kScanBlock;
    total += kernels_.weigh_all(weighing, row + begin, std::min<std::size_t>(kScanBlock, vocab_size_ - begin),
                                candidates_.weights.data() + begin);
  }
  const std::int64_t limit = top_p_limit(draw.top_p, total);
  const double each = static_cast<double>(total - limit) / static_cast<double>(vocab_size_) * (1 - 1e-9) - 1;
  const double exponent = each > 1 ? std::log(each * 0x1p-42) - 1e-6 : kLowestExponent;
  gather<true>(row, lowest_with(std::max(exponent, kLowestExponent), draw.temperature, top));
  return limit;
}

// At least `top_k` numbers of the row reach it: one in each of as many blocks.
float RowSampler::top_k_threshold(std::int64_t top_k) {
  if (static_cast<std::size_t>(top_k) > num_blocks()) return kLowestFinite;
  std::copy(highest_.data(), highest_.data() + num_blocks(), order_.data());
  float* nth = order_.data() + top_k - 1;
  std::nth_element(order_.data(), nth, order_.data() + num_blocks(), std::greater<>());
  return std::max(*nth, kLowestFinite);
}

// Makes candidates of what reaches the threshold; their weights, where there are any, lie by id until then.
template <bool kHasWeights>
void RowSampler::gather(const float* row, float threshold) {
  Candidates& c = candidates_;
  std::size_t size = 0;
  for (std::size_t block = 0; block < num_blocks(); ++block) {
    if (highest_[block] < threshold) continue;
    const std::size_t end = std::min((block + 1) * kScanBlock, vocab_size_);
    for (std::size_t i = block * kScanBlock; i < end; ++i) {
      c.values[size] = row[i];
      c.ids[size] = static_cast<std::int32_t>(i);
      if constexpr (kHasWeights) c.weights[size] = c.weights[i];
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

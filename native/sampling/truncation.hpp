// What a draw truncates by, and the numbers at which it does.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/row_sampler.hpp"

namespace paceline {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kLowestFinite = std::numeric_limits<float>::lowest();

inline bool has_top_k(const Draw& draw, std::size_t vocab_size) {
  return draw.top_k > 0 && static_cast<std::size_t>(draw.top_k) < vocab_size;
}

inline bool has_min_p(const Draw& draw) { return draw.log_min_p > -std::numeric_limits<double>::infinity(); }

inline bool truncates(const Draw& draw, std::size_t vocab_size) {
  return has_min_p(draw) || has_top_k(draw, vocab_size) || draw.top_p < 1;
}

inline bool has_top_p_alone(const Draw& draw, std::size_t vocab_size) {
  return draw.top_p < 1 && !has_min_p(draw) && !has_top_k(draw, vocab_size);
}

// The lowest float32 that, divided by the temperature, is at least `least`.
inline float lowest_at_least(double least, double temperature) {
  const auto is_enough = [&](float value) { return static_cast<double>(value) / temperature >= least; };
  auto value = static_cast<float>(least * temperature);
  while (!is_enough(value)) value = std::nextafter(value, kInfinity);
  while (value > kLowestFinite && is_enough(std::nextafter(value, -kInfinity))) {
    value = std::nextafter(value, -kInfinity);
  }
  return value;
}

// A float32 so low that whatever is below it has an exponent below `exponent`: (value - top) / temperature.
inline float lowest_with(double exponent, double temperature, float top) {
  const double value = static_cast<double>(top) + exponent * temperature;
  return std::max(std::nextafter(static_cast<float>(value), -kInfinity), kLowestFinite);
}

// Sums of weights before which top-p keeps a token.
inline std::int64_t top_p_limit(double top_p, std::int64_t total) {
  return std::min(static_cast<std::int64_t>(std::ceil(top_p * static_cast<double>(total))), total);
}

}  // namespace paceline

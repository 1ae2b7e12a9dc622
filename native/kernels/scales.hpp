// The scales of one group of a block, and how a group's sums enter an accumulator with them.
//
// Where a record is one group, with total = the exact sum of (code - zero code) * input code:
//   acc = fma(total, scale * input scale, acc), then acc = fma(minimum, input scale * sum of input codes, acc).
// Where it is several the whole-number scales of groups or half-groups are in the total where they can be, exactly:
//   part = fma(total, input scale, part) over the groups of a record, then acc = fma(d, part, acc), and likewise with
//   the minima and -dmin.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/outputs.hpp"
#include "kernels/unroll.hpp"

namespace paceline::kernels {

// Where a group's codes and its scales lie: d of a record of one group, the fine scales in one of several.
struct GroupPlace {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
};

// Of the group's scales, those of vector kVector of the block.
template <class V, WeightType kType, int kVector>
struct GroupScales {
  static constexpr Format kFormat = format_of(kType);
  // float16 or powers of two, one a group.
  static constexpr bool kIsWhole = record_groups(kType) == 1;
  // Whole numbers of a record that multiply integer totals.
  static constexpr bool kIsInTotal = !kIsWhole && kFormat.max_code < 255;
  // Whole numbers of a record that multiply floats: totals of 8-bit codes.
  static constexpr bool kIsFloat = !kIsWhole && !kIsInTotal && kFormat.fine_scales > 0;
  static constexpr int kFirst = V::kLanes * kVector;

  typename V::Float scale;
  typename V::Float minimum;

  explicit GroupScales(const GroupPlace& place) {
    if constexpr (kIsWhole) {
      scale = V::template load_scale<kFormat.scale_bytes>(place.scales + kFormat.scale_bytes * kFirst);
      if constexpr (kFormat.has_minimum) minimum = V::template load_scale<2>(place.scales + 2 * (kBlockRows + kFirst));
    } else if constexpr (kIsFloat) {
      scale = V::to_float(V::load_signed(place.scales + kFirst));
    }
  }

  // Widens the sums of part kPart of kNumParts to whole 32-bit ones, times the scale where it is a whole number.
  template <int kPart, int kNumParts>
  [[gnu::always_inline]] static typename V::Int widen(const GroupPlace& place, typename V::Sums sums) {
    if constexpr (!kIsInTotal) return V::widen(sums);
    constexpr int kIndex = has_half_scales(kType) ? 2 * kPart / kNumParts : 0;
    const std::uint8_t* scales = place.scales + kBlockRows * kIndex;
    if constexpr (kType == WeightType::kQ2_K) {
      return V::widen_scaled(sums, V::template load_low_nibbles<kVector>(scales));
    } else if constexpr (kFormat.has_minima) {
      return V::widen_scaled(sums, V::template load_unsigned_pairs<kVector>(scales));
    } else {
      return V::widen_scaled(sums, V::template load_signed_pairs<kVector>(scales));
    }
  }

  template <class Input>
  [[gnu::always_inline]] typename V::Float finish(typename V::Float acc, typename V::Int total, const Input& x) const {
    const auto input_scale = V::splat(x.scale);
    if constexpr (kIsWhole || kIsFloat) {
      acc = V::fma(V::to_float(total), V::mul(scale, input_scale), acc);
    } else {
      acc = V::fma(V::to_float(total), input_scale, acc);
    }
    if constexpr (kIsWhole && kFormat.has_minimum) acc = V::fma(minimum, V::splat(x.scaled_sum), acc);
    return acc;
  }
};

// For R rows of inputs, `x` being the first one's first group of a record: sums over the record's groups of minimum *
// (sum of the inputs).
template <class V, WeightType kType, int R>
[[gnu::always_inline]] inline void sum_minima(const std::uint8_t* minima, const QuantizedGroup* x,
                                              typename V::Float (*sums)[kVectors<V>]) {
  for (int g = 0; g < kRecordGroups; ++g, x += kMaxRows) {
    unroll<kVectors<V>>([&]<int b>(Index<b>) __attribute__((always_inline)) {
      if constexpr (kType == WeightType::kQ2_K) {
        const auto first = V::template load_high_nibbles<b>(minima + 2 * g * kBlockRows);
        const auto second = V::template load_high_nibbles<b>(minima + (2 * g + 1) * kBlockRows);
        unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
          const auto total = V::add(V::widen_scaled(V::sums_of(x[r].pair_sums[0]), first),
                                    V::widen_scaled(V::sums_of(x[r].pair_sums[1]), second));
          sums[r][b] = V::fma(V::to_float(total), V::splat(x[r].scale), sums[r][b]);
        });
      } else {
        const auto whole = V::to_float(V::load_unsigned(minima + g * kBlockRows + V::kLanes * b));
        unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
          sums[r][b] = V::fma(whole, V::splat(x[r].scaled_sum), sums[r][b]);
        });
      }
    });
  }
}

// Adds a record's parts, of R rows, to their accumulators.
template <class V, WeightType kType, int R, class Input>
[[gnu::always_inline]] inline void fold_record(const std::uint8_t* record, const Input* x,
                                               typename V::Float (*parts)[kVectors<V>],
                                               typename V::Float (*acc)[kVectors<V>]) {
  constexpr Format kFormat = format_of(kType);
  constexpr int kVectorBytes = V::kLanes * kFormat.scale_bytes;
  typename V::Float minima[R][kVectors<V>];
  if constexpr (kFormat.has_minimum) {
    const int offset = kFormat.has_minima ? fine_minimum_offset(kFormat) : fine_scale_offset(kFormat);
    for (auto& row : minima) {
      for (auto& sum : row) sum = V::zero();
    }
    sum_minima<V, kType, R>(record + offset, x, minima);
  }
  unroll<kVectors<V>>([&]<int b>(Index<b>) __attribute__((always_inline)) {
    const auto d = V::template load_scale<kFormat.scale_bytes>(record + b * kVectorBytes);
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) { acc[r][b] = V::fma(d, parts[r][b], acc[r][b]); });
    if constexpr (kFormat.has_minimum) {
      const auto dmin = V::template load_scale<2>(record + kVectors<V> * kVectorBytes + b * kVectorBytes);
      const auto negative = V::sub(V::zero(), dmin);
      unroll<R>([&]<int r>(Index<r>)
                    __attribute__((always_inline)) { acc[r][b] = V::fma(negative, minima[r][b], acc[r][b]); });
    }
  });
}

}  // namespace paceline::kernels

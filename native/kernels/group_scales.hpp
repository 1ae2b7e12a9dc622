// The scales of one group of a block, and how a group's sums enter an accumulator with them.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/unroll.hpp"

namespace paceline::kernels {

// Where a group's codes and scales lie; of a record, where its codes and the record begin.
struct GroupPlace {
  const std::uint8_t* codes;
  const std::uint8_t* d;
  const std::uint8_t* minima;
};

// One scale a row: value = scale * (code - zero code) + minimum.
template <class Isa, WeightType kType>
struct WholeScales {
  static constexpr Format kFormat = format_of(kType);
  static constexpr bool kHasMinimum = kFormat.has_minimum;
  typename Isa::F8 scale;
  typename Isa::F8 minimum;

  template <int kIndex>
  WholeScales(const GroupPlace& place, Index<kIndex>) {
    if constexpr (has_records(kType)) {
      load_from_record(place.d, kIndex);
    } else if constexpr (kType == WeightType::kMXFP4) {
      scale = Isa::load_half_powers(place.d);
    } else {
      scale = Isa::load_half(place.d);
      if constexpr (kHasMinimum) minimum = Isa::load_half(place.minima);
    }
  }

  // How the partial sum kPart of kNumParts is widened to 32 bits.
  template <int kPart, int kNumParts>
  typename Isa::I8 widen(typename Isa::Pairs sums) const {
    return Isa::widen(sums);
  }

  // With sum = the exact sum of code * input code: acc = fma(sum - zero code * sum of input codes, scale * input scale,
  // acc), then acc = fma(minimum, input scale * sum of input codes, acc) where there are minima.
  template <class Input>
  typename Isa::F8 finish(typename Isa::F8 acc, typename Isa::I8 sum, const Input& x) const {
    if constexpr (kFormat.zero_code != 0) sum = Isa::add(sum, Isa::splat(-kFormat.zero_code * x.sum));
    acc = Isa::fma(Isa::to_float(sum), Isa::mul(scale, Isa::splat(x.scale)), acc);
    if constexpr (kHasMinimum) acc = Isa::fma(minimum, Isa::splat(x.scaled_sum), acc);
    return acc;
  }

 private:
  void load_from_record(const std::uint8_t* record, int group) {
    if constexpr (kType == WeightType::kQ8_K) {
      scale = Isa::load(reinterpret_cast<const float*>(record));
    } else {
      const std::uint8_t* fine = record + fine_scale_offset(kFormat) + kBlockRows * group;
      const auto whole = kHasMinimum ? Isa::load_unsigned(fine) : Isa::load_signed(fine);
      scale = Isa::mul(Isa::load_half(record), Isa::to_float(whole));
      if constexpr (kHasMinimum) {
        const auto negative = Isa::sub(Isa::zero(), Isa::load_half(record + kFormat.scale_bytes));
        minimum = Isa::mul(negative, Isa::to_float(Isa::load_unsigned(fine + kBlockRows * kFormat.fine_scales)));
      }
    }
  }
};

// Whole-number scales for each half of a group, and one float for the record. Everything but that float's product is
// exact: |sum| <= 32 * 63 * 127 * 128 < 2^31.
template <class Isa, WeightType kType>
struct HalfScales {
  static constexpr Format kFormat = format_of(kType);
  static constexpr bool kHasMinimum = kFormat.has_minimum;
  typename Isa::F8 d;
  typename Isa::F8 dmin;
  typename Isa::Pairs halves[2];  // 16-bit, each row's scale of that half twice
  typename Isa::Pairs zeros;      // 16-bit pairs: zero code * scale of both halves
  typename Isa::Pairs minima;     // 16-bit pairs

  template <int kIndex>
  HalfScales(const GroupPlace& place, Index<kIndex>) : d(Isa::load_half(place.d)) {
    const std::uint8_t* record = place.d;
    const std::uint8_t* fine = record + fine_scale_offset(kFormat) + 2 * kBlockRows * kIndex;
    if constexpr (kHasMinimum) {
      const auto negative = Isa::sub(Isa::zero(), Isa::load_half(record + kFormat.scale_bytes));
      dmin = negative;
      minima = Isa::load_high_nibble_pairs(fine);
      Isa::split_pairs(Isa::load_low_nibble_pairs(fine), halves);
    } else {
      const auto pairs = Isa::load_signed_pairs(fine);
      zeros = Isa::template scale_pairs<kFormat.zero_code>(pairs);
      Isa::split_pairs(pairs, halves);
    }
  }

  template <int kPart, int kNumParts>
  typename Isa::I8 widen(typename Isa::Pairs sums) const {
    return Isa::dot_pairs(sums, halves[2 * kPart / kNumParts]);
  }

  template <class Input>
  typename Isa::F8 finish(typename Isa::F8 acc, typename Isa::I8 sum, const Input& x) const {
    const auto half_sums = Isa::splat_pair(x.half_sums);
    const auto scale = Isa::splat(x.scale);
    if constexpr (!kHasMinimum) sum = Isa::sub(sum, Isa::dot_pairs(zeros, half_sums));
    acc = Isa::fma(Isa::to_float(sum), Isa::mul(d, scale), acc);
    if constexpr (kHasMinimum) {
      acc = Isa::fma(Isa::to_float(Isa::dot_pairs(minima, half_sums)), Isa::mul(dmin, scale), acc);
    }
    return acc;
  }
};

}  // namespace paceline::kernels

// One group of a block times a tile of input rows: unpacked word by word, in registers.
#pragma once

#include <type_traits>

#include "kernels/kernels.hpp"
#include "kernels/outputs.hpp"
#include "kernels/scales.hpp"
#include "kernels/unroll.hpp"
#include "weights/code_bits.hpp"
#include "weights/tables.hpp"

namespace paceline::kernels {

// How products of one type go with vectors of one kind.
template <class V, WeightType kType>
struct Scheme {
  static constexpr Format kFormat = format_of(kType);
  // 8-bit weights where sums have 16 bits: the inputs are split.
  static constexpr bool kIsSplit = kFormat.max_code == 255 && V::kLargestSum < 1 << 30;
  using Input = std::conditional_t<kIsSplit, SplitGroup, QuantizedGroup>;

  // Into how many sums the 8 pairs of a lane's products must go so that none overflows in the end and none spans two
  // scales. Of a code - zero code; a sum starts with what the zero code takes away, and may wrap on the way.
  static constexpr int num_parts() {
    const int largest = kFormat.max_code - kFormat.zero_code > kFormat.zero_code ? kFormat.max_code - kFormat.zero_code
                                                                                 : kFormat.zero_code;
    int parts = has_half_scales(kType) ? 2 : 1;
    while (!kIsSplit && static_cast<long long>(8 / parts * 2) * largest * 127 > V::kLargestSum) parts *= 2;
    return parts;
  }
  static constexpr int kNumParts = num_parts();
  // Codes over 127 where products take signed ones: less 128.
  static constexpr bool kIsMadeSigned = V::kHasSignedCodes && kFormat.max_code > 127;
  static constexpr int kZeroCode = kFormat.zero_code - (kIsMadeSigned ? 128 : 0);
  static constexpr TileSizes kTiles = kIsSplit ? V::kSplitTiles : V::kTiles;
};

// The packed words of a group for one vector.
template <class V>
struct VectorWords {
  const std::uint8_t* at;

  [[gnu::always_inline]] auto load(int i) const { return V::load_codes(at + 4 * kBlockRows * i); }
  template <int kMask, int kShift>
  [[gnu::always_inline]] static auto field(typename V::Codes w) {
    return V::template field<kMask, kShift>(w);
  }
  [[gnu::always_inline]] static auto either(typename V::Codes a, typename V::Codes b) { return V::either(a, b); }
};

// Word j of the codes of vector b.
template <class V, WeightType kType, int j, int b>
[[gnu::always_inline]] inline typename V::Codes load_word(const std::uint8_t* codes) {
  auto word = unpack_word<format_of(kType).code_bits, j>(VectorWords<V>{codes + 4 * V::kLanes * b});
  if constexpr (table_of(kType) != nullptr) word = V::look_up(table_of(kType), word);
  if constexpr (Scheme<V, kType>::kIsMadeSigned) word = V::to_signed(word);
  return word;
}

// What part kPart of the sums of one input group starts with: -zero code * the sum of its codes.
template <class V, WeightType kType, int kPart>
[[gnu::always_inline]] inline typename V::Sums start_sums(const QuantizedGroup& x) {
  constexpr int kNumParts = Scheme<V, kType>::kNumParts;
  static_assert(kNumParts <= 2, "the pair sums are of halves");
  auto sums = V::sums_of(x.pair_sums[kPart]);
  if constexpr (kNumParts == 1) sums = V::add_sums(sums, V::sums_of(x.pair_sums[1]));
  return V::template times<-Scheme<V, kType>::kZeroCode>(sums);
}

// Goes on with sums, or begins them where they do not start with something.
template <class V, bool kIsFirst>
[[gnu::always_inline]] inline void add_word(typename V::Sums& sums, typename V::Codes codes, typename V::Four four) {
  if constexpr (kIsFirst) {
    sums = V::multiply(codes, four);
  } else {
    V::accumulate(sums, codes, four);
  }
}

// Adds one group's products with R rows to their accumulators.
template <class V, WeightType kType, int R>
[[gnu::always_inline]] inline void add_group(const GroupPlace& place, const QuantizedGroup* x,
                                             typename V::Float (*acc)[kVectors<V>]) {
  constexpr int B = kVectors<V>;
  constexpr int kNumParts = Scheme<V, kType>::kNumParts;
  constexpr int kWords = 8 / kNumParts;
  constexpr bool kHasZero = Scheme<V, kType>::kZeroCode != 0;
  typename V::Int totals[R][B];
  unroll<kNumParts>([&]<int kPart>(Index<kPart>) __attribute__((always_inline)) {
    typename V::Sums sums[R][B];
    if constexpr (kHasZero) {
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        sums[r][0] = start_sums<V, kType, kPart>(x[r]);
        for (int b = 1; b < B; ++b) sums[r][b] = sums[r][0];
      });
    }
    unroll<kWords>([&]<int i>(Index<i>) __attribute__((always_inline)) {
      constexpr int j = kWords * kPart + i;
      typename V::Codes words[B];
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { words[b] = load_word<V, kType, j, b>(place.codes); });
      unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
        const auto four = V::broadcast_four(x[r].codes + 4 * j);
        unroll<B>([&]<int b>(Index<b>)
                      __attribute__((always_inline)) { add_word<V, i == 0 && !kHasZero>(sums[r][b], words[b], four); });
      });
    });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
        const auto wide = GroupScales<V, kType, b>::template widen<kPart, kNumParts>(place, sums[r][b]);
        totals[r][b] = kPart == 0 ? wide : V::add(totals[r][b], wide);
      });
    });
  });
  unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
    const GroupScales<V, kType, b> scales(place);
    unroll<R>([&]<int r>(Index<r>)
                  __attribute__((always_inline)) { acc[r][b] = scales.finish(acc[r][b], totals[r][b], x[r]); });
  });
}

// The same for 8-bit codes and inputs in two parts: parts are at most 8 in magnitude, so eight pairs stay within
// 8 * 2 * 255 * 8 = 32640.
template <class V, WeightType kType, int R>
[[gnu::always_inline]] inline void add_group(const GroupPlace& place, const SplitGroup* x,
                                             typename V::Float (*acc)[kVectors<V>]) {
  constexpr int B = kVectors<V>;
  typename V::Sums high[R][B];
  typename V::Sums low[R][B];
  unroll<8>([&]<int j>(Index<j>) __attribute__((always_inline)) {
    typename V::Codes words[B];
    unroll<B>([&]<int b>(Index<b>)
                  __attribute__((always_inline)) { words[b] = load_word<V, kType, j, b>(place.codes); });
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto four_high = V::broadcast_four(x[r].high + 4 * j);
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { add_word<V, j == 0>(high[r][b], words[b], four_high); });
      const auto four_low = V::broadcast_four(x[r].low + 4 * j);
      unroll<B>([&]<int b>(Index<b>)
                    __attribute__((always_inline)) { add_word<V, j == 0>(low[r][b], words[b], four_low); });
    });
  });
  unroll<B>([&]<int b>(Index<b>) __attribute__((always_inline)) {
    const GroupScales<V, kType, b> scales(place);
    unroll<R>([&]<int r>(Index<r>) __attribute__((always_inline)) {
      const auto zero = V::splat(-format_of(kType).zero_code * x[r].sum);
      acc[r][b] = scales.finish(acc[r][b], V::add(V::widen16(high[r][b], low[r][b]), zero), x[r]);
    });
  });
}

}  // namespace paceline::kernels

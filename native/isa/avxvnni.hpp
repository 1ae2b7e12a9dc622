// What products are computed with on x86-64 processors with AVX-VNNI: AVX2's vectors, with sums of 32 bits.
#pragma once

#include "isa/avx2.hpp"

namespace paceline {
namespace avxvnni {
namespace {

struct Products : avx2::Isa {
  static constexpr int kLargestSum = 0x7fffffff;
  static constexpr TileSizes kTiles = {4, 4};
  using Sums = I8;    // 32 bits
  using Scales = I8;  // 32 bits

  static Sums multiply(Codes codes, Four four) { return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), codes, four); }
  static void accumulate(Sums& sums, Codes codes, Four four) { sums = _mm256_dpbusd_avx_epi32(sums, codes, four); }
  static Sums sums_of(const std::int16_t* p) { return splat(p[0] + p[1]); }
  static Sums add_sums(Sums a, Sums b) { return add(a, b); }
  template <int kFactor>
  static Sums times(Sums a) {
    return _mm256_mullo_epi32(a, splat(kFactor));
  }
  static Int widen(Sums sums) { return sums; }
  static Int widen_scaled(Sums sums, Scales scales) { return _mm256_mullo_epi32(sums, scales); }

  template <int kVector>
  static Scales load_unsigned_pairs(const std::uint8_t* p) {
    return load_unsigned(p + 8 * kVector);
  }
  template <int kVector>
  static Scales load_signed_pairs(const std::uint8_t* p) {
    return load_signed(p + 8 * kVector);
  }
  template <int kVector>
  static Scales load_low_nibbles(const std::uint8_t* p) {
    return _mm256_and_si256(load_unsigned(p + 8 * kVector), splat(15));
  }
  template <int kVector>
  static Scales load_high_nibbles(const std::uint8_t* p) {
    return _mm256_srli_epi32(load_unsigned(p + 8 * kVector), 4);
  }
};

}  // namespace
}  // namespace avxvnni
}  // namespace paceline

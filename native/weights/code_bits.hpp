// How the 32 codes of a group are packed into words, for each number of bits.
//
// A *word* holds 4 neighbouring columns of a row, a byte each; word j of the codes are columns 4 j to 4 j + 3. The
// packed words are as many as a code has bits. Most codes stay where a mask finds them; the others' bits fill what is
// left of the bytes. So unpacking takes few operations, the same for every group: 1.5 a word with 4 bits, under 3 with
// 5 or 6.
#pragma once

#include <cstdint>
#include <cstring>

namespace paceline {

// Word j of a group's codes from its packed words. `Words` has `load(i)`, packed word i, and `either(a, b)`, their bits
// together; `field<kMask, kShift>(a)` is of every byte (byte >> kShift) & kMask.
template <int kBits, int j, class Words>
[[gnu::always_inline]] static inline auto unpack_word(const Words& words) {
  if constexpr (kBits == 8) {
    return words.load(j);
  } else if constexpr (kBits == 4) {
    return Words::template field<15, 4 * (j / 4)>(words.load(j % 4));
  } else if constexpr (kBits == 2) {
    return Words::template field<3, 2 * (j / 2)>(words.load(j % 2));
  } else if constexpr (kBits == 6 && j % 4 < 3) {
    return Words::template field<63, 0>(words.load(j / 4 * 3 + j % 4));
  } else if constexpr (kBits == 6) {
    const auto low = Words::either(Words::template field<3, 6>(words.load(j / 4 * 3)),
                                   Words::template field<12, 4>(words.load(j / 4 * 3 + 1)));
    return Words::either(low, Words::template field<48, 2>(words.load(j / 4 * 3 + 2)));
  } else if constexpr (kBits == 5 && j < 5) {
    return Words::template field<31, 0>(words.load(j));
  } else if constexpr (kBits == 5 && j < 7) {
    return Words::either(Words::template field<7, 5>(words.load(2 * j - 10)),
                         Words::template field<24, 3>(words.load(2 * j - 9)));
  } else if constexpr (kBits == 5) {
    const auto high =
        Words::either(Words::template field<8, 2>(words.load(1)), Words::template field<16, 1>(words.load(3)));
    return Words::either(Words::template field<7, 5>(words.load(4)), high);
  } else if constexpr (j < 6) {
    static_assert(kBits == 3);
    return Words::template field<7, 3 * (j % 2)>(words.load(j / 2));
  } else {
    static_assert(kBits == 3);
    return Words::either(Words::template field<3, 6>(words.load(j == 6 ? 0 : 2)),
                         Words::template field<4, j - 2>(words.load(1)));
  }
}

// Bits kMask above kShift of every byte of w, moved to bit kLeft.
template <int kMask, int kShift, int kLeft>
static inline std::uint32_t moved(std::uint32_t w) {
  return (w >> kShift & kMask * 0x01010101u) << kLeft;
}

// The inverse: packs the words of one row's codes.
template <int kBits>
static inline void pack_words(const std::uint32_t* w, std::uint32_t* packed) {
  if constexpr (kBits == 8) {
    std::memcpy(packed, w, 32);
  } else if constexpr (kBits == 4) {
    for (int i = 0; i < 4; ++i) packed[i] = w[i] | w[4 + i] << 4;
  } else if constexpr (kBits == 2) {
    for (int i = 0; i < 2; ++i) packed[i] = w[i] | w[2 + i] << 2 | w[4 + i] << 4 | w[6 + i] << 6;
  } else if constexpr (kBits == 6) {
    for (int half = 0; half < 2; ++half, w += 4, packed += 3) {
      packed[0] = w[0] | moved<3, 0, 6>(w[3]);
      packed[1] = w[1] | moved<3, 2, 6>(w[3]);
      packed[2] = w[2] | moved<3, 4, 6>(w[3]);
    }
  } else if constexpr (kBits == 5) {
    packed[0] = w[0] | moved<7, 0, 5>(w[5]);
    packed[1] = w[1] | moved<1, 3, 5>(w[7]) | moved<3, 3, 6>(w[5]);
    packed[2] = w[2] | moved<7, 0, 5>(w[6]);
    packed[3] = w[3] | moved<1, 4, 5>(w[7]) | moved<3, 3, 6>(w[6]);
    packed[4] = w[4] | moved<7, 0, 5>(w[7]);
  } else {
    static_assert(kBits == 3);
    for (int i = 0; i < 3; ++i) packed[i] = w[2 * i] | w[2 * i + 1] << 3;
    packed[0] |= moved<3, 0, 6>(w[6]);
    packed[1] |= moved<1, 2, 6>(w[6]) | moved<1, 2, 7>(w[7]);
    packed[2] |= moved<3, 0, 6>(w[7]);
  }
}

// One row's words of a packed group, for `unpack_word`: word i lies 64 i bytes behind `at`.
struct RowWords {
  const std::uint8_t* at;

  std::uint32_t load(int i) const {
    std::uint32_t word;
    std::memcpy(&word, at + 64 * i, 4);
    return word;
  }
  template <int kMask, int kShift>
  static std::uint32_t field(std::uint32_t w) {
    return moved<kMask, kShift, 0>(w);
  }
  static std::uint32_t either(std::uint32_t a, std::uint32_t b) { return a | b; }
};

}  // namespace paceline

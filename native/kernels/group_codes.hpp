// The codes of one group of a block, unpacked to one unsigned byte each: register j holds columns 4 j to 4 j + 3 of
// each of the 8 rows.
#pragma once

#include "kernels/kernels.hpp"
#include "weights/tables.hpp"

namespace paceline::kernels {

// 4-bit codes with columns 0 to 15 in the low and 16 to 31 in the high halves of 16 bytes, as the types without records
// (and IQ4_XS) keep them. Five-bit types have the fifth bits of register j in bit j of 4 more bytes.
template <class Isa, WeightType kType>
inline void load_own_codes(const std::uint8_t* codes, typename Isa::Codes& out) {
  constexpr Format kFormat = format_of(kType);
  if constexpr (kFormat.max_code == 255 && table_of(kType) == nullptr) return Isa::load_bytes(codes, out);
  Isa::load_nibbles(codes, out);
  if constexpr (kFormat.max_code == 31) Isa::add_bit_of_register(codes + 128, out);
  if constexpr (table_of(kType) != nullptr) Isa::look_up(table_of(kType), out);
}

// Group kIndex (0 to 7) of a record. A field of some bits of every byte belongs to one group.
template <class Isa, WeightType kType, int kIndex>
inline void load_record_codes(const std::uint8_t* codes, typename Isa::Codes& out) {
  constexpr int kHalf = kIndex / 4;
  constexpr int kQuarter = kIndex % 4;
  if constexpr (kType == WeightType::kQ8_K) {
    Isa::load_bytes(codes + 256 * kIndex, out);
  } else if constexpr (kType == WeightType::kIQ4_XS) {
    load_own_codes<Isa, kType>(codes + 128 * kIndex, out);
  } else if constexpr (kType == WeightType::kQ6_K) {
    Isa::template load_fields<15, 4 * (kQuarter / 2)>(codes + 512 * kHalf + 256 * (kQuarter % 2), out);
    Isa::template add_fields<3, 2 * kQuarter, 4>(codes + 1024 + 256 * kHalf, out);
  } else if constexpr (kType == WeightType::kQ2_K) {
    Isa::template load_fields<3, 2 * kQuarter>(codes + 256 * kHalf, out);
  } else if constexpr (kType == WeightType::kQ3_K) {
    Isa::template load_fields<3, 2 * kQuarter>(codes + 256 * kHalf, out);
    Isa::template add_fields<1, kIndex, 2>(codes + 512, out);
  } else {
    static_assert(kType == WeightType::kQ4_K || kType == WeightType::kQ5_K);
    Isa::template load_fields<15, 4 * (kIndex % 2)>(codes + 256 * (kIndex / 2), out);
    if constexpr (kType == WeightType::kQ5_K) Isa::template add_fields<1, kIndex, 4>(codes + 1024, out);
  }
}

}  // namespace paceline::kernels

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

// Group `group` (0 to 7) of a record. A field of some bits of every byte belongs to one group.
template <class Isa, WeightType kType>
inline void load_record_codes(const std::uint8_t* codes, int group, typename Isa::Codes& out) {
  const int half = group / 4;
  const int quarter = group % 4;
  if constexpr (kType == WeightType::kQ8_K) {
    Isa::load_bytes(codes + 256 * group, out);
  } else if constexpr (kType == WeightType::kIQ4_XS) {
    load_own_codes<Isa, kType>(codes + 128 * group, out);
  } else if constexpr (kType == WeightType::kQ6_K) {
    Isa::template load_fields<15>(codes + 512 * half + 256 * (quarter % 2), 4 * (quarter / 2), out);
    Isa::template add_fields<3, 4>(codes + 1024 + 256 * half, 2 * quarter, out);
  } else if constexpr (kType == WeightType::kQ2_K) {
    Isa::template load_fields<3>(codes + 256 * half, 2 * quarter, out);
  } else if constexpr (kType == WeightType::kQ3_K) {
    Isa::template load_fields<3>(codes + 256 * half, 2 * quarter, out);
    Isa::template add_fields<1, 2>(codes + 512, group, out);
  } else {
    static_assert(kType == WeightType::kQ4_K || kType == WeightType::kQ5_K);
    Isa::template load_fields<15>(codes + 256 * (group / 2), 4 * (group % 2), out);
    if constexpr (kType == WeightType::kQ5_K) Isa::template add_fields<1, 4>(codes + 1024, group, out);
  }
}

}  // namespace paceline::kernels

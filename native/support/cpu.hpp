// What this processor can run: each is true where all of it is there and enabled by the operating system.
#pragma once

namespace paceline {

// AVX2, FMA and F16C.
bool has_avx2();

// Those of has_avx2 and AVX-512 F, BW, VL and VNNI.
bool has_avx512_vnni();

// The dot product of ARMv8.2.
bool has_neon_dot_product();

}  // namespace paceline

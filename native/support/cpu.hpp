// What this processor can run.
#pragma once

namespace paceline {

// True where AVX2, FMA and F16C are all there and enabled by the operating system.
bool has_avx2();

}  // namespace paceline

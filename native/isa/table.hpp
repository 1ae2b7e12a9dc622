// The kernel table of one instruction set: every kernel instantiated with its vector type.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/bandwidth.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"

namespace paceline::kernels {

// Products come apart: they may have vectors of another size, and take most of the time of a build.
template <class Isa>
constexpr Kernels make_table(const char* name, void (*multiply)(const Product&, int, int)) {
  return {name,      multiply,        quantize<Isa>, rms_norm<Isa>, swiglu<Isa>,      geglu<Isa>,
          rope<Isa>, rope_split<Isa>, store_kv<Isa>, attend<Isa>,   read_streams<Isa>};
}

}  // namespace paceline::kernels

// The kernel table of one instruction set: every kernel instantiated with its vector type.
#pragma once

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/bandwidth.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"
#include "kernels/sampling.hpp"

namespace paceline::kernels {

// Products come apart: they may have vectors of another size, and take most of the time of a build.
template <class Isa, class Products = Isa>
constexpr Kernels make_table(const char* name, void (*multiply)(const Product&, const Blocks&)) {
  return {name,
          multiply,
          quantize<Isa>,
          rms_norm<Isa>,
          swiglu<Isa>,
          geglu<Isa>,
          rope<Isa>,
          rope_split<Isa>,
          store_kv<Isa>,
          attend<Isa>,
          merge<Isa>,
          read_streams<Isa>,
          multiply_codes<Products>,
          multiply_floats<Isa>,
          scan_row<Isa>,
          weigh_all<Isa>,
          estimate_masses<Isa>,
          find_contenders<Isa>};
}

}  // namespace paceline::kernels

// The kernel table of one instruction set: every kernel instantiated with its vector type.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/bandwidth.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"
#include "kernels/linear_float.hpp"
#include "kernels/linear_quantized.hpp"

namespace paceline::kernels {

template <class Isa>
void multiply(const Product& p, int first, int last) {
  switch (p.weights.type) {
    case WeightType::kF32:
      return multiply_float<Isa, WeightType::kF32>(p, first, last);
    case WeightType::kF16:
      return multiply_float<Isa, WeightType::kF16>(p, first, last);
    case WeightType::kQ4_0:
      return multiply_quantized<Isa, WeightType::kQ4_0>(p, first, last);
    case WeightType::kQ4_1:
      return multiply_quantized<Isa, WeightType::kQ4_1>(p, first, last);
    case WeightType::kQ8_0:
      return multiply_quantized<Isa, WeightType::kQ8_0>(p, first, last);
  }
}

template <class Isa>
constexpr Kernels make_table(const char* name) {
  return {name,      multiply<Isa>,   quantize<Isa>, rms_norm<Isa>, swiglu<Isa>,      geglu<Isa>,
          rope<Isa>, rope_split<Isa>, store_kv<Isa>, attend<Isa>,   read_streams<Isa>};
}

}  // namespace paceline::kernels

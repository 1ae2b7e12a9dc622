// The kernel table of one instruction set: every kernel instantiated with its vector type.
#pragma once

#include "kernels/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/bandwidth.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"
#include "kernels/linear_float.hpp"
#include "kernels/linear_quantized.hpp"

namespace paceline::kernels {

template <class Isa>
void multiply(const Product& p, const Blocks& blocks) {
  switch (p.weights.type) {
    case WeightType::kF32:
      return multiply_float<Isa, WeightType::kF32>(p, blocks);
    case WeightType::kF16:
      return multiply_float<Isa, WeightType::kF16>(p, blocks);
    case WeightType::kBF16:
      return multiply_float<Isa, WeightType::kBF16>(p, blocks);
    case WeightType::kQ4_0:
      return multiply_quantized<Isa, WeightType::kQ4_0>(p, blocks);
    case WeightType::kQ4_1:
      return multiply_quantized<Isa, WeightType::kQ4_1>(p, blocks);
    case WeightType::kQ5_0:
      return multiply_quantized<Isa, WeightType::kQ5_0>(p, blocks);
    case WeightType::kQ5_1:
      return multiply_quantized<Isa, WeightType::kQ5_1>(p, blocks);
    case WeightType::kQ8_0:
      return multiply_quantized<Isa, WeightType::kQ8_0>(p, blocks);
    case WeightType::kQ2_K:
      return multiply_quantized<Isa, WeightType::kQ2_K>(p, blocks);
    case WeightType::kQ3_K:
      return multiply_quantized<Isa, WeightType::kQ3_K>(p, blocks);
    case WeightType::kQ4_K:
      return multiply_quantized<Isa, WeightType::kQ4_K>(p, blocks);
    case WeightType::kQ5_K:
      return multiply_quantized<Isa, WeightType::kQ5_K>(p, blocks);
    case WeightType::kQ6_K:
      return multiply_quantized<Isa, WeightType::kQ6_K>(p, blocks);
    case WeightType::kQ8_K:
      return multiply_quantized<Isa, WeightType::kQ8_K>(p, blocks);
    case WeightType::kIQ4_NL:
      return multiply_quantized<Isa, WeightType::kIQ4_NL>(p, blocks);
    case WeightType::kIQ4_XS:
      return multiply_quantized<Isa, WeightType::kIQ4_XS>(p, blocks);
    case WeightType::kMXFP4:
      return multiply_quantized<Isa, WeightType::kMXFP4>(p, blocks);
  }
}

template <class Isa>
constexpr Kernels make_table(const char* name) {
  return {name,       multiply<Isa>,     quantize<Isa>,       rms_norm<Isa>,       swiglu<Isa>,
          geglu<Isa>, rope<Isa>,         rope_split<Isa>,     store_kv<Isa>,       attend<Isa>,
          merge<Isa>, read_streams<Isa>, multiply_codes<Isa>, multiply_floats<Isa>};
}

}  // namespace paceline::kernels

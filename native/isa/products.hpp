// The products with every type of weights, instantiated with one kind of vectors: in two parts, for two translation
// units that two processors compile side by side.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/linear_float.hpp"
#include "kernels/linear_quantized.hpp"

namespace paceline::kernels {

// Types whose records are one group, and those that are not quantised.
template <class V>
void multiply_groups(const Product& p, const Blocks& blocks) {
  switch (p.weights.type) {
    case WeightType::kF32:
      return multiply_float<V, WeightType::kF32>(p, blocks);
    case WeightType::kF16:
      return multiply_float<V, WeightType::kF16>(p, blocks);
    case WeightType::kBF16:
      return multiply_float<V, WeightType::kBF16>(p, blocks);
    case WeightType::kQ4_0:
      return multiply_quantized<V, WeightType::kQ4_0>(p, blocks);
    case WeightType::kQ4_1:
      return multiply_quantized<V, WeightType::kQ4_1>(p, blocks);
    case WeightType::kQ5_0:
      return multiply_quantized<V, WeightType::kQ5_0>(p, blocks);
    case WeightType::kQ5_1:
      return multiply_quantized<V, WeightType::kQ5_1>(p, blocks);
    case WeightType::kQ8_0:
      return multiply_quantized<V, WeightType::kQ8_0>(p, blocks);
    case WeightType::kIQ4_NL:
      return multiply_quantized<V, WeightType::kIQ4_NL>(p, blocks);
    case WeightType::kMXFP4:
      return multiply_quantized<V, WeightType::kMXFP4>(p, blocks);
    default:
      __builtin_trap();  // a type of the other part
  }
}

// Types whose records are several groups.
template <class V>
void multiply_records(const Product& p, const Blocks& blocks) {
  switch (p.weights.type) {
    case WeightType::kQ2_K:
      return multiply_quantized<V, WeightType::kQ2_K>(p, blocks);
    case WeightType::kQ3_K:
      return multiply_quantized<V, WeightType::kQ3_K>(p, blocks);
    case WeightType::kQ4_K:
      return multiply_quantized<V, WeightType::kQ4_K>(p, blocks);
    case WeightType::kQ5_K:
      return multiply_quantized<V, WeightType::kQ5_K>(p, blocks);
    case WeightType::kQ6_K:
      return multiply_quantized<V, WeightType::kQ6_K>(p, blocks);
    case WeightType::kQ8_K:
      return multiply_quantized<V, WeightType::kQ8_K>(p, blocks);
    case WeightType::kIQ4_XS:
      return multiply_quantized<V, WeightType::kIQ4_XS>(p, blocks);
    default:
      __builtin_trap();
  }
}

// All types: those of the other part through kMultiplyRecords, which is compiled in a unit of its own or here.
template <class V, void (*kMultiplyRecords)(const Product&, const Blocks&)>
void multiply(const Product& p, const Blocks& blocks) {
  if (record_groups(p.weights.type) > 1) return kMultiplyRecords(p, blocks);
  multiply_groups<V>(p, blocks);
}

}  // namespace paceline::kernels

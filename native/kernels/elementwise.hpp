// Exponential, normalisation, activation and rotation: the row-wise parts of a decoder layer.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

// exp(x) by Cody-Waite reduction to [-ln 2 / 2, ln 2 / 2] and a polynomial of degree 6; relative error below 3e-7.
// Inputs are clamped to [-87, 88], NaN stays NaN. There is one form of it, for whole vectors, so that no tail path
// could differ.
template <class Isa>
inline typename Isa::F8 exponential(typename Isa::F8 x) {
  x = Isa::min(Isa::splat(88.0f), Isa::max(Isa::splat(-87.0f), x));
  const auto n = Isa::round(Isa::mul(x, Isa::splat(1.44269504f)));
  auto r = Isa::fma(n, Isa::splat(-0.693359375f), x);
  r = Isa::fma(n, Isa::splat(2.12194440e-4f), r);
  constexpr float kCoefficients[] = {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  auto y = Isa::splat(1.0f / 720);
  for (const float c : kCoefficients) y = Isa::fma(y, r, Isa::splat(c));
  return Isa::scale_by_power_of_two(y, n);
}

// Sum of x[i]^2: lane i mod 8 first, then the lanes in the fixed order of Isa::sum.
template <class Isa>
inline float sum_of_squares(const float* x, int count) {
  auto acc = Isa::zero();
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto v = Isa::load(x + i);
    acc = Isa::fma(v, v, acc);
  }
  float total = Isa::sum(acc);
  for (; i < count; ++i) total += x[i] * x[i];
  return total;
}

template <class Isa>
void rms_norm(float* x, const float* residual, const float* weight, float epsilon, int count, float* out) {
  if (residual != nullptr) {
    for (int i = 0; i < count; ++i) x[i] += residual[i];
  }
  const float inverse = 1.0f / __builtin_sqrtf(sum_of_squares<Isa>(x, count) / static_cast<float>(count) + epsilon);
  for (int i = 0; i < count; ++i) out[i] = x[i] * inverse * weight[i];
}

// x times the logistic function of z.
template <class Isa>
inline typename Isa::F8 gated(typename Isa::F8 x, typename Isa::F8 z) {
  return Isa::div(x, Isa::add(Isa::splat(1.0f), exponential<Isa>(Isa::sub(Isa::zero(), z))));
}

template <class Isa>
void swiglu(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += 8) {
    const auto g = Isa::load(gate + i);
    Isa::store(out + i, Isa::mul(gated<Isa>(g, g), Isa::load(up + i)));
  }
}

// (1 + tanh u) / 2 is the logistic function of 2 u, with u = sqrt(2 / pi) (g + 0.044715 g^3).
template <class Isa>
void geglu(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; i += 8) {
    const auto g = Isa::load(gate + i);
    const auto inner = Isa::fma(Isa::mul(g, g), Isa::splat(0.044715f), Isa::splat(1.0f));
    const auto z = Isa::mul(Isa::mul(g, Isa::splat(1.5957691216f)), inner);
    Isa::store(out + i, Isa::mul(gated<Isa>(g, z), Isa::load(up + i)));
  }
}

template <class Isa>
void rope(float* head, const float* cosines, const float* sines, int rotated) {
  for (int i = 0; i < rotated / 2; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cosines[i] - b * sines[i];
    head[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

template <class Isa>
void rope_split(float* head, const float* cosines, const float* sines, int rotated) {
  float* second = head + rotated / 2;
  for (int i = 0; i < rotated / 2; ++i) {
    const float a = head[i];
    const float b = second[i];
    head[i] = a * cosines[i] - b * sines[i];
    second[i] = a * sines[i] + b * cosines[i];
  }
}

template <class Isa>
void quantize(const Activations& x, int row, int first, int last) {
  const float* values = x.values + static_cast<std::size_t>(row) * x.columns;
  for (int k = first; k < last; k += kGroup) {
    const std::size_t index = group_index(x, row, k / kGroup);
    QuantizedGroup& group = x.quantized[index];
    SplitGroup& split = x.split[index];
    Isa::quantize_group(values + k, group.codes, &group.scale, group.pair_sums);
    const int sum = group.pair_sums[0][0] + group.pair_sums[0][1] + group.pair_sums[1][0] + group.pair_sums[1][1];
    group.scaled_sum = group.scale * static_cast<float>(sum);
    Isa::split_codes(group.codes, split.high, split.low);
    split.scale = group.scale;
    split.sum = sum;
  }
}

}  // namespace paceline::kernels

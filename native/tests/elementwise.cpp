// Quantisation, norms, activations, rotations and the storing of keys and values.
#include <limits>

#include "tests/recorder.hpp"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void run_quantize(const Kernels& kernels, const std::string& name, std::vector<float> values, Recorder& out) {
  const int columns = static_cast<int>(values.size());
  std::vector<QuantizedGroup> quantized(static_cast<std::size_t>(columns) / kGroup * kMaxRows);
  std::vector<SplitGroup> split(quantized.size());
  const Activations x{columns, values.data(), quantized.data(), split.data()};
  kernels.quantize(x, 0, 0, columns);
  out.begin("quantize " + name);
  for (int group = 0; group < columns / kGroup; ++group) {
    const QuantizedGroup& q = quantized[group_index(x, 0, group)];
    const SplitGroup& s = split[group_index(x, 0, group)];
    for (int i = 0; i < kGroup; ++i) out.add_word(static_cast<std::uint8_t>(q.codes[i]));
    for (const auto& half : q.pair_sums) {
      for (const std::int16_t sum : half) out.add_word(static_cast<std::uint16_t>(sum));
    }
    for (int i = 0; i < kGroup; ++i) out.add_word(static_cast<std::uint8_t>(s.high[i]));
    for (int i = 0; i < kGroup; ++i) out.add_word(static_cast<std::uint8_t>(s.low[i]));
    out.add(q.scale);
    out.add(q.scaled_sum);
    out.add(s.scale);
    out.add_word(static_cast<std::uint32_t>(s.sum));
  }
}

void run_all_quantize(const Kernels& kernels, Recorder& out) {
  Random random(1);
  for (const float scale : {1e-38f, 1e-31f, 1e-3f, 1.0f, 1e6f, 3e38f}) {
    run_quantize(kernels, "values up to " + std::to_string(scale), random.floats(1024, scale), out);
  }
  std::vector<float> ties(kGroup * 8);  // halves of a code: where rounding shows
  for (auto& x : ties) x = 0.5f * static_cast<float>(random.below(255) - 127);
  for (std::size_t i = 0; i < ties.size(); i += kGroup) ties[i] = 127.0f;
  run_quantize(kernels, "ties", ties, out);
  std::vector<float> every(kGroup * 8);  // every code
  for (int i = 0; i < kGroup * 8; ++i) every[i] = i % kGroup == 0 ? 127.0f : static_cast<float>(i - 128);
  run_quantize(kernels, "every code", every, out);
  for (const float fault : {kInfinity, -kInfinity, kNaN}) {
    std::vector<float> values = random.floats(96);
    values[40] = fault;
    run_quantize(kernels, "a fault", values, out);
  }
  run_quantize(kernels, "zeros", std::vector<float>(64), out);
}

void run_norms(const Kernels& kernels, Recorder& out) {
  Random random(2);
  for (const int count : {1, 7, 8, 9, 64, 101, 576}) {
    for (const bool has_residual : {false, true}) {
      auto x = random.floats(count, 3.0f);
      const auto residual = random.floats(count);
      const auto weight = random.floats(count);
      std::vector<float> normed(count);
      kernels.rms_norm(x.data(), has_residual ? residual.data() : nullptr, weight.data(), 1e-5f, count, normed.data());
      out.begin("rms_norm of " + std::to_string(count));
      out.add_all(x);
      out.add_all(normed);
    }
  }
}

void run_activations(const Kernels& kernels, Recorder& out) {
  Random random(3);
  for (const float scale : {1e-6f, 1.0f, 20.0f, 200.0f, 1e30f}) {
    auto gate = random.floats(4096, scale);
    const auto up = random.floats(gate.size());
    gate[5] = kInfinity;
    gate[6] = -kInfinity;
    gate[7] = kNaN;
    gate[8] = 0.0f;
    gate[9] = -0.0f;
    std::vector<float> result(gate.size());
    out.begin("swiglu of up to " + std::to_string(scale));
    kernels.swiglu(gate.data(), up.data(), static_cast<int>(gate.size()), result.data());
    out.add_all(result);
    out.begin("geglu of up to " + std::to_string(scale));
    kernels.geglu(gate.data(), up.data(), static_cast<int>(gate.size()), result.data());
    out.add_all(result);
  }
}

void run_rotations(const Kernels& kernels, Recorder& out) {
  Random random(4);
  for (const int rotated : {2, 6, 16, 64, 128}) {
    const auto cosines = random.floats(rotated / 2);
    const auto sines = random.floats(rotated / 2);
    const auto head = random.floats(rotated);
    auto turned = head;
    out.begin("rotation of " + std::to_string(rotated));
    kernels.rope(turned.data(), cosines.data(), sines.data(), rotated);
    out.add_all(turned);
    turned = head;
    kernels.rope_split(turned.data(), cosines.data(), sines.data(), rotated);
    out.add_all(turned);
  }
}

void run_stores(const Kernels& kernels, Recorder& out) {
  Random random(5);
  for (const float scale : {1e-7f, 1e-4f, 1.0f, 1e5f}) {
    constexpr int kHeadDim = 24;
    std::vector<std::uint16_t> page(2 * kPageSize * kHeadDim);
    for (int offset = 0; offset < kPageSize; ++offset) {
      auto key = random.floats(kHeadDim, scale);
      key[3] = offset == 5 ? kNaN : key[3];
      kernels.store_kv(key.data(), random.floats(kHeadDim, scale).data(), kHeadDim, page.data(), offset);
    }
    out.begin("keys and values of up to " + std::to_string(scale));
    for (const std::uint16_t half : page) out.add_half(half);
  }
}

}  // namespace

void run_elementwise(const Kernels& kernels, Recorder& out) {
  run_all_quantize(kernels, out);
  run_norms(kernels, out);
  run_activations(kernels, out);
  run_rotations(kernels, out);
  run_stores(kernels, out);
}

}  // namespace paceline

// The highest numbers, the weights and the contenders of a row.
#include <array>
#include <limits>

#include "tests/recorder.hpp"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void run_scan(const Kernels& kernels, std::vector<float> row, Recorder& out) {
  std::vector<float> highest(row.size() / kScanBlock + 1);
  for (const float fault : {0.0f, kInfinity, -kInfinity}) {
    row[row.size() / 2] = fault;
    out.begin("scan_row of " + std::to_string(row.size()));
    out.add_word(kernels.scan_row(row.data(), row.size(), highest.data()) ? 1 : 0);
    out.add_all(highest);
  }
}

void run_weights(const Kernels& kernels, std::vector<float> row, Recorder& out) {
  row[row.size() / 2] = -kInfinity;
  std::vector<std::int64_t> weights(row.size());
  for (const double temperature : {1e-6, 0.1, 0.8, 1e4}) {
    const Weighing weighing{temperature, 4.0 / temperature};
    out.begin("weigh_all of " + std::to_string(row.size()));
    weights.push_back(kernels.weigh_all(weighing, row.data(), row.size(), weights.data()));
    for (const std::int64_t weight : weights) {
      out.add_word(static_cast<std::uint32_t>(weight));
      out.add_word(static_cast<std::uint32_t>(weight >> 32));
    }
    weights.pop_back();
  }
}

void run_masses(const Kernels& kernels, std::vector<float> row, Recorder& out) {
  row[row.size() / 2] = -kInfinity;
  for (const float value : {-5.0f, row[0], 2.0f}) {
    for (const float inverse_temperature : {1e4f, 1.25f, 0.1f}) {
      out.begin("estimate_masses of " + std::to_string(row.size()));
      const Masses masses = kernels.estimate_masses({value, 4.0f, inverse_temperature}, row.data(), row.size());
      out.add_all(std::array{static_cast<float>(masses.above), static_cast<float>(masses.total)});
    }
  }
}

void run_contenders(const Kernels& kernels, const std::vector<float>& row, Recorder& out) {
  std::vector<std::int32_t> ids(row.size()), found(row.size() + 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(3 * i);
  for (const float limit : {-100.0f, -3.0f, 0.0f, 3.0f, 6.0f}) {
    const Contest contest{{0x0123456789abcdef, 0xfedcba9876543210}, 4.0f, 1.25f, limit};
    out.begin("find_contenders of " + std::to_string(row.size()));
    const std::size_t count = kernels.find_contenders(contest, row.data(), ids.data(), 70000, row.size(), found.data());
    for (std::size_t i = 0; i < count; ++i) out.add_word(static_cast<std::uint32_t>(found[i]));
  }
}

}  // namespace

void run_sampling(const Kernels& kernels, Recorder& out) {
  Random random(6);
  for (const std::size_t count : {1, 31, 32, 63, 64, 65, 1000, 4096}) {
    const auto row = random.floats(count, 4.0f);
    run_scan(kernels, row, out);
    run_weights(kernels, row, out);
    run_masses(kernels, row, out);
    run_contenders(kernels, row, out);
  }
}

}  // namespace paceline

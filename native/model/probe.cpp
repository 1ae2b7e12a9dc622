#include "model/probe.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "support/aligned.hpp"
#include "support/check.hpp"

namespace paceline {
namespace {

constexpr std::size_t kArithmeticSteps = 1 << 19;  // some milliseconds: longer than threads take to wake up

// Seconds until every thread of `pool` has called work(thread) once. What it returns is used, so that it cannot be
// optimised away.
template <typename F>
double time_of(ThreadPool& pool, F work) {
  std::atomic<std::uint64_t> checksum{0};
  const auto start = std::chrono::steady_clock::now();
  pool.for_each(pool.num_threads(), [&](int thread) { checksum += work(thread); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  require(checksum.load() != 1, "unreachable: no work of a probe adds up to 1");
  return elapsed.count();
}

// Multiply-adds per second where work(kArithmeticSteps) does so many of them in each step.
template <typename F>
double best_rate(ThreadPool& pool, int multiply_adds, int repeats, F work) {
  require(repeats > 0, "there are no repeats");
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const double seconds = time_of(pool, [&](int) { return work(kArithmeticSteps); });
    best = std::max(best, static_cast<double>(multiply_adds) * kArithmeticSteps * pool.num_threads() / seconds);
  }
  return best;
}

}  // namespace

double read_bandwidth(ThreadPool& pool, const Kernels& kernels, std::size_t bytes, int repeats) {
  const std::size_t share = bytes / pool.num_threads() / 4096 * 4096;
  require(share > 0 && repeats > 0, "the buffer is too small for its threads, or there are no repeats");
  AlignedBuffer<std::uint8_t> buffer(share * pool.num_threads());
  pool.for_each(pool.num_threads(),
                [&](int thread) { std::memset(buffer.data() + thread * share, thread + 1, share); });
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    for (const int num_streams : {1, 2, 4, 8}) {
      const double seconds = time_of(
          pool, [&](int thread) { return kernels.read_streams(buffer.data() + thread * share, share, num_streams); });
      best = std::max(best, static_cast<double>(buffer.size()) / seconds);
    }
  }
  return best;
}

double code_rate(ThreadPool& pool, const Kernels& kernels, int repeats) {
  alignas(64) std::uint8_t data[9 * kGroup];
  for (int i = 0; i < 8 * kGroup; ++i) data[i] = static_cast<std::uint8_t>(i / 4 % 16);
  std::memset(data + 8 * kGroup, 1, kGroup);
  return best_rate(pool, kCodeMultiplyAdds, repeats,
                   [&](std::size_t num_steps) { return kernels.multiply_codes(data, num_steps); });
}

double float_rate(ThreadPool& pool, const Kernels& kernels, int repeats) {
  float data[40];
  std::fill(data, data + 40, 0.5f);
  return best_rate(pool, kFloatChains * kFloatLanes, repeats,
                   [&](std::size_t num_steps) { return kernels.multiply_floats(data, num_steps); });
}

}  // namespace paceline

#include "model/probe.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "support/aligned.hpp"
#include "support/check.hpp"

namespace paceline {

double read_bandwidth(ThreadPool& pool, const Kernels& kernels, std::size_t bytes, int repeats) {
  const std::size_t share = bytes / pool.num_threads() / 4096 * 4096;
  require(share > 0 && repeats > 0, "the buffer is too small for its threads, or there are no repeats");
  AlignedBuffer<std::uint8_t> buffer(share * pool.num_threads());
  pool.for_each(pool.num_threads(),
                [&](int thread) { std::memset(buffer.data() + thread * share, thread + 1, share); });
  std::atomic<std::uint64_t> checksum{0};  // keeps the reads from being optimised away
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    for (const int num_streams : {1, 2, 4, 8}) {
      const auto start = std::chrono::steady_clock::now();
      pool.for_each(pool.num_threads(), [&](int thread) {
        checksum += kernels.read_streams(buffer.data() + thread * share, share, num_streams);
      });
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      best = std::max(best, static_cast<double>(buffer.size()) / elapsed.count());
    }
  }
  require(checksum.load() != 1, "unreachable: the checksum of non-zero bytes");
  return best;
}

}  // namespace paceline

// A team of threads that runs one job together, with barriers inside it.
//
// Waiting spins briefly and then sleeps: a forward meets at some 300 barriers a few microseconds apart, where sleeping
// would cost more than the wait; between forwards, or when another process holds the processor, spinning would be waste.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace paceline {

class ThreadPool {
 public:
  using Job = std::function<void(int thread)>;

  // `num_threads` counts the calling thread; it must be at least 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs job(0) here and job(i) on worker i, and returns when all have returned. A job must not throw.
  void run(const Job& job);

  // To be called by every thread of a running job: returns once all have called it. What was written before is seen after.
  void barrier();

 private:
  void start_workers();
  void work(int thread, std::uint32_t seen);

  const int num_threads_;
  pid_t owner_ = 0;  // threads do not survive fork(): a child starts its own
  const Job* job_ = nullptr;
  bool is_stopping_ = false;
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};    // grows by one for each job
  alignas(64) std::atomic<std::uint32_t> running_{0};  // workers that have not finished the job
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};  // grows by one for each barrier passed
};

// Hands out tiles of a phase to whichever thread is free, so that unequal cores do not wait for each other. One counter
// serves one phase of a job: no reset is needed between phases.
class TileCounters {
 public:
  void reset(std::size_t num_phases);
  // The next tile of `phase`, in [0, num_tiles), or -1 when all are taken.
  int next(std::size_t phase, int num_tiles) {
    const int tile = counters_[phase].value.fetch_add(1, std::memory_order_relaxed);
    return tile < num_tiles ? tile : -1;
  }

 private:
  struct alignas(64) Counter {
    std::atomic<int> value{0};
  };
  std::unique_ptr<Counter[]> counters_;
  std::size_t capacity_ = 0;
};

}  // namespace paceline

#include "support/thread_pool.hpp"

#include <unistd.h>

#include "support/check.hpp"

namespace paceline {
namespace {

constexpr int kBarrierSpins = 4000;  // some 50 µs: longer than any wait between equal, undisturbed threads
constexpr int kIdleSpins = 20000;    // some 300 µs: the time between two decode steps

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` differs from `old`.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  require(num_threads >= 1, "num_threads must be at least 1, got " + std::to_string(num_threads));
  start_workers();
}

void ThreadPool::start_workers() {
  owner_ = getpid();
  running_.store(0);
  arrived_.store(0);
  const std::uint32_t seen = epoch_.load();
  for (int i = 1; i < num_threads_; ++i) workers_.emplace_back([this, i, seen] { work(i, seen); });
}

ThreadPool::~ThreadPool() {
  if (owner_ != getpid()) {  // a forked child has no such threads to join
    for (auto& worker : workers_) worker.detach();
    return;
  }
  is_stopping_ = true;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(const Job& job) {
  if (owner_ != getpid()) {
    for (auto& worker : workers_) worker.detach();
    workers_.clear();
    start_workers();
  }
  job_ = &job;
  running_.store(static_cast<std::uint32_t>(num_threads_ - 1), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  job(0);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_for_change(running_, left, kBarrierSpins);
  }
}

void ThreadPool::work(int thread, std::uint32_t seen) {
  while (true) {
    wait_for_change(epoch_, seen, kIdleSpins);
    ++seen;  // one job at a time: the epoch cannot have moved further
    if (is_stopping_) return;
    (*job_)(thread);
    running_.fetch_sub(1, std::memory_order_acq_rel);
    running_.notify_all();
  }
}

void ThreadPool::barrier() {
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(num_threads_)) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  wait_for_change(phase_, phase, kBarrierSpins);
}

void TileCounters::reset(std::size_t num_phases) {
  if (num_phases > capacity_) {
    counters_ = std::make_unique<Counter[]>(num_phases);
    capacity_ = num_phases;
  }
  for (std::size_t i = 0; i < num_phases; ++i) counters_[i].value.store(0, std::memory_order_relaxed);
}

}  // namespace paceline

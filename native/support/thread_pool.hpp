// A pool of threads that run a job together, phase by phase.
//
// A phase is a number of tiles, handed out to whichever thread is free. It is over when its tiles are done, not when
// all threads have arrived: a thread that the system has taken off its processor holds nobody up unless it holds a
// tile, and when it comes back it finds the phases before it used up and catches up. So a busy machine costs the share
// of the processors that it takes, and unequal cores do not wait for each other.
//
// Waiting spins briefly and then sleeps: a forward has some 300 phases a few microseconds apart, where sleeping would
// cost more than the wait; between forwards spinning for long would be waste.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "support/trace.hpp"

namespace paceline {

// The tiles of one phase. Each thread owns a contiguous range of them and takes it from front to back, so that what it
// reads is contiguous too; a thread that is through with its own goes on with the others'.
class Phase {
 public:
  explicit Phase(int num_threads) : next_(num_threads) {}

  // The next tile for `thread`, or -1 when none is left.
  int take(int thread, int num_tiles) {
    const int num_threads = static_cast<int>(next_.size());
    for (int i = 0; i < num_threads; ++i) {
      const int owner = thread + i < num_threads ? thread + i : thread + i - num_threads;
      const int first = first_tile(owner, num_threads, num_tiles);
      const int count = first_tile(owner + 1, num_threads, num_tiles) - first;
      if (next_[owner].value.load(std::memory_order_relaxed) >= count) continue;
      const int tile = next_[owner].value.fetch_add(1, std::memory_order_relaxed);
      if (tile < count) return first + tile;
    }
    return -1;
  }

  // Counts `finished` tiles as done and returns once all are.
  void complete(std::uint32_t finished, std::uint32_t num_tiles);

  static int first_tile(int thread, int num_threads, int num_tiles) {
    return static_cast<int>(static_cast<std::int64_t>(num_tiles) * thread / num_threads);
  }

 private:
  struct alignas(64) Counter {
    std::atomic<int> value{0};
  };
  std::vector<Counter> next_;  // tiles taken of each thread's range
  alignas(64) std::atomic<std::uint32_t> done_{0};
};

// What one thread sees of a running job: its phases, in the order that every thread goes through them.
class Team {
 public:
  // `lane`: where the thread's times are written down; null where nobody wants them.
  Team(std::deque<Phase>& phases, int thread, int num_threads, TraceLane* lane)
      : phases_(phases), thread_(thread), num_threads_(num_threads), lane_(lane) {}

  int thread() const { return thread_; }

  // Calls f(tile) for each tile in [0, num_tiles), each on one thread. When it returns all tiles are done, and what
  // they wrote can be read. `num_tiles` must be the same on every thread; f must not throw. Times go under `label`.
  template <typename F>
  void for_each(int label, int num_tiles, F f) {
    Phase& phase = phases_[index_++];
    if (lane_ != nullptr) lane_->begin_phase();
    std::uint32_t finished = 0;
    for (int tile = phase.take(thread_, num_tiles); tile >= 0; tile = phase.take(thread_, num_tiles)) {
      f(tile);
      ++finished;
    }
    if (lane_ != nullptr) lane_->end_work(first_label_ + label);
    phase.complete(finished, static_cast<std::uint32_t>(num_tiles));
    if (lane_ != nullptr) lane_->end_phase(first_label_ + label);
  }

  // Labels count from `label` on until this is called again.
  void set_first_label(int label) { first_label_ = label; }

  // The first tile that this thread will take of a phase with `num_tiles`.
  int first_tile(int num_tiles) const { return Phase::first_tile(thread_, num_threads_, num_tiles); }

 private:
  std::deque<Phase>& phases_;
  const int thread_;
  const int num_threads_;
  TraceLane* const lane_;
  int first_label_ = 0;
  std::size_t index_ = 0;
};

class ThreadPool {
 public:
  // Copied into the job. It must own, or live as long as the pool with, whatever decides its phases: a thread may come
  // back to it after `run` has returned. It will find no tile left, so what only tiles touch need not live on.
  using Work = std::function<void(Team&)>;

  // `num_threads` counts the calling thread; it must be at least 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs `work` on the calling thread and, as far as they are free, on the others. `num_phases` bounds its phases.
  // `work` must not throw: there is nobody to catch it on the other threads. `trace`, where given, has a lane for each
  // thread and a cell for each label of `work`.
  void run(Work work, std::size_t num_phases, std::shared_ptr<JobTrace> trace = nullptr);

  // A job of a single phase.
  void for_each(int num_tiles, const std::function<void(int tile)>& f);

 private:
  struct Job {
    Job(Work w, std::size_t num_phases, int num_threads, std::shared_ptr<JobTrace> t)
        : work(std::move(w)), trace(std::move(t)) {
      for (std::size_t i = 0; i < num_phases; ++i) phases.emplace_back(num_threads);
    }
    TraceLane* lane(int thread) const { return trace == nullptr ? nullptr : &trace->lane(thread); }
    Work work;
    std::shared_ptr<JobTrace> trace;  // null where none is wanted
    std::deque<Phase> phases;         // a phase cannot be moved
  };

  void start_workers();
  void stop_workers();
  void abandon_workers();
  void serve(int thread, std::uint32_t seen);
  void publish(std::shared_ptr<Job> job);
  std::shared_ptr<Job> current();

  const int num_threads_;
  pid_t owner_ = 0;  // threads do not survive fork(): a child starts its own
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::shared_ptr<Job> job_;  // null between jobs; guarded by *mutex_
  std::atomic<bool> is_stopping_{false};
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // grows by one for each job
};

}  // namespace paceline

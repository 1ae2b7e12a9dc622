// A pool of threads that run a job together, phase by phase.
//
// A phase is a number of tiles, handed out to whichever thread is free. It is over when its tiles are done, not when all
// threads have arrived: a thread that the system has taken off its processor holds nobody up unless it holds a tile, and
// when it comes back it finds the phases before it used up and catches up. So a busy machine costs the share of the
// processors that it takes, and unequal cores do not wait for each other.
//
// Waiting spins briefly and then sleeps: a forward has some 300 phases a few microseconds apart, where sleeping would cost
// more than the wait; between forwards spinning for long would be waste.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline {

struct alignas(64) Phase {
  std::atomic<int> next{0};            // the tile to hand out
  std::atomic<std::uint32_t> done{0};  // tiles finished
};

// What one thread sees of a running job: its phases, in the order that every thread goes through them.
class Team {
 public:
  Team(std::vector<Phase>& phases, int thread) : phases_(phases), thread_(thread) {}

  int thread() const { return thread_; }

  // Calls f(tile) for each tile in [0, num_tiles), each on one thread. When it returns all tiles are done, and what they
  // wrote can be read. `num_tiles` must be the same on every thread; f must not throw.
  template <typename F>
  void for_each(int num_tiles, F f) {
    Phase& phase = phases_[index_++];
    std::uint32_t finished = 0;
    for (int tile = take(phase); tile < num_tiles; tile = take(phase)) {
      f(tile);
      ++finished;
    }
    complete(phase, finished, static_cast<std::uint32_t>(num_tiles));
  }

 private:
  static int take(Phase& phase) { return phase.next.fetch_add(1, std::memory_order_relaxed); }
  static void complete(Phase& phase, std::uint32_t finished, std::uint32_t num_tiles);

  std::vector<Phase>& phases_;
  const int thread_;
  std::size_t index_ = 0;
};

class ThreadPool {
 public:
  // Copied into the job. It must own, or live as long as the pool with, whatever decides its phases: a thread may come back
  // to it after `run` has returned. It will find no tile left, so what only tiles touch need not live on.
  using Work = std::function<void(Team&)>;

  // `num_threads` counts the calling thread; it must be at least 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs `work` on the calling thread and, as far as they are free, on the others. `num_phases` bounds its phases.
  void run(Work work, std::size_t num_phases);

  // A job of a single phase.
  void for_each(int num_tiles, const std::function<void(int tile)>& f);

 private:
  struct Job {
    Job(Work w, std::size_t num_phases) : work(std::move(w)), phases(num_phases) {}
    Work work;
    std::vector<Phase> phases;
  };

  void start_workers();
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

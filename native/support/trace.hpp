// Where the time of a job goes: for each label of its phases, the threads' time at work and waiting, added up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace paceline {

// Nanoseconds of several threads together.
struct PhaseTimes {
  std::int64_t work = 0;  // at tiles
  std::int64_t wait = 0;  // for the other threads' tiles
};

// What one thread writes down of a job. Cells have one writer; they are atomic because the job may be summed up while a
// late thread still goes through it.
class TraceLane {
 public:
  explicit TraceLane(std::size_t num_labels) : cells_(num_labels) {}

  void begin_phase() { last_ = Clock::now(); }
  void end_work(int label) { add_lap(cells_[label].work); }
  void end_phase(int label) { add_lap(cells_[label].wait); }

  PhaseTimes times(int label) const {
    const Cell& cell = cells_[label];
    return {cell.work.load(std::memory_order_relaxed), cell.wait.load(std::memory_order_relaxed)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Cell {
    std::atomic<std::int64_t> work{0};
    std::atomic<std::int64_t> wait{0};
  };

  void add_lap(std::atomic<std::int64_t>& sum) {
    const auto now = Clock::now();
    const auto lap = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
    sum.store(sum.load(std::memory_order_relaxed) + lap, std::memory_order_relaxed);
    last_ = now;
  }

  std::vector<Cell> cells_;
  Clock::time_point last_;
};

// The lanes of one job's threads. It belongs to the job: what a thread that comes too late writes, nobody reads.
class JobTrace {
 public:
  JobTrace(int num_threads, std::size_t num_labels) {
    for (int i = 0; i < num_threads; ++i) lanes_.emplace_back(num_labels);
  }

  TraceLane& lane(int thread) { return lanes_[thread]; }

  PhaseTimes times(int label) const {
    PhaseTimes sum;
    for (const TraceLane& lane : lanes_) {
      const PhaseTimes times = lane.times(label);
      sum.work += times.work;
      sum.wait += times.wait;
    }
    return sum;
  }

 private:
  std::deque<TraceLane> lanes_;  // a lane cannot be moved
};

}  // namespace paceline

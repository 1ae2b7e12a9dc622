#include "support/thread_pool.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>

#include "support/check.hpp"
#include "support/float_mode.hpp"

namespace paceline {
namespace {

constexpr int kPhaseSpins = 4000;  // some 50 µs: longer than the tile that another, undisturbed thread is at
constexpr int kIdleSpins = 20000;  // some 300 µs: the time between two decode steps

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
  value.wait(old, std::memory_order_acquire);
}

// Blocks signals for its lifetime; a thread that is started meanwhile has them blocked for all of its own. Signals are
// for the program's threads: a worker would take one that the program has blocked, to wait for it. What a thread raises
// by a fault of its own is not blocked: it would end the process past the handlers that report faults.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_BLOCK, &blocked, &saved_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace

void Phase::complete(std::uint32_t finished, std::uint32_t num_tiles) {
  if (finished > 0 && done_.fetch_add(finished, std::memory_order_acq_rel) + finished == num_tiles) {
    done_.notify_all();
    return;
  }
  for (auto done = done_.load(std::memory_order_acquire); done != num_tiles;
       done = done_.load(std::memory_order_acquire)) {
    wait_for_change(done_, done, kPhaseSpins);
  }
}

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  require(num_threads >= 1, "num_threads must be at least 1, got " + std::to_string(num_threads));
  start_workers();
}

void ThreadPool::start_workers() {
  owner_ = getpid();
  const std::uint32_t seen = epoch_.load();
  const SignalsBlocked signals;
  try {
    for (int i = 1; i < num_threads_; ++i) workers_.emplace_back([this, i, seen] { serve(i, seen); });
  } catch (const std::system_error&) {
    const std::size_t num_started = workers_.size() + 1;
    stop_workers();
    throw std::runtime_error("could start only " + std::to_string(num_started) + " of " + std::to_string(num_threads_) +
                             " threads; ask for fewer");
  }
}

void ThreadPool::stop_workers() {
  is_stopping_.store(true);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
  workers_.clear();
}

// In a forked child the threads are gone, and the system may have given their stacks and handles to others: nothing may
// be done with the handles, not even destroying them. The mutex may be held by a thread that is gone.
void ThreadPool::abandon_workers() {
  static_cast<void>(new std::vector<std::thread>(std::move(workers_)));
  workers_.clear();
  static_cast<void>(mutex_.release());
  mutex_ = std::make_unique<std::mutex>();
}

ThreadPool::~ThreadPool() {
  if (owner_ == getpid()) {
    stop_workers();
  } else {
    abandon_workers();
  }
}

void ThreadPool::publish(std::shared_ptr<Job> job) {
  const std::lock_guard lock(*mutex_);
  job_ = std::move(job);
}

std::shared_ptr<ThreadPool::Job> ThreadPool::current() {
  const std::lock_guard lock(*mutex_);
  return job_;
}

void ThreadPool::run(Work work, std::size_t num_phases, std::shared_ptr<JobTrace> trace) {
  if (owner_ != getpid()) {
    abandon_workers();
    start_workers();
  }
  const FloatMode mode;
  const auto job = std::make_shared<Job>(std::move(work), num_phases, num_threads_, std::move(trace));
  publish(job);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  Team team(job->phases, 0, num_threads_, job->lane(0));
  job->work(team);
  publish(nullptr);
}

void ThreadPool::for_each(int num_tiles, const std::function<void(int tile)>& f) {
  run([num_tiles, f](Team& team) { team.for_each(0, num_tiles, f); }, 1);
}

void ThreadPool::serve(int thread, std::uint32_t seen) {
  const FloatMode mode;
  while (true) {
    wait_for_change(epoch_, seen, kIdleSpins);
    seen = epoch_.load(std::memory_order_acquire);
    if (is_stopping_.load()) return;
    if (const auto job = current()) {
      Team team(job->phases, thread, num_threads_, job->lane(thread));
      job->work(team);
    }
  }
}

}  // namespace paceline

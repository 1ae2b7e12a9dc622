// Refuses a second caller instead of letting it compute nonsense.
#pragma once

#include <atomic>
#include <stdexcept>

namespace paceline {

// Holds `flag` for its lifetime; throws std::runtime_error where it is held already.
class Exclusive {
 public:
  explicit Exclusive(std::atomic<bool>& flag) : flag_(flag) {
    if (flag_.exchange(true, std::memory_order_acquire)) {
      throw std::runtime_error(
          "this model is in use by another thread; give each thread a model of its own, or a lock");
    }
  }
  ~Exclusive() { flag_.store(false, std::memory_order_release); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace paceline

// What the phases of a forward are for, and where the time of traced forwards went.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/trace.hpp"

namespace paceline {

namespace phase {

enum Kind : int {
  kEmbed,
  kNorm,
  kQkv,
  kStore,
  kAttention,
  kOutput,
  kGateUp,
  kGating,
  kDown,
  kHidden,
  kHead,
  kNumKinds
};

// kNorm: norms and quantising, of attention's results too. kStore: biases, norms of heads, rotation, storing.
inline constexpr std::array<const char*, kNumKinds> kNames{"embed",   "norm",   "qkv",  "store",  "attention", "o",
                                                           "gate_up", "gating", "down", "hidden", "head"};

// Labels lie kind by kind for scope after scope: scope 0 is what belongs to no layer, scope i + 1 is layer i.
inline int first_label(int scope) { return scope * kNumKinds; }

}  // namespace phase

// Sums over the traced forwards since `start`. `work` and `wait` are nanoseconds of all threads together, [scopes of
// phase::first_label][phase::kNumKinds]; empty while tracing is off.
struct ForwardTrace {
  int num_forwards = 0;
  std::int64_t forward_ns = 0;  // wall time
  std::vector<std::vector<std::int64_t>> work;
  std::vector<std::vector<std::int64_t>> wait;
};

// Off until started. While it is off a forward pays one comparison a phase.
class Tracer {
 public:
  // A forward under way; null jobs are not traced.
  struct Run {
    std::shared_ptr<JobTrace> job;
    std::chrono::steady_clock::time_point start;
  };

  void start(int num_layers) {
    const std::vector<std::int64_t> none(phase::kNumKinds, 0);
    sums_ = {};
    sums_.work.assign(num_layers + 1, none);
    sums_.wait.assign(num_layers + 1, none);
  }
  void stop() { sums_ = {}; }
  const ForwardTrace& sums() const { return sums_; }

  Run begin(int num_threads) const {
    if (sums_.work.empty()) return {};
    return {std::make_shared<JobTrace>(num_threads, sums_.work.size() * phase::kNumKinds),
            std::chrono::steady_clock::now()};
  }

  void end(const Run& run) {
    if (run.job == nullptr) return;
    const auto elapsed = std::chrono::steady_clock::now() - run.start;
    sums_.forward_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
    ++sums_.num_forwards;
    for (std::size_t scope = 0; scope < sums_.work.size(); ++scope) {
      for (int kind = 0; kind < phase::kNumKinds; ++kind) {
        const PhaseTimes times = run.job->times(phase::first_label(static_cast<int>(scope)) + kind);
        sums_.work[scope][kind] += times.work;
        sums_.wait[scope][kind] += times.wait;
      }
    }
  }

 private:
  ForwardTrace sums_;
};

}  // namespace paceline

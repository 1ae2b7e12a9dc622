// Loops that are unrolled by the language and not by the compiler's leave: what they work on stays in registers.
#pragma once

namespace paceline::kernels {

// A number that is known when compiled.
template <int kValue>
struct Index {};

// Calls f(Index<0>) to f(Index<N - 1>).
template <int N, class F>
[[gnu::always_inline]] inline void unroll(const F& f) {
  if constexpr (N > 0) {
    unroll<N - 1>(f);
    f(Index<N - 1>{});
  }
}

}  // namespace paceline::kernels

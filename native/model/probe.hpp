// Measures what the machine can do.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"
#include "support/thread_pool.hpp"

namespace paceline {

// Bytes per second that all threads of `pool` together read from a buffer of `bytes`, best of `repeats` over several
// numbers of parallel prefetched streams.
double read_bandwidth(ThreadPool& pool, const Kernels& kernels, std::size_t bytes, int repeats);

// Multiply-adds per second of all threads together, best of `repeats`: of 8-bit inputs with codes of up to 6 bits in
// the products' inner scheme (8-bit codes take two products each), and in float32.
double code_rate(ThreadPool& pool, const Kernels& kernels, int repeats);
double float_rate(ThreadPool& pool, const Kernels& kernels, int repeats);

}  // namespace paceline

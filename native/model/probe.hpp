// Measures what the machine can do.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"
#include "support/thread_pool.hpp"

namespace paceline {

// Bytes per second that all threads of `pool` together read from a buffer of `bytes`, best of `repeats` over several
// numbers of parallel prefetched streams.
double read_bandwidth(ThreadPool& pool, const Kernels& kernels, std::size_t bytes, int repeats);

}  // namespace paceline

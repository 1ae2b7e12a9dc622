#include "support/cpu.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace paceline {

#if defined(__x86_64__)

// The compiler's library asks the processor and, for the registers' state, the operating system.
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool has_avx512_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

#else

bool has_avx2() { return false; }
bool has_avx512_vnni() { return false; }

#endif

bool has_neon_dot_product() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  return true;  // every such processor has it
#else
  return false;
#endif
}

}  // namespace paceline

// The floating-point mode that kernels compute in: round to nearest, subnormal numbers kept.
//
// A library may have changed the mode of the thread that calls, and a thread inherits its creator's. A row's numbers
// must not depend on which thread takes its tile.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace paceline {

// Sets the mode for its lifetime and puts the old one back.
class FloatMode {
 public:
  FloatMode() : saved_(read()) { write(kDefault); }
  ~FloatMode() { write(saved_); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr std::uint64_t kDefault = 0x1f80;  // all exceptions masked, nearest, no flushing to zero
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() {
    std::uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void write(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() { return 0; }
  static void write(std::uint64_t) {}
#endif

  std::uint64_t saved_;
};

}  // namespace paceline

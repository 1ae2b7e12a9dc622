// Vectors of aarch64 processors with the dot product of ARMv8.2: 4 outputs in products, pairs of vectors elsewhere.
//
// Internal linkage throughout: every unit has its own copy.
#pragma once

#include <arm_neon.h>

#include "kernels/kernels.hpp"

namespace paceline {
namespace neon {
namespace {

struct Isa {
  struct F8 {
    float32x4_t low, high;
  };
  struct I8 {
    int32x4_t low, high;
  };

  static F8 splat(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static I8 splat(std::int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
  static F8 zero() { return splat(0.0f); }

  static F8 add(F8 a, F8 b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  static F8 sub(F8 a, F8 b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
  static F8 mul(F8 a, F8 b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  static F8 div(F8 a, F8 b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
  static F8 fma(F8 a, F8 b, F8 c) { return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)}; }
  // Both return b where either operand is NaN.
  static F8 max(F8 a, F8 b) { return {larger(a.low, b.low), larger(a.high, b.high)}; }
  static F8 min(F8 a, F8 b) {
    return {vbslq_f32(vcltq_f32(a.low, b.low), a.low, b.low), vbslq_f32(vcltq_f32(a.high, b.high), a.high, b.high)};
  }

  static float sum(F8 a) {
    const float32x4_t s = vaddq_f32(a.low, a.high);
    const float32x2_t pair = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(pair, 0) + vget_lane_f32(pair, 1);
  }
  static float maximum(F8 a) {
    float lanes[4];
    vst1q_f32(lanes, larger(a.low, a.high));
    float m = lanes[0];
    for (int i = 1; i < 4; ++i) m = m > lanes[i] ? m : lanes[i];
    return m;
  }

  static F8 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static void store(float* p, F8 a) {
    vst1q_f32(p, a.low);
    vst1q_f32(p + 4, a.high);
  }
  static F8 load_half(const std::uint16_t* p) {
    const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  static void store_half(std::uint16_t* p, F8 a) {
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.low), a.high)));
  }

  static F8 round(F8 a) { return {vrndnq_f32(a.low), vrndnq_f32(a.high)}; }
  // a * 2^n for whole n in [-126, 127]. A NaN in n is in a as well.
  static F8 scale_by_power_of_two(F8 a, F8 n) { return mul(a, {power_of_two(n.low), power_of_two(n.high)}); }

  static void quantize_group(const float* x, std::int8_t* codes, float* scale, std::int16_t (*pair_sums)[2]) {
    const float32x4_t limit = vdupq_n_f32(3.4028234663852886e38f);
    float32x4_t largest = vdupq_n_f32(0.0f);
    uint32x4_t finite = vdupq_n_u32(0xffffffff);
    for (int i = 0; i < 8; ++i) {
      const float32x4_t magnitude = vabsq_f32(vld1q_f32(x + 4 * i));
      finite = vandq_u32(finite, vcleq_f32(magnitude, limit));
      largest = larger(largest, magnitude);
    }
    const bool is_finite = vminvq_u32(finite) != 0;
    const float top = vmaxvq_f32(largest);
    const bool is_zero = !is_finite || top < 1e-30f;
    *scale = is_finite ? (is_zero ? 0.0f : top / 127.0f) : __builtin_nanf("");
    if (is_zero) {
      __builtin_memset(pair_sums, 0, 8);
      __builtin_memset(codes, 0, kGroup);
      return;
    }
    const float32x4_t inverse = vdupq_n_f32(127.0f / top);
    for (int half = 0; half < 2; ++half) {
      int32x4_t q[4];
      for (int i = 0; i < 4; ++i) q[i] = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + 16 * half + 4 * i), inverse));
      const int16x8_t low = vcombine_s16(vmovn_s32(q[0]), vmovn_s32(q[1]));
      const int16x8_t high = vcombine_s16(vmovn_s32(q[2]), vmovn_s32(q[3]));
      vst1q_s8(codes + 16 * half, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
      const int32x4_t columns = vaddq_s32(vaddq_s32(q[0], q[1]), vaddq_s32(q[2], q[3]));
      const int32x4_t pairs = vpaddq_s32(columns, columns);
      pair_sums[half][0] = static_cast<std::int16_t>(vgetq_lane_s32(pairs, 0));
      pair_sums[half][1] = static_cast<std::int16_t>(vgetq_lane_s32(pairs, 1));
    }
  }

  // low = ((x + 8) mod 16) - 8; high = (x - low) / 16, which no byte holds on the way: x - low may be 128.
  static void split_codes(const std::int8_t* codes, std::int8_t* high, std::int8_t* low) {
    const int8x16_t eight = vdupq_n_s8(8);
    for (int i = 0; i < kGroup; i += 16) {
      const int8x16_t x = vld1q_s8(codes + i);
      vst1q_s8(low + i, vsubq_s8(vandq_s8(vaddq_s8(x, eight), vdupq_n_s8(15)), eight));
      vst1q_s8(high + i, vrshrq_n_s8(x, 4));
    }
  }

  static I8 add(I8 a, I8 b) { return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)}; }
  static F8 to_float(I8 a) { return {vcvtq_f32_s32(a.low), vcvtq_f32_s32(a.high)}; }
  static I8 load_ints(const std::uint8_t* p) {
    return {vreinterpretq_s32_u8(vld1q_u8(p)), vreinterpretq_s32_u8(vld1q_u8(p + 16))};
  }
  // Volatile: of a function that only prefetches the compiler may decide that it does nothing, and drop its calls.
  static void prefetch(const void* p) { asm volatile("prfm pldl1keep, [%0]" : : "r"(p)); }

 private:
  static float32x4_t larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static float32x4_t power_of_two(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
};

struct Products {
  static constexpr int kLanes = 4;
  static constexpr int kLargestSum = 0x7fffffff;
  static constexpr TileSizes kTiles = {4, 3};
  static constexpr TileSizes kSplitTiles = kTiles;  // inputs are never split
  static constexpr int kStripVectors = 8;
  static constexpr bool kHasSignedCodes = true;
  using Float = float32x4_t;
  using Int = int32x4_t;
  using Codes = uint8x16_t;  // 4 columns of each output
  using Four = int8x16_t;    // 4 inputs, for each output
  using Sums = int32x4_t;
  using Scales = int32x4_t;

  static Float splat(float x) { return vdupq_n_f32(x); }
  static Int splat(std::int32_t x) { return vdupq_n_s32(x); }
  static Float zero() { return vdupq_n_f32(0.0f); }
  static Float add(Float a, Float b) { return vaddq_f32(a, b); }
  static Float sub(Float a, Float b) { return vsubq_f32(a, b); }
  static Float mul(Float a, Float b) { return vmulq_f32(a, b); }
  static Float fma(Float a, Float b, Float c) { return vfmaq_f32(c, a, b); }
  static Int add(Int a, Int b) { return vaddq_s32(a, b); }
  static Float to_float(Int a) { return vcvtq_f32_s32(a); }

  static Float load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, Float a) { vst1q_f32(p, a); }
  static Float load_half(const std::uint8_t* p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
  static Float load_bfloat(const std::uint8_t* p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
  }

  static Codes load_codes(const std::uint8_t* p) { return vld1q_u8(p); }
  template <int kMask, int kShift>
  static Codes field(Codes w) {
    if constexpr (kShift > 0) w = vshrq_n_u8(w, kShift);
    if constexpr (kMask < 255 >> kShift) w = vandq_u8(w, vdupq_n_u8(kMask));
    return w;
  }
  static Codes either(Codes a, Codes b) { return vorrq_u8(a, b); }
  // Replaces 4-bit codes by what a table of 16 has for them.
  static Codes look_up(const std::uint8_t* table, Codes codes) { return vqtbl1q_u8(vld1q_u8(table), codes); }
  // The bits of code - 128.
  static Codes to_signed(Codes codes) { return veorq_u8(codes, vdupq_n_u8(128)); }

  static Four broadcast_four(const std::int8_t* x) {
    std::int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  static Sums multiply(Codes codes, Four four) { return vdotq_s32(vdupq_n_s32(0), vreinterpretq_s8_u8(codes), four); }
  static void accumulate(Sums& sums, Codes codes, Four four) {
    sums = vdotq_s32(sums, vreinterpretq_s8_u8(codes), four);
  }
  static Sums sums_of(const std::int16_t* p) { return vdupq_n_s32(p[0] + p[1]); }
  static Sums add_sums(Sums a, Sums b) { return vaddq_s32(a, b); }
  template <int kFactor>
  static Sums times(Sums a) {
    return vmulq_n_s32(a, kFactor);
  }
  static Int widen(Sums sums) { return sums; }
  static Int widen_scaled(Sums sums, Scales scales) { return vmulq_s32(sums, scales); }

  // Of 16 bytes, those of vector kVector of the outputs.
  template <int kVector>
  static Scales load_unsigned_pairs(const std::uint8_t* p) {
    return load_unsigned(p + 4 * kVector);
  }
  template <int kVector>
  static Scales load_signed_pairs(const std::uint8_t* p) {
    return load_signed(p + 4 * kVector);
  }
  template <int kVector>
  static Scales load_low_nibbles(const std::uint8_t* p) {
    return vandq_s32(load_unsigned(p + 4 * kVector), vdupq_n_s32(15));
  }
  template <int kVector>
  static Scales load_high_nibbles(const std::uint8_t* p) {
    return vshrq_n_s32(load_unsigned(p + 4 * kVector), 4);
  }
  static Int load_unsigned(const std::uint8_t* p) {
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_four(p)))));
  }
  static Int load_signed(const std::uint8_t* p) {
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_four(p)))));
  }
  // float32, float16 or 2^(e - 128).
  template <int kBytes>
  static Float load_scale(const std::uint8_t* p) {
    if constexpr (kBytes == 4) return vreinterpretq_f32_u8(vld1q_u8(p));
    if constexpr (kBytes == 2) return load_half(p);
    return load_half_powers(p);
  }

  static void prefetch(const void* p) { Isa::prefetch(p); }

 private:
  static uint8x8_t load_four(const std::uint8_t* p) {
    std::uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vcreate_u8(four);
  }
  // 2^(e - 128); the two smallest are subnormal.
  static Float load_half_powers(const std::uint8_t* p) {
    const Int e = load_unsigned(p);
    const Int normal = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    const Int subnormal = vshlq_s32(vdupq_n_s32(0x00200000), e);
    return vreinterpretq_f32_s32(vbslq_s32(vcgtq_s32(e, vdupq_n_s32(1)), normal, subnormal));
  }
};

}  // namespace
}  // namespace neon
}  // namespace paceline

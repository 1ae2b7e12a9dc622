// What one path computed, case by case, as digests that are the same on every processor where the bits are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace paceline {

// Numbers that are the same on every processor.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  int below(int limit) { return static_cast<int>(bits() % static_cast<std::uint32_t>(limit)); }
  // In [-1, 1).
  float uniform() { return static_cast<float>(static_cast<std::int32_t>(bits())) * 0x1p-31f; }
  std::vector<float> floats(std::size_t count, float scale = 1.0f) {
    std::vector<float> out(count);
    for (auto& x : out) x = uniform() * scale;
    return out;
  }

 private:
  std::uint64_t state_;
};

struct Case {
  std::string name;
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a
};

class Recorder {
 public:
  void begin(const std::string& name) { cases_.push_back({name}); }
  // The NaN that an operation makes differs between processors: all count as one.
  void add(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    add_word(x == x ? bits : 0x7fc00000u);
  }
  void add_half(std::uint16_t x) { add_word((x & 0x7fffu) > 0x7c00u ? 0x7e00u : x); }
  void add_word(std::uint32_t word) {
    for (int i = 0; i < 4; ++i) cases_.back().digest = (cases_.back().digest ^ (word >> 8 * i & 255)) * 1099511628211u;
  }
  template <class Values>
  void add_all(const Values& values) {
    for (const float x : values) add(x);
  }

  const std::vector<Case>& cases() const { return cases_; }
  std::uint64_t digest() const {
    std::uint64_t all = 0;
    for (const Case& c : cases_) all = (all ^ c.digest) * 1099511628211u;
    return all;
  }

 private:
  std::vector<Case> cases_;
};

void run_products(const Kernels& kernels, Recorder& out);
void run_elementwise(const Kernels& kernels, Recorder& out);
void run_attention(const Kernels& kernels, Recorder& out);
void run_sampling(const Kernels& kernels, Recorder& out);

}  // namespace paceline

// Memory for weights, activations and pages: aligned, not touched until written, asked to sit on huge pages where
// large.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace paceline {

template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;

  explicit AlignedBuffer(std::size_t count) : size_(count) {
    if (count == 0) return;
    const std::size_t bytes = count * sizeof(T);
    const bool is_large = bytes >= kHugePage;
    // Whole huge pages; what is small ends with its last element, so that checks of memory see what lies behind it.
    const std::size_t rounded = is_large ? (bytes + kHugePage - 1) / kHugePage * kHugePage : bytes;
    void* data = nullptr;
    if (posix_memalign(&data, is_large ? kHugePage : kCacheLine, rounded) != 0) throw std::bad_alloc();
    data_ = static_cast<T*>(data);
    if (is_large) advise_huge(rounded);
  }

  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kCacheLine = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  // Only a hint: refusal costs speed, not correctness, so its result is not needed.
  void advise_huge([[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
    static_cast<void>(madvise(data_, bytes, MADV_HUGEPAGE));
#endif
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace paceline

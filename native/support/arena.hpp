// Memory for many matrices that are read one after the other: large pieces on huge pages, never freed one by one. A
// small allocation of its own would lie on small pages, at whose borders hardware prefetching stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/aligned.hpp"

namespace paceline {

class Arena {
 public:
  // `bytes` on a cache line, valid as long as the arena.
  std::uint8_t* allocate(std::size_t bytes) {
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    if (pieces_.empty() || used_ + rounded > pieces_.back().size()) {
      pieces_.emplace_back(rounded > kPieceBytes ? rounded : kPieceBytes);
      used_ = 0;
    }
    std::uint8_t* data = pieces_.back().data() + used_;
    used_ += rounded;
    return data;
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t kPieceBytes = 0;  // to each matrix its own: reads behind it are noticed
#else
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;  // what is not used of it is never touched
#endif

  std::vector<AlignedBuffer<std::uint8_t>> pieces_;
  std::size_t used_ = 0;  // of the last piece
};

}  // namespace paceline

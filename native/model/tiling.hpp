// How the work of a product is cut up: which matrices share an input, and which blocks make a tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "weights/matrix.hpp"

namespace paceline {

inline int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

inline constexpr std::size_t kTileBytes = 8 << 10;  // weights of a tile at least: about a microsecond of reading
inline constexpr int kTileBlocks = 4;                // blocks of a tile at least: what is read side by side

// One matrix of a product and where in the output row its part begins.
struct Part {
  const Matrix* matrix = nullptr;
  int offset = 0;
};

// The matrices that share a product's input. A plain value: nothing may be allocated while a job runs.
struct Parts {
  std::array<Part, 3> parts;
  int count = 1;
};

inline Parts only(const Matrix& matrix) { return {{Part{&matrix, 0}}, 1}; }

// Cuts the blocks of a product's matrices into tiles: an even share of the blocks for each thread, and of that tiles of
// kTileBlocks, or of as many blocks as make kTileBytes; only a share's last tile can be smaller.
class Tiling {
 public:
  Tiling(const Parts& parts, int num_threads) : parts_(parts), num_threads_(num_threads) {
    for (int i = 0; i < parts.count; ++i) num_blocks_ += parts.parts[i].matrix->view().num_blocks;
    const std::size_t block_bytes = parts.parts[0].matrix->view().block_bytes;
    tile_blocks_ = std::max(kTileBlocks, static_cast<int>(kTileBytes / block_bytes));
    const int blocks_of_thread = (num_blocks_ + num_threads - 1) / num_threads;
    tiles_of_thread_ = (blocks_of_thread + tile_blocks_ - 1) / tile_blocks_;
  }

  int num_tiles() const { return num_threads_ * tiles_of_thread_; }

  // Calls f(part, first, last) for the blocks of the tile, a matrix at a time.
  template <class F>
  void for_each_part(int tile, F f) const {
    const int thread = tile / tiles_of_thread_;
    int first = share(thread) + tile % tiles_of_thread_ * tile_blocks_;
    int last = std::min(first + tile_blocks_, share(thread + 1));
    for (int i = 0; i < parts_.count && last > 0; ++i) {
      const int num_blocks = parts_.parts[i].matrix->view().num_blocks;
      if (first < num_blocks && first < last) f(parts_.parts[i], std::max(first, 0), std::min(last, num_blocks));
      first -= num_blocks;
      last -= num_blocks;
    }
  }

 private:
  // The first block of a thread's share.
  int share(int thread) const {
    return static_cast<int>(static_cast<std::int64_t>(num_blocks_) * thread / num_threads_);
  }

  const Parts& parts_;
  const int num_threads_;
  int num_blocks_ = 0;
  int tile_blocks_ = 1;
  int tiles_of_thread_ = 1;
};

}  // namespace paceline

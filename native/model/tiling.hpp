// How the work of a product is cut up: which matrices share an input, and which blocks make a tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "weights/matrix.hpp"

namespace paceline {

inline int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

inline constexpr std::size_t kTileBytes = 64 << 10;  // weights of a tile: some microseconds of reading

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

// Cuts the blocks of a product's matrices into tiles: an even share of each matrix for each thread, and that into tiles
// of about kTileBytes. Where one row leaves memory as the limit, a thread reads its share as several streams, far
// apart: one stream gets three quarters of the bandwidth that four get. A tile then has as many blocks of each.
class Tiling {
 public:
  struct Tile {
    const Part* part;
    Blocks blocks;
  };

  Tiling(const Parts& parts, int num_rows, int num_threads)
      : parts_(parts), num_threads_(num_threads), num_streams_(num_rows == 1 ? kStreams : 1) {
    for (int i = 0; i < parts.count; ++i) tiles_of_thread_ += tiles_of(parts.parts[i]);
  }

  int num_tiles() const { return num_threads_ * tiles_of_thread_; }

  Tile at(int tile) const {
    const int thread = tile / tiles_of_thread_;
    int index = tile % tiles_of_thread_;
    const Part* part = parts_.parts.data();
    for (; index >= tiles_of(*part); ++part) index -= tiles_of(*part);
    const int first = share(*part, thread);
    const int stream = (share(*part, thread + 1) - first) / num_streams_;  // blocks
    const int from = index * run(*part);
    if (from < stream) {
      return {part, {first + from, first + std::min(from + run(*part), stream), stream, num_streams_}};
    }
    // What no stream has, in the share's last tile; nothing in one that only others' shares need.
    const int rest = index == tiles_of(*part) - 1 ? first + stream * num_streams_ : share(*part, thread + 1);
    return {part, {rest, share(*part, thread + 1), 0, 1}};
  }

 private:
  static int num_blocks(const Part& part) { return part.matrix->view().num_blocks; }
  // The first block of a thread's share.
  int share(const Part& part, int thread) const {
    return static_cast<int>(static_cast<std::int64_t>(num_blocks(part)) * thread / num_threads_);
  }
  // Blocks that a tile has of a stream.
  int run(const Part& part) const {
    return std::max(1, static_cast<int>(kTileBytes / (num_streams_ * part.matrix->view().block_bytes)));
  }
  // Tiles of the largest share: its streams' and one for what is left over.
  int tiles_of(const Part& part) const {
    const int stream = (num_blocks(part) + num_threads_ - 1) / num_threads_ / num_streams_;
    return (stream + run(part) - 1) / run(part) + (num_streams_ > 1 ? 1 : 0);
  }

  const Parts& parts_;
  const int num_threads_;
  const int num_streams_;
  int tiles_of_thread_ = 0;
};

}  // namespace paceline

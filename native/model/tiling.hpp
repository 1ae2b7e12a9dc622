// How the work of a product is cut up: which matrices share an input, and which blocks make a tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "weights/matrix.hpp"

namespace paceline {

inline int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

inline constexpr std::size_t kTileBytes = 8 << 10;  // weights of a tile: about a microsecond of reading

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

// Cuts the blocks of a product's matrices into tiles of about kTileBytes.
class Tiling {
 public:
  struct Tile {
    const Part* part;
    int first, last;  // blocks
  };

  explicit Tiling(const Parts& parts) : parts_(parts) {
    const std::size_t block_bytes = parts.parts[0].matrix->view().block_bytes;
    tile_blocks_ = std::max(1, static_cast<int>(kTileBytes / block_bytes));
    for (int i = 0; i < parts.count; ++i) num_tiles_ += tiles_of(parts.parts[i]);
  }

  int num_tiles() const { return num_tiles_; }

  Tile at(int tile) const {
    const Part* part = parts_.parts.data();
    for (; tile >= tiles_of(*part); ++part) tile -= tiles_of(*part);
    const int first = tile * tile_blocks_;
    return {part, first, std::min(first + tile_blocks_, part->matrix->view().num_blocks)};
  }

 private:
  int tiles_of(const Part& part) const { return (part.matrix->view().num_blocks + tile_blocks_ - 1) / tile_blocks_; }

  const Parts& parts_;
  int tile_blocks_ = 1;
  int num_tiles_ = 0;
};

}  // namespace paceline

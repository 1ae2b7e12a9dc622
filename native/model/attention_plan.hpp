// How a layer's attention is dealt out: queries that share keys and values, and the chunks of positions they go
// through.
#pragma once

#include <vector>

#include "kernels/kernels.hpp"
#include "model/batch.hpp"

namespace paceline {

class AttentionPlan {
 public:
  // For layers of this shape. `batch` must outlive the plan.
  AttentionPlan(const Batch& batch, const AttentionShape& shape, int num_threads);

  const AttentionShape& shape() const { return shape_; }
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  std::size_t partials_size() const { return partials_size_; }  // floats

  // `partials` has room for partials_size().
  AttentionTask task(int index, float* partials) const;

  // What a query head of a row got from the chunks that it sees, if that is still to be put together.
  struct Partials {
    std::size_t offset = 0;
    std::size_t stride = 0;  // from chunk to chunk; 0: nothing to put together
  };
  const Partials& partials_of(int row, int head) const { return partials_[row * shape_.num_heads + head]; }
  bool has_partials() const { return partials_size_ > 0; }

 private:
  struct Task {
    AttentionTask task;
    bool is_whole = false;  // all chunks
    std::size_t offset = 0;
  };
  // Rows of one segment, and the chunks that they see.
  struct Span {
    int first_row = 0, num_rows = 0;
    int first_chunk = 0, last_chunk = 0;
    int num_chunks() const { return last_chunk - first_chunk; }
  };

  int group() const { return shape_.num_heads / shape_.num_kv_heads; }
  int first_chunk(int row) const;
  int last_chunk(int row) const;
  Span span_of(int first_row, int last_row) const;
  int num_units(const Span& span, int num_queries) const;
  int choose_num_queries(const std::vector<Span>& spans, int num_threads) const;
  void add_unit(const AttentionQueries& queries, int max_chunks);

  const Batch& batch_;
  const AttentionShape shape_;
  std::vector<Task> tasks_;
  std::vector<Partials> partials_;  // [row][head]
  std::size_t partials_size_ = 0;
};

}  // namespace paceline

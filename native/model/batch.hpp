// The rows of one forward: segments as the caller names them, checked and laid out row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"

namespace paceline {

// One sequence's rows: a run at positions [length, length + run), then nodes that name their parents' rows.
struct Segment {
  int length = 0;
  std::vector<std::int32_t> pages;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> parents;
  std::vector<std::int32_t> logits_rows;
  bool wants_hidden = false;
  bool is_write_suppressed = false;
};

struct BatchLimits {
  int max_rows = 0;
  int max_logits_rows = 0;
  int max_length = 0;
  int vocab_size = 0;  // with padding
  int num_pages = 0;
};

struct Row {
  std::int32_t token = 0;
  std::int32_t position = 0;
  std::int32_t slot = 0;
  bool is_written = true;
  RowView view;
};

class Batch {
 public:
  // Throws std::invalid_argument, naming segment and fault, before anything is run. Keeps pointers into `segments`.
  Batch(const std::vector<Segment>& segments, const BatchLimits& limits);

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<RowView>& views() const { return views_; }                // of the rows
  const std::vector<int>& segment_starts() const { return segment_starts_; }  // indices into rows()
  const std::vector<int>& logits_rows() const { return logits_rows_; }        // indices into rows()
  const std::vector<int>& hidden_rows() const { return hidden_rows_; }

 private:
  void add(const Segment& segment, const BatchLimits& limits);
  Row make_row(const Segment& segment, int index, int num_run, std::size_t first_row);

  std::vector<Row> rows_;
  std::vector<RowView> views_;
  std::vector<int> segment_starts_;
  std::vector<int> logits_rows_;
  std::vector<int> hidden_rows_;
  std::vector<std::vector<std::int32_t>> paths_;  // slots of a node's ancestors in the tree, itself last
};

}  // namespace paceline

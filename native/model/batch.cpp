#include "model/batch.hpp"

#include <string>

#include "support/check.hpp"

namespace paceline {
namespace {

std::string text(long long value) { return std::to_string(value); }

void check_segment(const Segment& s, const BatchLimits& limits) {
  const int num_rows = static_cast<int>(s.tokens.size());
  const int num_run = num_rows - static_cast<int>(s.parents.size());
  require(num_run >= 1, "a segment needs at least one row before its tree");
  const long long last_slot = static_cast<long long>(s.length) + num_rows;
  require(s.length >= 0 && last_slot <= static_cast<long long>(s.pages.size()) * kPageSize,
          "slots up to " + text(last_slot) + " do not fit " + text(s.pages.size()) + " pages of " + text(kPageSize));
  for (const int page : s.pages) {
    require(page >= 0 && page < limits.num_pages, "page " + text(page) + " is not one of " + text(limits.num_pages));
  }
  for (const int token : s.tokens) {
    require(token >= 0 && token < limits.vocab_size,
            "token " + text(token) + " is not below " + text(limits.vocab_size));
  }
  for (int i = 0; i < static_cast<int>(s.parents.size()); ++i) {
    require(s.parents[i] >= num_run - 1 && s.parents[i] < num_run + i,
            "row " + text(num_run + i) + " names parent " + text(s.parents[i]) + ", expected " + text(num_run - 1) +
                " to " + text(num_run + i - 1));
  }
  int previous = -1;
  for (const int row : s.logits_rows) {
    require(row > previous && row < num_rows, "logits rows must ascend and lie below " + text(num_rows));
    previous = row;
  }
  require(!s.is_write_suppressed || num_rows == 1, "only a segment of one row can have its write suppressed");
}

}  // namespace

Batch::Batch(const std::vector<Segment>& segments, const BatchLimits& limits) {
  std::size_t num_rows = 0;
  std::size_t num_logits = 0;
  for (const auto& segment : segments) {
    check_segment(segment, limits);
    num_rows += segment.tokens.size();
    num_logits += segment.logits_rows.size();
  }
  require(num_rows <= static_cast<std::size_t>(limits.max_rows),
          text(num_rows) + " rows in a forward, expected at most " + text(limits.max_rows));
  require(num_logits <= static_cast<std::size_t>(limits.max_logits_rows),
          text(num_logits) + " rows want logits, at most " + text(limits.max_logits_rows) + " can");
  rows_.reserve(num_rows);
  paths_.reserve(num_rows);  // rows point into it: it must not grow
  for (const auto& segment : segments) add(segment, limits);
}

void Batch::add(const Segment& segment, const BatchLimits& limits) {
  const std::size_t first = rows_.size();
  segment_starts_.push_back(static_cast<int>(first));
  const int num_rows = static_cast<int>(segment.tokens.size());
  const int num_run = num_rows - static_cast<int>(segment.parents.size());
  for (int i = 0; i < num_rows; ++i) {
    rows_.push_back(make_row(segment, i, num_run, first));
    require(rows_.back().position < limits.max_length,
            "position " + text(rows_.back().position) + " is past the capacity of " + text(limits.max_length));
    views_.push_back(rows_.back().view);
    if (segment.wants_hidden) hidden_rows_.push_back(static_cast<int>(first) + i);
  }
  for (const int row : segment.logits_rows) logits_rows_.push_back(static_cast<int>(first) + row);
}

Row Batch::make_row(const Segment& segment, int index, int num_run, std::size_t first_row) {
  Row row;
  row.token = segment.tokens[index];
  row.slot = segment.length + index;
  row.is_written = !segment.is_write_suppressed;
  row.view.pages = segment.pages.data();
  if (index < num_run) {
    row.position = row.slot;
    row.view.num_visible = row.view.num_straight = row.position + 1;
    return row;
  }
  const int parent = segment.parents[index - num_run];
  const Row& above = rows_[first_row + parent];
  auto& path =
      paths_.emplace_back(above.view.path, above.view.path + (above.view.num_visible - above.view.num_straight));
  path.push_back(row.slot);
  row.position = above.position + 1;
  row.view.num_visible = row.position + 1;
  row.view.num_straight = segment.length + num_run;
  row.view.path = path.data();
  return row;
}

}  // namespace paceline

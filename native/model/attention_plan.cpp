#include "model/attention_plan.hpp"

#include <algorithm>

namespace paceline {
namespace {

constexpr int kTasksOfThread = 16;  // where chunks are dealt out: the last ones are then small beside the whole

int divide_up(int value, int divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

AttentionPlan::AttentionPlan(const Batch& batch, const AttentionShape& shape, int num_threads)
    : batch_(batch), shape_(shape) {
  const std::vector<int>& starts = batch.segment_starts();
  std::vector<Span> spans;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int last = i + 1 < starts.size() ? starts[i + 1] : static_cast<int>(batch.rows().size());
    spans.push_back(span_of(starts[i], last));
  }
  const int num_queries = choose_num_queries(spans, num_threads);
  int num_chunks = 0;
  for (const Span& span : spans) num_chunks += num_units(span, num_queries) * span.num_chunks();
  const int max_chunks = divide_up(num_chunks, num_threads * kTasksOfThread);
  partials_.resize(batch.rows().size() * shape.num_heads);
  for (const Span& span : spans) {
    const int total = span.num_rows * group();
    const int count = divide_up(total, num_queries);
    for (int kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head) {
      for (int i = 0; i < count; ++i) {
        add_unit({span.first_row, kv_head, total * i / count, total * (i + 1) / count}, max_chunks);
      }
    }
  }
}

int AttentionPlan::first_chunk(int row) const {
  const RowView& view = batch_.rows()[row].view;
  return shape_.window > 0 ? std::max(0, view.num_visible - shape_.window) / kChunk : 0;
}

int AttentionPlan::last_chunk(int row) const { return divide_up(batch_.rows()[row].view.num_visible, kChunk); }

AttentionPlan::Span AttentionPlan::span_of(int first_row, int last_row) const {
  Span span{first_row, last_row - first_row, first_chunk(first_row), last_chunk(first_row)};
  for (int row = first_row + 1; row < last_row; ++row) {
    span.first_chunk = std::min(span.first_chunk, first_chunk(row));
    span.last_chunk = std::max(span.last_chunk, last_chunk(row));
  }
  return span;
}

int AttentionPlan::num_units(const Span& span, int num_queries) const {
  return divide_up(span.num_rows * group(), num_queries) * shape_.num_kv_heads;
}

// More queries in a task share more, fewer keep more threads busy. Through a cached chunk two queries take no longer
// than one, and each further one half as long.
int AttentionPlan::choose_num_queries(const std::vector<Span>& spans, int num_threads) const {
  int best = 1;
  double best_time = 0;
  for (int num_queries = kTaskQueries; num_queries >= 1;
       num_queries = num_queries > 3 ? num_queries / 2 : num_queries - 1) {
    int num_tasks = 0;
    double work = 0;
    for (const Span& span : spans) {
      const int count = num_units(span, num_queries) * span.num_chunks();
      const double size =
          static_cast<double>(span.num_rows * group() * shape_.num_kv_heads) / num_units(span, num_queries);
      num_tasks += count;
      work += count * (1 + size);
    }
    const double time = divide_up(num_tasks, num_threads) * work / num_tasks;
    if (best_time == 0 || time < best_time) {
      best = num_queries;
      best_time = time;
    }
  }
  return best;
}

void AttentionPlan::add_unit(const AttentionQueries& queries, int max_chunks) {
  const Span span =
      span_of(queries.first_row + queries.first / group(), queries.first_row + (queries.last - 1) / group() + 1);
  const int num_tasks = divide_up(span.num_chunks(), max_chunks);
  const std::size_t stride = (queries.last - queries.first) * partial_size(shape_.head_dim);
  for (int i = 0; i < num_tasks; ++i) {
    const int first = span.first_chunk + span.num_chunks() * i / num_tasks;
    const int last = span.first_chunk + span.num_chunks() * (i + 1) / num_tasks;
    const std::size_t offset = partials_size_ + (first - span.first_chunk) * stride;
    tasks_.push_back({{queries, first, last, nullptr}, num_tasks == 1, offset});
  }
  if (num_tasks == 1) return;
  for (int i = queries.first; i < queries.last; ++i) {
    const int row = queries.first_row + i / group();
    const std::size_t index =
        (first_chunk(row) - span.first_chunk) * stride + (i - queries.first) * partial_size(shape_.head_dim);
    partials_[row * shape_.num_heads + queries.kv_head * group() + i % group()] = {partials_size_ + index, stride};
  }
  partials_size_ += span.num_chunks() * stride;
}

AttentionTask AttentionPlan::task(int index, float* partials) const {
  AttentionTask task = tasks_[index].task;
  if (!tasks_[index].is_whole) task.partials = partials + tasks_[index].offset;
  return task;
}

}  // namespace paceline

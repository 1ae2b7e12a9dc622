// The phases of a forward, in the order that `Decoder::run` calls them.
#include <algorithm>
#include <cmath>

#include "model/decoder.hpp"

namespace paceline {
namespace {

constexpr std::size_t kPrefetchBytes = 1 << 10;  // of each of a product's streams
constexpr int kGateColumns = 256;                // columns of a tile; whole groups

void add(float* x, const std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) x[i] += y[i];
}

}  // namespace

void Decoder::embed(Team& team, const Batch& batch) {
  const int width = config_.hidden_size;
  team.for_each(phase::kEmbed, static_cast<int>(batch.rows().size()), [&](int row) {
    float* x = x_.data() + static_cast<std::size_t>(row) * width;
    weights_.embedding().dequantize_row(batch.rows()[row].token, x);
    if (config_.embedding_scale != 1.0f) {
      for (int i = 0; i < width; ++i) x[i] *= config_.embedding_scale;
    }
    store_angles(batch.rows()[row], row);
  });
}

// Cosines and sines of the row's position, for every rope.
void Decoder::store_angles(const Row& row, std::size_t index) {
  const std::size_t num_ropes = config_.rope_frequencies.size();
  const std::size_t num_pairs = config_.rope_dim / 2;
  for (std::size_t rope = 0; rope < num_ropes; ++rope) {
    const std::size_t offset = (index * num_ropes + rope) * num_pairs;
    for (std::size_t i = 0; i < num_pairs; ++i) {
      const double angle = row.position * config_.rope_frequencies[rope][i];
      cosines_[offset + i] = static_cast<float>(std::cos(angle) * config_.rope_magnitudes[rope]);
      sines_[offset + i] = static_cast<float>(std::sin(angle) * config_.rope_magnitudes[rope]);
    }
  }
}

Decoder::Residual Decoder::projected(const std::vector<float>& post_norm) {
  return {projected_.data(), config_.has_post_norms ? post_norm.data() : nullptr};
}

void Decoder::normalize(Team& team, const Batch& batch, const Residual& residual, const std::vector<float>& weight) {
  const int width = config_.hidden_size;
  team.for_each(phase::kNorm, static_cast<int>(batch.rows().size()), [&](int row) {
    add_and_normalize(row, residual, weight, normed_.view.values + static_cast<std::size_t>(row) * width);
    kernels_.quantize(normed_.view, row, 0, width / kGroup * kGroup);
  });
}

// Adds a row of the residual to x_ and writes x_ normalised to `out`. The residual's own norm works in place: a row
// goes through it once.
void Decoder::add_and_normalize(std::size_t row, const Residual& residual, const std::vector<float>& weight,
                                float* out) {
  const int width = config_.hidden_size;
  const float epsilon = config_.rms_norm_eps;
  float* added = residual.values == nullptr ? nullptr : residual.values + row * width;
  if (residual.norm != nullptr) kernels_.rms_norm(added, nullptr, residual.norm, epsilon, width, added);
  kernels_.rms_norm(x_.data() + row * width, added, weight.data(), epsilon, width, out);
}

void Decoder::multiply(Team& team, phase::Kind kind, const Activations& inputs, int num_rows, const Parts& parts,
                       float* out, int stride) {
  const Tiling tiling(parts, num_rows, config_.num_threads);
  team.for_each(kind, tiling.num_tiles(), [&](int tile) {
    const auto [part, blocks] = tiling.at(tile);
    kernels_.multiply({part->matrix->view(), inputs, num_rows, part->matrix->rows(), out + part->offset,
                       static_cast<std::size_t>(stride)},
                      blocks);
  });
}

void Decoder::prefetch(const Team& team, int num_rows, const Parts& parts) const {
  const Tiling tiling(parts, num_rows, config_.num_threads);
  const auto [part, blocks] = tiling.at(team.first_tile(tiling.num_tiles()));
  const MatrixView& weights = part->matrix->view();
  const std::size_t size = std::min(kPrefetchBytes, weights.block_bytes);
  for (int stream = 0; stream < blocks.num_streams && blocks.first < blocks.last; ++stream) {
    const std::uint8_t* data = weights.data + (blocks.first + stream * blocks.stride) * weights.block_bytes;
    for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(data + line);
  }
}

Parts Decoder::qkv_parts(const LayerWeights& layer) const {
  const int q = config_.num_heads * config_.head_dim;
  return {{{{&layer.q, 0}, {&layer.k, q}, {&layer.v, q + config_.num_kv_heads * config_.head_dim}}}, 3};
}

Parts Decoder::gate_up_parts(const LayerWeights& layer) const {
  return {{{{&layer.gate, 0}, {&layer.up, config_.intermediate_size}}}, 2};
}

// What turns the projections of a row into queries, keys and values: biases, norms of heads, rotation.
void Decoder::finish_projections(float* heads, std::size_t row, int layer) {
  const LayerWeights& weights = weights_.layers()[layer];
  const int head_dim = config_.head_dim;
  float* keys = heads + config_.num_heads * head_dim;
  add(heads, weights.q_bias);
  add(keys, weights.k_bias);
  add(keys + config_.num_kv_heads * head_dim, weights.v_bias);
  const std::size_t angles =
      (row * config_.rope_frequencies.size() + config_.layer_ropes[layer]) * config_.rope_dim / 2;
  const auto rotate = config_.is_rope_split ? kernels_.rope_split : kernels_.rope;
  for (int h = 0; h < config_.num_heads + config_.num_kv_heads; ++h) {
    float* head = heads + h * head_dim;
    if (config_.has_qk_norm) {
      const std::vector<float>& norm = h < config_.num_heads ? weights.q_norm : weights.k_norm;
      kernels_.rms_norm(head, nullptr, norm.data(), config_.rms_norm_eps, head_dim, head);
    }
    rotate(head, cosines_.data() + angles, sines_.data() + angles, config_.rope_dim);
  }
}

void Decoder::store_keys_and_values(const Batch& batch, int row, int layer) {
  const Row& r = batch.rows()[row];
  const int head_dim = config_.head_dim;
  float* heads = qkv_.data() + static_cast<std::size_t>(row) * qkv_stride();
  finish_projections(heads, row, layer);
  if (!r.is_written) return;
  const LayerStore store = store_.layer(layer);
  std::uint16_t* page = store.base + r.view.pages[r.slot / kPageSize] * store.page_stride;
  for (int h = 0; h < config_.num_kv_heads; ++h) {
    const float* key = heads + (config_.num_heads + h) * head_dim;
    kernels_.store_kv(key, key + config_.num_kv_heads * head_dim, head_dim, page + h * store.head_stride,
                      r.slot % kPageSize);
  }
}

AttentionScratch Decoder::attention_scratch(int thread) {
  float* floats = attention_floats_[thread].data();
  float* partials = floats + kTileQueries * kChunk;
  return {floats, partials, partials + kTileQueries * partial_size(config_.head_dim), keys_[thread].data()};
}

void Decoder::attention(Team& team, const Forward& job, int layer) {
  const Batch& batch = job.batch;
  const int num_rows = static_cast<int>(batch.rows().size());
  team.for_each(phase::kStore, num_rows, [&](int row) { store_keys_and_values(batch, row, layer); });

  const auto window = std::find(windows_.begin(), windows_.end(), config_.layer_windows[layer]);
  const AttentionPlan& plan = job.plans[window - windows_.begin()];
  const LayerStore store = store_.layer(layer);
  const AttentionRows rows{batch.views().data(), qkv_.data(), static_cast<std::size_t>(qkv_stride()),
                           attended_.view.values, static_cast<std::size_t>(attended_.view.columns)};
  const AttentionScratch scratch = attention_scratch(team.thread());
  team.for_each(phase::kAttention, plan.num_tasks(), [&](int task) {
    kernels_.attend(plan.shape(), store, rows, plan.task(task, partials_.data()), scratch);
  });
  team.for_each(phase::kNorm, num_rows, [&](int row) {
    if (plan.has_partials()) merge(plan, batch, row);
    kernels_.quantize(attended_.view, row, 0, attended_.view.columns / kGroup * kGroup);
  });
}

// Puts together what the row's heads got from runs of chunks that were tasks of their own.
void Decoder::merge(const AttentionPlan& plan, const Batch& batch, int row) {
  float* out = attended_.view.values + static_cast<std::size_t>(row) * attended_.view.columns;
  for (int head = 0; head < config_.num_heads; ++head) {
    const AttentionPlan::Partials& partials = plan.partials_of(row, head);
    if (partials.stride == 0) continue;
    kernels_.merge(plan.shape(), batch.views()[row], partials_.data() + partials.offset, partials.stride,
                   out + head * config_.head_dim);
  }
}

void Decoder::feed_forward(Team& team, int num_rows, const LayerWeights& layer) {
  const int width = config_.intermediate_size;
  multiply(team, phase::kGateUp, normed_.view, num_rows, gate_up_parts(layer), gate_up_.data(), 2 * width);
  prefetch(team, num_rows, only(layer.down));
  const int tiles_of_row = (width + kGateColumns - 1) / kGateColumns;
  const auto activate = config_.is_gelu ? kernels_.geglu : kernels_.swiglu;
  team.for_each(phase::kGating, num_rows * tiles_of_row, [&](int tile) {
    const std::size_t row = tile / tiles_of_row;
    const int first = tile % tiles_of_row * kGateColumns;
    const int last = std::min(first + kGateColumns, width);
    const float* gate = gate_up_.data() + row * 2 * width;
    activate(gate + first, gate + width + first, last - first, gated_.view.values + row * width + first);
    kernels_.quantize(gated_.view, static_cast<int>(row), first, last / kGroup * kGroup);
  });
  multiply(team, phase::kDown, gated_.view, num_rows, only(layer.down), projected_.data(), config_.hidden_size);
}

void Decoder::keep_hidden(Team& team, const Batch& batch, const Residual& residual, std::size_t index,
                          std::size_t num_layers) {
  const std::size_t width = config_.hidden_size;
  team.for_each(phase::kHidden, static_cast<int>(batch.hidden_rows().size()), [&](int i) {
    const std::size_t row = batch.hidden_rows()[i];
    const float* x = x_.data() + row * width;
    float* added = residual.values == nullptr ? nullptr : residual.values + row * width;
    float* out = hidden_->data() + (i * num_layers + index) * width;
    if (residual.norm != nullptr) {  // not in place: the next phase does that
      kernels_.rms_norm(added, nullptr, residual.norm, config_.rms_norm_eps, config_.hidden_size, out);
      added = out;
    }
    for (std::size_t k = 0; k < width; ++k) out[k] = added == nullptr ? x[k] : x[k] + added[k];
  });
}

void Decoder::head_logits(Team& team, const Batch& batch, const Residual& residual) {
  const int width = config_.hidden_size;
  const int num_rows = static_cast<int>(batch.logits_rows().size());
  if (num_rows > 0) prefetch(team, num_rows, only(weights_.head()));
  team.for_each(phase::kNorm, num_rows, [&](int i) {
    add_and_normalize(batch.logits_rows()[i], residual, weights_.output_norm(),
                      last_.view.values + static_cast<std::size_t>(i) * width);
    kernels_.quantize(last_.view, i, 0, width / kGroup * kGroup);
    float* logits = logits_.data() + static_cast<std::size_t>(i) * padded_vocab_size();
    std::fill(logits + config_.vocab_size, logits + padded_vocab_size(), 0.0f);  // no product writes them
  });
  if (num_rows > 0)
    multiply(team, phase::kHead, last_.view, num_rows, only(weights_.head()), logits_.data(), padded_vocab_size());
}

}  // namespace paceline

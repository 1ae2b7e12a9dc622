#include "model/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/probe.hpp"
#include "support/check.hpp"
#include "support/cpu.hpp"
#include "support/exclusive.hpp"

namespace paceline {
namespace {

constexpr std::size_t kPrefetchBytes = 4 << 10;  // of a product's first weights
constexpr int kSwigluColumns = 256;              // columns of a tile; whole groups

const Kernels& select_kernels(bool is_portable) {
  return !is_portable && kAvx2Kernels != nullptr && has_avx2() ? *kAvx2Kernels : kPortableKernels;
}

void check_config(const DecoderConfig& c) {
  require(c.num_layers > 0 && c.hidden_size > 0 && c.intermediate_size > 0 && c.vocab_size > 0,
          "a model dimension is 0");
  require(c.head_dim > 0 && c.head_dim % 8 == 0, "the head dimension must be a multiple of 8");
  require(c.num_kv_heads > 0 && c.num_heads % c.num_kv_heads == 0, "query heads must be a multiple of key/value heads");
  require(c.intermediate_size % 8 == 0, "the intermediate size must be a multiple of 8");
  require(c.rope_dim > 0 && c.rope_dim % 2 == 0 && c.rope_dim <= c.head_dim,
          "the rotated dimension must be even and fit a head");
  require(c.max_length > 0 && c.max_rows > 0 && c.max_logits_rows > 0, "a capacity is 0");
}

// How many of the `group` query heads that share keys a task takes. More share their reading, fewer keep more threads
// busy: a head costs about 0.4 of the first one's time when it comes along.
int heads_of_task(int num_groups, int group, int num_threads) {
  int best = 1;
  double best_time = 0;
  for (int heads = 1; heads <= std::min(group, kMaxHeads); ++heads) {
    const int num_tasks = num_groups * ((group + heads - 1) / heads);
    const double time = (num_tasks + num_threads - 1) / num_threads * (0.6 + 0.4 * heads);
    if (heads == 1 || time < best_time) {
      best = heads;
      best_time = time;
    }
  }
  return best;
}

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Decoder::ActivationBuffer::ActivationBuffer(int rows, int columns) {
  const std::size_t groups = static_cast<std::size_t>(round_up(rows, kMaxRows)) * (columns / kGroup);
  values = AlignedBuffer<float>(static_cast<std::size_t>(rows) * columns);
  quantized = AlignedBuffer<QuantizedGroup>(groups);
  split = AlignedBuffer<SplitGroup>(groups);
  view = {columns, values.data(), quantized.data(), split.data()};
}

Decoder::Decoder(const DecoderConfig& c)
    : config_((check_config(c), c)),
      kernels_(select_kernels(c.is_portable)),
      store_(c.num_pages, c.num_layers, c.num_kv_heads, c.head_dim),
      weights_(c),
      normed_(c.max_rows, c.hidden_size),
      attended_(c.max_rows, c.num_heads * c.head_dim),
      gated_(c.max_rows, c.intermediate_size),
      last_(c.max_logits_rows, c.hidden_size),
      pool_(c.num_threads) {
  const std::size_t rows = c.max_rows;
  x_ = AlignedBuffer<float>(rows * c.hidden_size);
  qkv_ = AlignedBuffer<float>(rows * qkv_stride());
  projected_ = AlignedBuffer<float>(rows * round_up(c.hidden_size, kBlockRows));
  gate_up_ = AlignedBuffer<float>(rows * 2 * c.intermediate_size);
  logits_ = AlignedBuffer<float>(static_cast<std::size_t>(c.max_logits_rows) * round_up(c.vocab_size, kBlockRows));
  for (int i = 0; i < c.num_threads; ++i) {
    scores_.emplace_back(std::size_t{kMaxHeads} * round_up(c.max_length, kPageSize));
    keys_.emplace_back(std::size_t{kPageSize} * c.head_dim);
  }
  cosines_ = AlignedBuffer<float>(rows * (c.rope_dim / 2));
  sines_ = AlignedBuffer<float>(rows * (c.rope_dim / 2));
}

int Decoder::qkv_stride() const { return (config_.num_heads + 2 * config_.num_kv_heads) * config_.head_dim; }

void Decoder::load_matrix(const std::string& role, int layer, WeightType type, int rows, int columns,
                          const std::uint8_t* source, std::size_t source_bytes) {
  const Exclusive exclusive(is_in_use_);
  weights_.load_matrix(role, layer, type, rows, columns, source, source_bytes, pool_);
}

void Decoder::load_vector(const std::string& role, int layer, const float* source, std::size_t count) {
  const Exclusive exclusive(is_in_use_);
  weights_.load_vector(role, layer, source, count);
}

void Decoder::copy_slots(const std::vector<int>& pages, const std::vector<std::pair<int, int>>& moves) {
  const Exclusive exclusive(is_in_use_);
  store_.copy_slots(pages, moves);
}

void Decoder::copy_page(int source, int destination) {
  const Exclusive exclusive(is_in_use_);
  store_.copy_page(source, destination);
}

void Decoder::fill_pages(const std::vector<int>& pages) {
  const Exclusive exclusive(is_in_use_);
  store_.fill(pages);
}

void Decoder::poison_pages(const std::vector<int>& pages) {
  const Exclusive exclusive(is_in_use_);
  store_.poison(pages);
}

double Decoder::read_bandwidth(std::size_t bytes, int repeats) {
  const Exclusive exclusive(is_in_use_);
  return paceline::read_bandwidth(pool_, kernels_, bytes, repeats);
}

void Decoder::forward(const std::vector<Segment>& segments, const std::vector<int>& hidden_layers) {
  const Exclusive exclusive(is_in_use_);
  require(weights_.is_complete(), "the model's weights are not loaded");
  const auto job = std::make_shared<const Forward>(Forward{
      Batch(segments,
            {config_.max_rows, config_.max_logits_rows, config_.max_length, padded_vocab_size(), store_.num_pages()}),
      hidden_layers});
  for (const int layer : hidden_layers) {
    require(layer >= 0 && layer <= config_.num_layers,
            "hidden layer " + std::to_string(layer) + " is not in the model");
  }
  num_logits_rows_ = static_cast<int>(job->batch.logits_rows().size());
  num_hidden_rows_ = static_cast<int>(job->batch.hidden_rows().size());
  const std::size_t hidden_size = job->batch.hidden_rows().size() * hidden_layers.size() * config_.hidden_size;
  if (hidden_size > hidden_->size()) hidden_ = std::make_shared<AlignedBuffer<float>>(hidden_size);
  if (job->batch.rows().empty()) return;
  constexpr std::size_t kPhasesOfLayer = 10;
  const std::size_t num_phases = kPhasesOfLayer * config_.num_layers + hidden_layers.size() + 3;
  pool_.run([this, job](Team& team) { run(team, job->batch, job->hidden_layers); }, num_phases);
}

void Decoder::run(Team& team, const Batch& batch, const std::vector<int>& hidden_layers) {
  const int num_rows = static_cast<int>(batch.rows().size());
  embed(team, batch);
  const float* residual = nullptr;  // what is still to be added to x_
  for (int i = 0; i <= config_.num_layers; ++i) {
    for (std::size_t h = 0; h < hidden_layers.size(); ++h) {
      if (hidden_layers[h] == i) keep_hidden(team, batch, residual, h, hidden_layers.size());
    }
    if (i == config_.num_layers) break;
    const LayerWeights& layer = weights_.layers()[i];
    prefetch(team, qkv_parts(layer));
    normalize(team, batch, residual, layer.attn_norm);
    multiply(team, normed_.view, num_rows, qkv_parts(layer), qkv_.data(), qkv_stride());
    prefetch(team, only(layer.o));
    attention(team, batch, i);
    multiply(team, attended_.view, num_rows, only(layer.o), projected_.data(), layer.o.padded_rows());
    prefetch(team, gate_up_parts(layer));
    normalize(team, batch, projected_.data(), layer.ffn_norm);
    feed_forward(team, num_rows, layer);
    residual = projected_.data();
  }
  head_logits(team, batch);
}

void Decoder::embed(Team& team, const Batch& batch) {
  const std::size_t num_pairs = config_.rope_dim / 2;
  team.for_each(static_cast<int>(batch.rows().size()), [&](int row) {
    const Row& r = batch.rows()[row];
    weights_.embedding().dequantize_row(r.token, x_.data() + static_cast<std::size_t>(row) * config_.hidden_size);
    for (std::size_t i = 0; i < num_pairs; ++i) {
      const double angle = r.position * config_.rope_frequencies[0][i];
      cosines_[row * num_pairs + i] = static_cast<float>(std::cos(angle));
      sines_[row * num_pairs + i] = static_cast<float>(std::sin(angle));
    }
  });
}

void Decoder::normalize(Team& team, const Batch& batch, const float* residual, const std::vector<float>& weight) {
  const int width = config_.hidden_size;
  const std::size_t stride = round_up(width, kBlockRows);
  team.for_each(static_cast<int>(batch.rows().size()), [&](int row) {
    const std::size_t r = row;
    kernels_.rms_norm(x_.data() + r * width, residual == nullptr ? nullptr : residual + r * stride, weight.data(),
                      config_.rms_norm_eps, width, normed_.view.values + r * width);
    kernels_.quantize(normed_.view, row, 0, width / kGroup * kGroup);
  });
}

void Decoder::multiply(Team& team, const Activations& inputs, int num_rows, const Parts& parts, float* out,
                       int stride) {
  const Tiling tiling(parts);
  team.for_each(tiling.num_tiles(), [&](int tile) {
    const auto [part, first, last] = tiling.at(tile);
    const Product product{part->matrix->view(), inputs, num_rows, out + part->offset, static_cast<std::size_t>(stride)};
    kernels_.multiply(product, first, last);
  });
}

void Decoder::prefetch(const Team& team, const Parts& parts) const {
  const Tiling tiling(parts);
  const auto [part, first, last] = tiling.at(team.first_tile(tiling.num_tiles()));
  const MatrixView& weights = part->matrix->view();
  const std::size_t size = std::min(kPrefetchBytes, (last - first) * weights.block_bytes);
  const std::uint8_t* data = weights.data + first * weights.block_bytes;
  for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(data + line);
}

Parts Decoder::qkv_parts(const LayerWeights& layer) const {
  const int q = config_.num_heads * config_.head_dim;
  return {{{{&layer.q, 0}, {&layer.k, q}, {&layer.v, q + config_.num_kv_heads * config_.head_dim}}}, 3};
}

Parts Decoder::gate_up_parts(const LayerWeights& layer) const {
  return {{{{&layer.gate, 0}, {&layer.up, config_.intermediate_size}}}, 2};
}

void Decoder::store_keys_and_values(const Batch& batch, int row, int layer) {
  const Row& r = batch.rows()[row];
  const int head_dim = config_.head_dim;
  const std::size_t angles = static_cast<std::size_t>(row) * (config_.rope_dim / 2);
  float* heads = qkv_.data() + static_cast<std::size_t>(row) * qkv_stride();
  for (int h = 0; h < config_.num_heads + config_.num_kv_heads; ++h) {
    kernels_.rope(heads + h * head_dim, cosines_.data() + angles, sines_.data() + angles, config_.rope_dim);
  }
  if (!r.is_written) return;
  const LayerStore store = store_.layer(layer);
  std::uint16_t* page = store.base + r.view.pages[r.slot / kPageSize] * store.page_stride;
  for (int h = 0; h < config_.num_kv_heads; ++h) {
    const float* key = heads + (config_.num_heads + h) * head_dim;
    kernels_.store_kv(key, key + config_.num_kv_heads * head_dim, head_dim, page + h * store.head_stride,
                      r.slot % kPageSize);
  }
}

void Decoder::attention(Team& team, const Batch& batch, int layer) {
  const int num_rows = static_cast<int>(batch.rows().size());
  team.for_each(num_rows, [&](int row) { store_keys_and_values(batch, row, layer); });

  const AttentionShape shape{config_.head_dim, config_.num_heads, config_.num_kv_heads, config_.attention_scale};
  const int group = config_.num_heads / config_.num_kv_heads;
  const int heads = heads_of_task(num_rows * config_.num_kv_heads, group, config_.num_threads);
  const int tasks_of_group = (group + heads - 1) / heads;
  const int tasks_of_row = config_.num_kv_heads * tasks_of_group;
  const AttentionScratch scratch{scores_[team.thread()].data(),
                                 static_cast<std::size_t>(round_up(config_.max_length, kPageSize)),
                                 keys_[team.thread()].data()};
  team.for_each(num_rows * tasks_of_row, [&](int task) {
    const std::size_t row = task / tasks_of_row;
    const int kv_head = task % tasks_of_row / tasks_of_group;
    const int first = kv_head * group + task % tasks_of_group * heads;
    const int last = std::min(first + heads, (kv_head + 1) * group);
    kernels_.attend(shape, store_.layer(layer), batch.rows()[row].view, scratch, qkv_.data() + row * qkv_stride(),
                    first, last, kv_head, attended_.view.values + row * attended_.view.columns);
  });
  team.for_each(num_rows,
                [&](int row) { kernels_.quantize(attended_.view, row, 0, attended_.view.columns / kGroup * kGroup); });
}

void Decoder::feed_forward(Team& team, int num_rows, const LayerWeights& layer) {
  const int width = config_.intermediate_size;
  multiply(team, normed_.view, num_rows, gate_up_parts(layer), gate_up_.data(), 2 * width);
  prefetch(team, only(layer.down));
  const int tiles_of_row = (width + kSwigluColumns - 1) / kSwigluColumns;
  team.for_each(num_rows * tiles_of_row, [&](int tile) {
    const std::size_t row = tile / tiles_of_row;
    const int first = tile % tiles_of_row * kSwigluColumns;
    const int last = std::min(first + kSwigluColumns, width);
    const float* gate = gate_up_.data() + row * 2 * width;
    kernels_.swiglu(gate + first, gate + width + first, last - first, gated_.view.values + row * width + first);
    kernels_.quantize(gated_.view, static_cast<int>(row), first, last / kGroup * kGroup);
  });
  multiply(team, gated_.view, num_rows, only(layer.down), projected_.data(), layer.down.padded_rows());
}

void Decoder::keep_hidden(Team& team, const Batch& batch, const float* residual, std::size_t index,
                          std::size_t num_layers) {
  const std::size_t width = config_.hidden_size;
  const std::size_t stride = round_up(config_.hidden_size, kBlockRows);
  team.for_each(static_cast<int>(batch.hidden_rows().size()), [&](int i) {
    const std::size_t row = batch.hidden_rows()[i];
    float* out = hidden_->data() + (i * num_layers + index) * width;
    for (std::size_t k = 0; k < width; ++k) {
      out[k] = residual == nullptr ? x_[row * width + k] : x_[row * width + k] + residual[row * stride + k];
    }
  });
}

void Decoder::head_logits(Team& team, const Batch& batch) {
  const int width = config_.hidden_size;
  const std::size_t stride = round_up(width, kBlockRows);
  const int num_rows = static_cast<int>(batch.logits_rows().size());
  if (num_rows > 0) prefetch(team, only(weights_.head()));
  team.for_each(num_rows, [&](int i) {
    const std::size_t row = batch.logits_rows()[i];
    kernels_.rms_norm(x_.data() + row * width, projected_.data() + row * stride, weights_.output_norm().data(),
                      config_.rms_norm_eps, width, last_.view.values + static_cast<std::size_t>(i) * width);
    kernels_.quantize(last_.view, i, 0, width / kGroup * kGroup);
  });
  if (num_rows > 0) multiply(team, last_.view, num_rows, only(weights_.head()), logits_.data(), padded_vocab_size());
}

}  // namespace paceline

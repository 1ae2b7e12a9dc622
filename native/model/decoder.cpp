#include "model/decoder.hpp"

#include <algorithm>

#include "isa/select.hpp"
#include "model/probe.hpp"
#include "support/check.hpp"
#include "support/exclusive.hpp"

namespace paceline {
namespace {

void check_config(const DecoderConfig& c) {
  require(c.num_layers > 0 && c.hidden_size > 0 && c.intermediate_size > 0 && c.vocab_size > 0,
          "a model dimension is 0");
  require(c.head_dim > 0 && c.head_dim % 8 == 0, "the head dimension must be a multiple of 8");
  require(c.num_kv_heads > 0 && c.num_heads % c.num_kv_heads == 0, "query heads must be a multiple of key/value heads");
  require(c.intermediate_size % 8 == 0, "the intermediate size must be a multiple of 8");
  require(c.rope_dim > 0 && c.rope_dim % 2 == 0 && c.rope_dim <= c.head_dim,
          "the rotated dimension must be even and fit a head");
  const std::size_t num_ropes = c.rope_frequencies.size();
  require(num_ropes > 0 && c.rope_magnitudes.size() == num_ropes, "each rope needs frequencies and a magnitude");
  for (const auto& frequencies : c.rope_frequencies) {
    require(frequencies.size() == static_cast<std::size_t>(c.rope_dim / 2), "a rope needs a frequency for each pair");
  }
  const std::size_t num_layers = c.num_layers;
  require(c.layer_ropes.size() == num_layers && c.layer_windows.size() == num_layers,
          "each layer needs a rope and a window");
  for (const int rope : c.layer_ropes) {
    require(rope >= 0 && static_cast<std::size_t>(rope) < num_ropes, "a layer names a rope that is not there");
  }
  for (const int window : c.layer_windows) require(window >= 0, "a window is negative");
  require(c.max_length > 0 && c.max_rows > 0 && c.max_logits_rows > 0, "a capacity is 0");
}

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
      kernels_(find_kernels(c.isa)),
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
  projected_ = AlignedBuffer<float>(rows * c.hidden_size);
  gate_up_ = AlignedBuffer<float>(rows * 2 * c.intermediate_size);
  logits_ = AlignedBuffer<float>(static_cast<std::size_t>(c.max_logits_rows) * padded_vocab_size());
  for (int i = 0; i < c.num_threads; ++i) {
    attention_floats_.emplace_back(kTileQueries * (kChunk + partial_size(c.head_dim)) + 2 * kTaskQueries);
    keys_.emplace_back(std::size_t{kPageSize} * c.head_dim);
  }
  for (const int window : c.layer_windows) {
    if (std::find(windows_.begin(), windows_.end(), window) == windows_.end()) windows_.push_back(window);
  }
  cosines_ = AlignedBuffer<float>(rows * c.rope_frequencies.size() * (c.rope_dim / 2));
  sines_ = AlignedBuffer<float>(rows * c.rope_frequencies.size() * (c.rope_dim / 2));
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

double Decoder::code_rate(int repeats) {
  const Exclusive exclusive(is_in_use_);
  return paceline::code_rate(pool_, kernels_, repeats);
}

double Decoder::float_rate(int repeats) {
  const Exclusive exclusive(is_in_use_);
  return paceline::float_rate(pool_, kernels_, repeats);
}

void Decoder::for_each(int num_tiles, const std::function<void(int tile)>& f) {
  const Exclusive exclusive(is_in_use_);
  pool_.for_each(num_tiles, f);
}

void Decoder::start_trace() {
  const Exclusive exclusive(is_in_use_);
  tracer_.start(config_.num_layers);
}

void Decoder::stop_trace() {
  const Exclusive exclusive(is_in_use_);
  tracer_.stop();
}

ForwardTrace Decoder::trace() {
  const Exclusive exclusive(is_in_use_);
  return tracer_.sums();
}

void Decoder::forward(const std::vector<Segment>& segments, const std::vector<int>& hidden_layers) {
  const Exclusive exclusive(is_in_use_);
  require(weights_.is_complete(), "the model's weights are not loaded");
  const Tracer::Run traced = tracer_.begin(config_.num_threads);
  const auto job =
      std::make_shared<Forward>(Forward{Batch(segments, {config_.max_rows, config_.max_logits_rows, config_.max_length,
                                                         padded_vocab_size(), store_.num_pages()}),
                                        hidden_layers,
                                        {}});
  for (const int layer : hidden_layers) {
    require(layer >= 0 && layer <= config_.num_layers,
            "hidden layer " + std::to_string(layer) + " is not in the model");
  }
  num_logits_rows_ = static_cast<int>(job->batch.logits_rows().size());
  num_hidden_rows_ = static_cast<int>(job->batch.hidden_rows().size());
  const std::size_t hidden_size = job->batch.hidden_rows().size() * hidden_layers.size() * config_.hidden_size;
  if (hidden_size > hidden_->size()) hidden_ = std::make_shared<AlignedBuffer<float>>(hidden_size);
  if (job->batch.rows().empty()) return;
  plan_attention(*job);
  constexpr std::size_t kPhasesOfLayer = 10;
  const std::size_t num_phases = kPhasesOfLayer * config_.num_layers + hidden_layers.size() + 3;
  pool_.run([this, job](Team& team) { run(team, *job); }, num_phases, traced.job);
  tracer_.end(traced);
}

void Decoder::plan_attention(Forward& job) {
  std::size_t size = 0;
  for (const int window : windows_) {
    const AttentionShape shape{config_.head_dim, config_.num_heads, config_.num_kv_heads, config_.attention_scale,
                               window};
    job.plans.emplace_back(job.batch, shape, config_.num_threads);
    size = std::max(size, job.plans.back().partials_size());
  }
  if (size > partials_.size()) partials_ = AlignedBuffer<float>(size);
}

void Decoder::run(Team& team, const Forward& job) {
  const Batch& batch = job.batch;
  const std::vector<int>& hidden_layers = job.hidden_layers;
  const int num_rows = static_cast<int>(batch.rows().size());
  embed(team, batch);
  Residual residual;
  for (int i = 0; i <= config_.num_layers; ++i) {
    for (std::size_t h = 0; h < hidden_layers.size(); ++h) {
      if (hidden_layers[h] == i) keep_hidden(team, batch, residual, h, hidden_layers.size());
    }
    if (i == config_.num_layers) break;
    const LayerWeights& layer = weights_.layers()[i];
    team.set_first_label(phase::first_label(i + 1));
    prefetch(team, num_rows, qkv_parts(layer));
    normalize(team, batch, residual, layer.attn_norm);
    multiply(team, phase::kQkv, normed_.view, num_rows, qkv_parts(layer), qkv_.data(), qkv_stride());
    prefetch(team, num_rows, only(layer.o));
    attention(team, job, i);
    multiply(team, phase::kOutput, attended_.view, num_rows, only(layer.o), projected_.data(), config_.hidden_size);
    prefetch(team, num_rows, gate_up_parts(layer));
    normalize(team, batch, projected(layer.post_attn_norm), layer.ffn_norm);
    feed_forward(team, num_rows, layer);
    residual = projected(layer.post_ffn_norm);
  }
  team.set_first_label(phase::first_label(0));
  head_logits(team, batch, residual);
}

}  // namespace paceline

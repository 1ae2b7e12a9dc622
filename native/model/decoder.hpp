// The decoder: one forward over a batch of rows, on a team of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "model/attention_plan.hpp"
#include "model/batch.hpp"
#include "model/config.hpp"
#include "model/decoder_weights.hpp"
#include "model/forward_trace.hpp"
#include "model/paged_store.hpp"
#include "model/tiling.hpp"
#include "support/aligned.hpp"
#include "support/thread_pool.hpp"

namespace paceline {

class Decoder {
 public:
  explicit Decoder(const DecoderConfig& config);

  // See DecoderWeights. No forward runs before check_complete has passed.
  void load_matrix(const std::string& role, int layer, WeightType type, int rows, int columns,
                   const std::uint8_t* source, std::size_t source_bytes);
  void load_vector(const std::string& role, int layer, const float* source, std::size_t count);
  void check_complete() { weights_.check_complete(); }

  // Runs the batch. Logits and hidden states stay valid until the next call.
  void forward(const std::vector<Segment>& segments, const std::vector<int>& hidden_layers);
  const float* logits() const { return logits_.data(); }
  // Shared with the views that Python holds: a later forward that needs more gets memory of its own.
  const std::shared_ptr<AlignedBuffer<float>>& hidden() const { return hidden_; }
  int num_logits_rows() const { return num_logits_rows_; }
  int num_hidden_rows() const { return num_hidden_rows_; }

  const DecoderConfig& config() const { return config_; }
  int padded_vocab_size() const { return round_up(config_.vocab_size, kBlockRows); }
  const char* isa() const { return kernels_.name; }
  void copy_slots(const std::vector<int>& pages, const std::vector<std::pair<int, int>>& moves);
  void copy_page(int source, int destination);
  void fill_pages(const std::vector<int>& pages);
  void poison_pages(const std::vector<int>& pages);
  std::size_t store_bytes() const { return store_.bytes(); }
  double read_bandwidth(std::size_t bytes, int repeats);
  double code_rate(int repeats);
  double float_rate(int repeats);
  // Runs f(tile) for each of [0, num_tiles) on the threads that forwards run on; f must not throw.
  void for_each(int num_tiles, const std::function<void(int tile)>& f);
  void start_trace();
  void stop_trace();
  ForwardTrace trace();
  std::size_t weight_bytes() const { return weights_.bytes(); }

 private:
  // What a forward's phases are decided by. Held by the job itself: a thread may come back to it late
  // (thread_pool.hpp).
  struct Forward {
    Batch batch;
    std::vector<int> hidden_layers;
    std::vector<AttentionPlan> plans;  // one for each of windows_
  };

  // What is still to be added to x_: rows of projected_, through an RMSNorm first where `norm` is given. Nothing where
  // `values` is null.
  struct Residual {
    float* values = nullptr;
    const float* norm = nullptr;
  };

  int qkv_stride() const;
  Residual projected(const std::vector<float>& post_norm);

  void plan_attention(Forward& job);
  void run(Team& team, const Forward& job);
  void embed(Team& team, const Batch& batch);
  void store_angles(const Row& row, std::size_t index);
  void normalize(Team& team, const Batch& batch, const Residual& residual, const std::vector<float>& weight);
  void add_and_normalize(std::size_t row, const Residual& residual, const std::vector<float>& weight, float* out);
  void multiply(Team& team, phase::Kind kind, const Activations& inputs, int num_rows, const Parts& parts, float* out,
                int stride);
  // Asks for the weights that the next product begins with on this thread, while other work is still to be done.
  void prefetch(const Team& team, int num_rows, const Parts& parts) const;
  Parts qkv_parts(const LayerWeights& layer) const;
  Parts gate_up_parts(const LayerWeights& layer) const;
  void attention(Team& team, const Forward& job, int layer);
  AttentionScratch attention_scratch(int thread);
  void merge(const AttentionPlan& plan, const Batch& batch, int row);
  void finish_projections(float* heads, std::size_t row, int layer);
  void store_keys_and_values(const Batch& batch, int row, int layer);
  void feed_forward(Team& team, int num_rows, const LayerWeights& layer);
  void keep_hidden(Team& team, const Batch& batch, const Residual& residual, std::size_t index, std::size_t num_layers);
  void head_logits(Team& team, const Batch& batch, const Residual& residual);

  DecoderConfig config_;
  const Kernels& kernels_;
  PagedStore store_;
  DecoderWeights weights_;

  // Rows of activations, each quantised beside its float32 values.
  struct ActivationBuffer {
    ActivationBuffer(int rows, int columns);
    AlignedBuffer<float> values;
    AlignedBuffer<QuantizedGroup> quantized;
    AlignedBuffer<SplitGroup> split;
    Activations view;
  };
  ActivationBuffer normed_, attended_, gated_, last_;
  AlignedBuffer<float> x_, qkv_, projected_, gate_up_, logits_;
  AlignedBuffer<float> cosines_, sines_;  // of the batch's rows, [rows][ropes][rope_dim / 2]
  std::shared_ptr<AlignedBuffer<float>> hidden_ = std::make_shared<AlignedBuffer<float>>();
  std::vector<int> windows_;                            // of the layers, each once
  AlignedBuffer<float> partials_;                       // of the layer that is at its attention
  std::vector<AlignedBuffer<float>> attention_floats_;  // by thread
  std::vector<AlignedBuffer<std::uint16_t>> keys_;      // by thread
  std::atomic<bool> is_in_use_{false};
  int num_logits_rows_ = 0;
  int num_hidden_rows_ = 0;
  Tracer tracer_;
  ThreadPool pool_;  // last, so that its threads end before anything that they may look at
};

}  // namespace paceline

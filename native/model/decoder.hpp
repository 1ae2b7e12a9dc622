// The decoder of the Llama family: one forward over a batch of rows, on a team of threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "model/batch.hpp"
#include "model/paged_store.hpp"
#include "support/aligned.hpp"
#include "support/arena.hpp"
#include "support/thread_pool.hpp"
#include "weights/matrix.hpp"

namespace paceline {

struct DecoderConfig {
  int num_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int rope_dim = 0;
  double rope_theta = 0;
  float rms_norm_eps = 0;
  int max_length = 0;
  int max_rows = 0;
  int max_logits_rows = 0;
  int num_pages = 0;
  int num_threads = 1;
  bool is_portable = false;  // use the portable kernels even where faster ones would run
};

class Decoder {
 public:
  explicit Decoder(const DecoderConfig& config);

  // Loads one tensor by role: matrices q, k, v, o, gate, up, down of a layer; embedding, head (layer -1). A model whose
  // head is tied loads no head.
  void load_matrix(const std::string& role, int layer, WeightType type, int rows, int columns, const std::uint8_t* source,
                   std::size_t source_bytes);
  // Vectors attn_norm, ffn_norm of a layer; output_norm (layer -1).
  void load_vector(const std::string& role, int layer, const float* source, std::size_t count);
  // Throws unless every tensor is there. No forward runs before it has passed.
  void check_complete();

  // Runs the batch. Logits and hidden states stay valid until the next call.
  void forward(const std::vector<Segment>& segments, const std::vector<int>& hidden_layers);
  const float* logits() const { return logits_.data(); }
  // Shared with the views that Python holds: a later forward that needs more gets memory of its own.
  const std::shared_ptr<AlignedBuffer<float>>& hidden() const { return hidden_; }
  int num_logits_rows() const { return num_logits_rows_; }
  int num_hidden_rows() const { return num_hidden_rows_; }

  const DecoderConfig& config() const { return config_; }
  int padded_vocab_size() const { return head().padded_rows(); }
  const char* isa() const { return kernels_.name; }
  void copy_slots(const std::vector<int>& pages, const std::vector<std::pair<int, int>>& moves);
  void copy_page(int source, int destination);
  void fill_pages(const std::vector<int>& pages);
  void poison_pages(const std::vector<int>& pages);
  std::size_t store_bytes() const { return store_.bytes(); }
  double read_bandwidth(std::size_t bytes, int repeats);
  std::size_t weight_bytes() const;  // packed, what one decode step reads

 private:
  struct Layer {
    Matrix q, k, v, o, gate, up, down;
    std::vector<float> attn_norm, ffn_norm;
  };
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

  class Tiling;

  // What a forward's phases are decided by. Held by the job itself: a thread may come back to it late (thread_pool.hpp).
  struct Forward {
    Batch batch;
    std::vector<int> hidden_layers;
  };

  const Matrix& head() const { return head_.is_empty() ? embedding_ : head_; }
  Matrix& matrix(const std::string& role, int layer);
  std::vector<float>& vector(const std::string& role, int layer);
  void check_matrix(const std::string& role, int rows, int columns) const;
  int qkv_stride() const;

  void run(Team& team, const Batch& batch, const std::vector<int>& hidden_layers);
  void embed(Team& team, const Batch& batch);
  void normalize(Team& team, const Batch& batch, const float* residual, const std::vector<float>& weight);
  void multiply(Team& team, const Activations& inputs, int num_rows, const Parts& parts, float* out,
                int stride);
  // Asks for the weights that the next product begins with on this thread, while other work is still to be done.
  void prefetch(const Team& team, const Parts& parts) const;
  static Parts only(const Matrix& matrix) { return {{Part{&matrix, 0}}, 1}; }
  Parts qkv_parts(const Layer& layer) const;
  Parts gate_up_parts(const Layer& layer) const;
  void attention(Team& team, const Batch& batch, int layer);
  void store_keys_and_values(const Batch& batch, int row, int layer);
  void feed_forward(Team& team, int num_rows, const Layer& layer);
  void keep_hidden(Team& team, const Batch& batch, const float* residual, std::size_t index, std::size_t num_layers);
  void head_logits(Team& team, const Batch& batch);

  DecoderConfig config_;
  const Kernels& kernels_;
  PagedStore store_;
  Arena arena_;
  std::vector<Layer> layers_;
  Matrix embedding_, head_;
  std::vector<float> output_norm_;
  std::vector<double> frequencies_;  // radians a position, [rope_dim / 2]

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
  AlignedBuffer<float> cosines_, sines_;  // of the batch's rows, [rows][rope_dim / 2]
  std::shared_ptr<AlignedBuffer<float>> hidden_ = std::make_shared<AlignedBuffer<float>>();
  std::vector<AlignedBuffer<float>> scores_;         // by thread
  std::vector<AlignedBuffer<std::uint16_t>> keys_;   // by thread
  bool is_complete_ = false;
  std::atomic<bool> is_in_use_{false};
  int num_logits_rows_ = 0;
  int num_hidden_rows_ = 0;
  ThreadPool pool_;  // last, so that its threads end before anything that they may look at
};

}  // namespace paceline

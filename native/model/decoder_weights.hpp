// The weights of a decoder: loaded one tensor at a time, then only read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "support/arena.hpp"
#include "support/thread_pool.hpp"
#include "weights/matrix.hpp"

namespace paceline {

struct LayerWeights {
  Matrix q, k, v, o, gate, up, down;
  std::vector<float> attn_norm, ffn_norm;
  std::vector<float> q_bias, k_bias, v_bias;  // these and the following are empty where the model has none
  std::vector<float> q_norm, k_norm;          // of one head
  std::vector<float> post_attn_norm, post_ffn_norm;
};

class DecoderWeights {
 public:
  explicit DecoderWeights(const DecoderConfig& config);

  // Loads one tensor by role: matrices q, k, v, o, gate, up, down of a layer; embedding, head (layer -1). A model whose
  // head is tied loads no head. Throws once the weights are complete.
  void load_matrix(const std::string& role, int layer, WeightType type, int rows, int columns,
                   const std::uint8_t* source, std::size_t source_bytes, ThreadPool& pool);
  // Vectors of a layer by the names of LayerWeights, as far as the configuration has them; output_norm (layer -1).
  void load_vector(const std::string& role, int layer, const float* source, std::size_t count);
  // Throws unless every tensor is there.
  void check_complete();

  bool is_complete() const { return is_complete_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  const Matrix& embedding() const { return embedding_; }
  const Matrix& head() const { return head_.is_empty() ? embedding_ : head_; }
  const std::vector<float>& output_norm() const { return output_norm_; }
  std::size_t bytes() const;  // packed, what one decode step reads

 private:
  Matrix& matrix(const std::string& role, int layer);
  struct VectorSlot {
    const char* role;
    std::vector<float> LayerWeights::* vector;
    int size;
  };
  std::vector<VectorSlot> layer_vectors() const;
  void check_matrix(const std::string& role, int rows, int columns) const;

  DecoderConfig config_;
  Arena arena_;
  std::vector<LayerWeights> layers_;
  Matrix embedding_, head_;
  std::vector<float> output_norm_;
  bool is_complete_ = false;
};

}  // namespace paceline

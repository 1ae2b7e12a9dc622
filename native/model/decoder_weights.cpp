#include "model/decoder_weights.hpp"

#include <algorithm>

#include "support/check.hpp"

namespace paceline {

DecoderWeights::DecoderWeights(const DecoderConfig& config) : config_(config), layers_(config.num_layers) {}

Matrix& DecoderWeights::matrix(const std::string& role, int layer) {
  if (role == "embedding") return embedding_;
  if (role == "head") return head_;
  require(layer >= 0 && layer < config_.num_layers, "layer " + std::to_string(layer) + " is not in the model");
  LayerWeights& l = layers_[layer];
  if (role == "q") return l.q;
  if (role == "k") return l.k;
  if (role == "v") return l.v;
  if (role == "o") return l.o;
  if (role == "gate") return l.gate;
  if (role == "up") return l.up;
  require(role == "down", "unknown matrix role '" + role + "'");
  return l.down;
}

// The vectors that each layer of this configuration has.
std::vector<DecoderWeights::VectorSlot> DecoderWeights::layer_vectors() const {
  const int head = config_.head_dim;
  const int kv_heads = config_.num_kv_heads * head;
  std::vector<VectorSlot> slots{{"attn_norm", &LayerWeights::attn_norm, config_.hidden_size},
                                {"ffn_norm", &LayerWeights::ffn_norm, config_.hidden_size}};
  if (config_.has_qkv_bias) {
    slots.push_back({"q_bias", &LayerWeights::q_bias, config_.num_heads * head});
    slots.push_back({"k_bias", &LayerWeights::k_bias, kv_heads});
    slots.push_back({"v_bias", &LayerWeights::v_bias, kv_heads});
  }
  if (config_.has_qk_norm) {
    slots.push_back({"q_norm", &LayerWeights::q_norm, head});
    slots.push_back({"k_norm", &LayerWeights::k_norm, head});
  }
  if (config_.has_post_norms) {
    slots.push_back({"post_attn_norm", &LayerWeights::post_attn_norm, config_.hidden_size});
    slots.push_back({"post_ffn_norm", &LayerWeights::post_ffn_norm, config_.hidden_size});
  }
  return slots;
}

void DecoderWeights::check_matrix(const std::string& role, int rows, int columns) const {
  const int heads = config_.num_heads * config_.head_dim;
  const int kv_heads = config_.num_kv_heads * config_.head_dim;
  int want_rows = config_.hidden_size;
  int want_columns = config_.hidden_size;
  if (role == "q") want_rows = heads;
  if (role == "k" || role == "v") want_rows = kv_heads;
  if (role == "o") want_columns = heads;
  if (role == "gate" || role == "up") want_rows = config_.intermediate_size;
  if (role == "down") want_columns = config_.intermediate_size;
  if (role == "embedding" || role == "head") want_rows = config_.vocab_size;
  require(rows == want_rows && columns == want_columns,
          "matrix " + role + " is " + std::to_string(rows) + " x " + std::to_string(columns) + ", expected " +
              std::to_string(want_rows) + " x " + std::to_string(want_columns));
}

void DecoderWeights::load_matrix(const std::string& role, int layer, WeightType type, int rows, int columns,
                                 const std::uint8_t* source, std::size_t source_bytes, ThreadPool& pool) {
  require(!is_complete_, "the model's weights are loaded already");
  Matrix& target = matrix(role, layer);
  check_matrix(role, rows, columns);
  target = Matrix(type, rows, columns, source, source_bytes, arena_, pool);
}

void DecoderWeights::load_vector(const std::string& role, int layer, const float* source, std::size_t count) {
  require(!is_complete_, "the model's weights are loaded already");
  VectorSlot slot{"output_norm", nullptr, config_.hidden_size};
  if (role != slot.role) {
    require(layer >= 0 && layer < config_.num_layers, "layer " + std::to_string(layer) + " is not in the model");
    const auto slots = layer_vectors();
    const auto found = std::find_if(slots.begin(), slots.end(), [&](const VectorSlot& s) { return role == s.role; });
    require(found != slots.end(), "unknown vector role '" + role + "'");
    slot = *found;
  }
  require(count == static_cast<std::size_t>(slot.size), "vector " + role + " has the wrong length");
  std::vector<float>& target = slot.vector == nullptr ? output_norm_ : layers_[layer].*slot.vector;
  target.assign(source, source + count);
}

void DecoderWeights::check_complete() {
  require(!embedding_.is_empty() && !output_norm_.empty(), "the model lacks its embedding or its output norm");
  const auto slots = layer_vectors();
  for (const LayerWeights& l : layers_) {
    for (const Matrix* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) {
      require(!m->is_empty(), "a layer lacks a matrix");
    }
    for (const VectorSlot& slot : slots) {
      require(!(l.*slot.vector).empty(), std::string("a layer lacks its ") + slot.role);
    }
  }
  is_complete_ = true;
}

std::size_t DecoderWeights::bytes() const {
  std::size_t bytes = head().bytes();
  for (const LayerWeights& l : layers_) {
    for (const Matrix* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) bytes += m->bytes();
  }
  return bytes;
}

}  // namespace paceline

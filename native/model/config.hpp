// The numbers of a decoder, and the capacities that it is made with.
#pragma once

#include <string>
#include <vector>

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
  bool is_rope_split = false;                         // pairs (i, i + rope_dim / 2) instead of (2 i, 2 i + 1)
  std::vector<std::vector<double>> rope_frequencies;  // radians a position, [ropes][rope_dim / 2]
  std::vector<double> rope_magnitudes;                // of cosines and sines, [ropes]
  std::vector<int> layer_ropes;                       // which of the ropes, [num_layers]
  std::vector<int> layer_windows;                     // positions that a row sees, its own included; 0: all
  float attention_scale = 0;                          // of the scores
  float embedding_scale = 1;
  bool is_gelu = false;         // tanh form, instead of silu
  bool has_qkv_bias = false;    // vectors q_bias, k_bias, v_bias
  bool has_qk_norm = false;     // vectors q_norm, k_norm of head_dim, before the rotation
  bool has_post_norms = false;  // vectors post_attn_norm, post_ffn_norm, before the residual addition
  float rms_norm_eps = 0;
  int max_length = 0;
  int max_rows = 0;
  int max_logits_rows = 0;
  int num_pages = 0;
  int num_threads = 1;
  std::string isa = "auto";  // name of the kernels; "auto": the fastest that run here
};

}  // namespace paceline

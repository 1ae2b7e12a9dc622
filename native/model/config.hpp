// The numbers of a decoder of the Llama family, and the capacities that it is made with.
#pragma once

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

}  // namespace paceline

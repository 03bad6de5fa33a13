#pragma once
// What of the model decides about its bytes, without SQL.

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/basis.h"

namespace llmprof::analyze {

struct ModelShape {
  bool known = false;
  std::string weight_type, kv_type;
  double weight_bytes_each = 0, kv_bytes_each = 0;  // of one value
  bool quantized = false;
  std::int64_t layers = 0, heads = 0, kv_heads = 0, head_size = 0;  // attention of the first layer
  bool latent = false;                                              // multi-head latent attention
  double weights_read_bytes = 0;                                    // by a pass over one token
  double kv_bytes_per_token = 0;                                    // kept for each token of a sequence, all layers
};

struct DevicePeak {
  std::string type;  // element type of the arithmetic
  double per_second = 0;
  std::string source;
};

ModelShape model_shape(const Basis& basis);
// FLOP/s of the busiest device, by type.
std::vector<DevicePeak> arithmetic_peaks(const Basis& basis);

}  // namespace llmprof::analyze

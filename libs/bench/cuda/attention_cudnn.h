#pragma once
// Attention by cuDNN: its fused kernel, planned through the backend interface for one size.

#include <cstdint>

#include "base/result.h"
#include "bench/operator.h"

namespace llmprof::bench::cuda {

// Tensors q, k, v, out, each of tokens, heads, head_dim within a sequence, in this order.
struct CudnnAttention {
  Type type = Type::kBfloat16;  // or float16
  std::int64_t batch = 0, queries = 0, keys = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;  // query i sees keys 0 … i
};

// kUnsupported without cuDNN, and for what none of its engines takes, with its reason.
Result<CudaCall> cudnn_attention(Context& context, const CudnnAttention& attention);

}  // namespace llmprof::bench::cuda

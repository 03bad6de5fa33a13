#pragma once
// The parts that decoder families are put together from.

#include <vector>

#include "model/op.h"

namespace llmprof::model {

struct Naming {
  std::string attention = "self_attn";
  std::string mlp = "mlp";
  bool fused_qkv = false;      // one matrix: <attention>.qkv_proj (Phi-3)
  bool fused_gate_up = false;  // one matrix: <mlp>.gate_up_proj
  std::string qkv = "qkv_proj", out = "o_proj", gate = "gate_proj", up = "up_proj", down = "down_proj",
              gate_up = "gate_up_proj";
  std::string router = "gate";      // <mlp>.<router>
  std::string experts = "experts";  // <mlp>.<experts>.gate_proj …
  std::string shared = "shared_experts";
};

// From the projections of q, k and v to the output projection; not the norm before.
std::vector<Op> attention_ops(const Config& config, const Attention& attention, const Naming& names);
// Dense, or router, routed and shared experts.
std::vector<Op> mlp_ops(const Config& config, const Mlp& mlp, const Naming& names);

}  // namespace llmprof::model

#pragma once
// One layer of Llama: its weights, and the names it announces its parts under. The CPU and the GPU share them.

#include <string>

#include "workload/module_names.h"

namespace llmprof::workload {

template <class Source>  // Weights, or cuda::DeviceWeights
struct LlamaLayerWeights {
  typename Source::NormType input_layernorm, post_attention_layernorm;
  typename Source::LinearType q_proj, k_proj, v_proj, o_proj;
  typename Source::LinearType gate_proj, up_proj, down_proj;
};

struct LlamaLayerNames {
  llmprof_name layer, input_layernorm, self_attn, q_proj, k_proj, v_proj, rope, core, o_proj;
  llmprof_name post_attention_layernorm, mlp, gate_proj, up_proj, act, down_proj;
};

// `path` is "layers.3".
template <class Source>
LlamaLayerWeights<Source> llama_layer_weights(const Source& w, const std::string& path) {
  return {.input_layernorm = w.norm(path + ".input_layernorm"),
          .post_attention_layernorm = w.norm(path + ".post_attention_layernorm"),
          .q_proj = w.linear(path + ".self_attn.q_proj"),
          .k_proj = w.linear(path + ".self_attn.k_proj"),
          .v_proj = w.linear(path + ".self_attn.v_proj"),
          .o_proj = w.linear(path + ".self_attn.o_proj"),
          .gate_proj = w.linear(path + ".mlp.gate_proj"),
          .up_proj = w.linear(path + ".mlp.up_proj"),
          .down_proj = w.linear(path + ".mlp.down_proj")};
}
LlamaLayerNames llama_layer_names(ModuleNames& names, const std::string& path);

}  // namespace llmprof::workload

#include "workload/llama_layer.h"

namespace llmprof::workload {

LlamaLayerNames llama_layer_names(ModuleNames& names, const std::string& path) {
  return {.layer = names.add(path),
          .input_layernorm = names.add(path + ".input_layernorm"),
          .self_attn = names.add(path + ".self_attn"),
          .q_proj = names.add(path + ".self_attn.q_proj"),
          .k_proj = names.add(path + ".self_attn.k_proj"),
          .v_proj = names.add(path + ".self_attn.v_proj"),
          .rope = names.add(path + ".self_attn.rope"),
          .core = names.add(path + ".self_attn.core"),
          .o_proj = names.add(path + ".self_attn.o_proj"),
          .post_attention_layernorm = names.add(path + ".post_attention_layernorm"),
          .mlp = names.add(path + ".mlp"),
          .gate_proj = names.add(path + ".mlp.gate_proj"),
          .up_proj = names.add(path + ".mlp.up_proj"),
          .act = names.add(path + ".mlp.act"),
          .down_proj = names.add(path + ".mlp.down_proj")};
}

}  // namespace llmprof::workload

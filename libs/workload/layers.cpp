#include "workload/layers.h"

namespace llmprof::workload {

Gpt2LayerNames gpt2_layer_names(ModuleNames& names, const std::string& path) {
  return {.layer = names.add(path),
          .ln_1 = names.add(path + ".ln_1"),
          .attn = names.add(path + ".attn"),
          .c_attn = names.add(path + ".attn.c_attn"),
          .core = names.add(path + ".attn.core"),
          .c_proj = names.add(path + ".attn.c_proj"),
          .ln_2 = names.add(path + ".ln_2"),
          .mlp = names.add(path + ".mlp"),
          .mlp_c_fc = names.add(path + ".mlp.c_fc"),
          .act = names.add(path + ".mlp.act"),
          .mlp_c_proj = names.add(path + ".mlp.c_proj")};
}

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

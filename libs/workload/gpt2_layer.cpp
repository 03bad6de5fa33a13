#include "workload/gpt2_layer.h"

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

}  // namespace llmprof::workload

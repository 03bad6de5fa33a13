#pragma once
// One layer of GPT-2: its weights, and the names it announces its parts under. Inference and training, the CPU and the
// GPU share them, so that their parts line up in a profile.

#include <string>

#include "workload/module_names.h"

namespace llmprof::workload {

template <class Source>  // Weights, or cuda::DeviceWeights
struct Gpt2LayerWeights {
  typename Source::NormType ln_1, ln_2;
  typename Source::LinearType c_attn, c_proj;
  typename Source::LinearType mlp_c_fc, mlp_c_proj;
};

struct Gpt2LayerNames {
  llmprof_name layer, ln_1, attn, c_attn, core, c_proj, ln_2, mlp, mlp_c_fc, act, mlp_c_proj;
};

// `path` is "h.3".
template <class Source>
Gpt2LayerWeights<Source> gpt2_layer_weights(const Source& w, const std::string& path) {
  return {.ln_1 = w.norm(path + ".ln_1"),
          .ln_2 = w.norm(path + ".ln_2"),
          .c_attn = w.linear(path + ".attn.c_attn"),
          .c_proj = w.linear(path + ".attn.c_proj"),
          .mlp_c_fc = w.linear(path + ".mlp.c_fc"),
          .mlp_c_proj = w.linear(path + ".mlp.c_proj")};
}
Gpt2LayerNames gpt2_layer_names(ModuleNames& names, const std::string& path);

}  // namespace llmprof::workload

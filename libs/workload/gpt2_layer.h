#pragma once
// One layer of GPT-2: its weights, and the names it announces its parts under. Inference and training share them, so
// that their parts line up in a profile.

#include <string>

#include "workload/module_names.h"
#include "workload/weights.h"

namespace llmprof::workload {

struct Gpt2LayerWeights {
  Norm ln_1, ln_2;
  Linear c_attn, c_proj;
  Linear mlp_c_fc, mlp_c_proj;
};

struct Gpt2LayerNames {
  llmprof_name layer, ln_1, attn, c_attn, core, c_proj, ln_2, mlp, mlp_c_fc, act, mlp_c_proj;
};

// `path` is "h.3".
Gpt2LayerWeights gpt2_layer_weights(const Weights& weights, const std::string& path);
Gpt2LayerNames gpt2_layer_names(ModuleNames& names, const std::string& path);

}  // namespace llmprof::workload

// model.safetensors.index.json: names of tensors and files. Whatever it says, it names files of its own folder only.

#include "model/checkpoint/tensor_list.h"

#include "fuzz.h"
#include "model/checkpoint/tensor_names.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto index = model::parse_safetensors_index(input, "input");
  if (!index) return;
  require(!index->file_of.empty());
  for (const auto& [tensor, file] : index->file_of) {
    require(!file.empty() && file.front() != '.' && file.find('/') == std::string::npos);
    const model::TensorName name = model::parse_tensor_name(tensor);
    require(!name.layer || *name.layer >= 0);
    (void)model::ops_of(name, [](const std::string& op) { return op.size() % 2 == 0; });
  }
}

std::vector<std::string> seeds() {
  return {
      R"({"metadata": {"total_size": 100}, "weight_map": {"model.layers.0.mlp.experts.3.up_proj.qweight": "a.safetensors",
    "model.layers.0.mlp.experts.gate_up_proj_blocks": "b.safetensors", "lm_head.weight": "b.safetensors"}})",
      R"({"weight_map":{"transformer.h.0.attn.bias":"x","blk.0.ffn_up.3.weight":"y","wpe.weight":"z"}})"};
}

std::vector<std::string> dictionary() {
  return {"\"metadata\"", "\"weight_map\"", "\"total_size\"", "../",       "http://", ".weight", ".absmax",
          "model.",       "layers.",        "experts.",       "_scales\"", "1e999",   "[[",      "\\u0000"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

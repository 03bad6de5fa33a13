#include "model/checkpoint/tensor_names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace llmprof::model {
namespace {

using Parts = std::vector<std::string_view>;

struct Leaf {
  std::string_view name;
  TensorRole role;
};

// Names of tensors inside their module. Quantised ones: GPTQ and AWQ, FP8, compressed-tensors, bitsandbytes, ModelOpt,
// MLX.
constexpr std::array kLeaves{
    Leaf{"weight", TensorRole::kParameters},
    Leaf{"bias", TensorRole::kParameters},
    Leaf{"e_score_correction_bias", TensorRole::kParameters},
    Leaf{"qweight", TensorRole::kPacked},
    Leaf{"weight_packed", TensorRole::kPacked},
    Leaf{"qzeros", TensorRole::kSide},
    Leaf{"scales", TensorRole::kSide},
    Leaf{"biases", TensorRole::kSide},
    Leaf{"g_idx", TensorRole::kSide},
    Leaf{"weight_scale", TensorRole::kSide},
    Leaf{"weight_scale_inv", TensorRole::kSide},
    Leaf{"weight_scale_2", TensorRole::kSide},
    Leaf{"weight_shape", TensorRole::kSide},
    Leaf{"weight_zero_point", TensorRole::kSide},
    Leaf{"weight_g_idx", TensorRole::kSide},
    Leaf{"weight_global_scale", TensorRole::kSide},
    Leaf{"input_scale", TensorRole::kSide},
    Leaf{"input_global_scale", TensorRole::kSide},
    Leaf{"input_zero_point", TensorRole::kSide},
    Leaf{"output_scale", TensorRole::kSide},
    Leaf{"k_scale", TensorRole::kSide},
    Leaf{"v_scale", TensorRole::kSide},
    Leaf{"scale", TensorRole::kSide},
    Leaf{"SCB", TensorRole::kSide},
    Leaf{"inv_freq", TensorRole::kBuffer},
    Leaf{"masked_bias", TensorRole::kBuffer},
};

// GPT-OSS: parameters of all experts together, without a module of their own.
constexpr std::array kEndings{
    Leaf{"_blocks", TensorRole::kPacked},
    Leaf{"_scales", TensorRole::kSide},
    Leaf{"_bias", TensorRole::kParameters},
};

constexpr std::array<std::string_view, 7> kWrappers{"model.",      "transformer.", "language_model.", "text_model.",
                                                    "base_model.", "gpt_neox.",    "decoder."};
constexpr std::array<std::string_view, 3> kLayerLists{"layers", "h", "blk"};

struct OtherNames {
  std::string_view name;
  std::string_view ops;  // tried in this order; "a+b": shared by both
};

// What a tensor's module is called here, where that is not its own name. First GGUF, then Hugging Face. "mlp" stands
// for whatever the family calls it.
constexpr std::array kOtherNames{
    OtherNames{"token_embd", "embed_tokens wte"},
    OtherNames{"position_embd", "wpe wte"},
    OtherNames{"output", "lm_head"},
    OtherNames{"output_norm", "norm ln_f"},
    OtherNames{"attn_norm", "input_layernorm ln_1"},
    OtherNames{"ffn_norm", "pre_feedforward_layernorm post_attention_layernorm ln_2"},
    OtherNames{"post_attention_norm", "post_attention_layernorm"},
    OtherNames{"post_ffw_norm", "post_feedforward_layernorm"},
    OtherNames{"attn_q", "self_attn.q_proj"},
    OtherNames{"attn_k", "self_attn.k_proj"},
    OtherNames{"attn_v", "self_attn.v_proj"},
    OtherNames{"attn_qkv", "self_attn.qkv_proj attn.c_attn"},
    OtherNames{"attn_output", "self_attn.o_proj attn.c_proj"},
    OtherNames{"attn_q_norm", "self_attn.q_norm"},
    OtherNames{"attn_k_norm", "self_attn.k_norm"},
    OtherNames{"attn_q_a", "self_attn.q_a_proj"},
    OtherNames{"attn_q_a_norm", "self_attn.q_a_layernorm"},
    OtherNames{"attn_q_b", "self_attn.q_b_proj"},
    OtherNames{"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    OtherNames{"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    OtherNames{"attn_kv_b", "self_attn.kv_b_proj"},
    OtherNames{"attn_k_b", "self_attn.kv_b_proj"},  // kv_b_proj in two parts
    OtherNames{"attn_v_b", "self_attn.kv_b_proj"},
    OtherNames{"attn_sinks", "self_attn.sinks self_attn.core"},
    OtherNames{"ffn_gate", "mlp.gate_proj"},
    OtherNames{"ffn_up", "mlp.up_proj mlp.gate_up_proj mlp.c_fc"},  // Phi-3: gate and up together
    OtherNames{"ffn_down", "mlp.down_proj mlp.c_proj"},
    OtherNames{"ffn_gate_inp", "mlp.gate mlp.router"},
    OtherNames{"exp_probs_b", "mlp.gate mlp.router"},
    OtherNames{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    OtherNames{"ffn_gate_exps", "mlp.experts.gate_proj mlp.experts.w1 mlp.experts.gate_up_proj"},
    OtherNames{"ffn_up_exps", "mlp.experts.up_proj mlp.experts.w3 mlp.experts.gate_up_proj"},
    OtherNames{"ffn_gate_up_exps",
               "mlp.experts.gate_up_proj mlp.experts.gate_proj+mlp.experts.up_proj mlp.experts.w1+mlp.experts.w3"},
    OtherNames{"ffn_down_exps", "mlp.experts.down_proj mlp.experts.w2"},
    OtherNames{"ffn_gate_shexp", "mlp.shared_experts.gate_proj mlp.shared_expert.gate_proj"},
    OtherNames{"ffn_up_shexp", "mlp.shared_experts.up_proj mlp.shared_expert.up_proj"},
    OtherNames{"ffn_down_shexp", "mlp.shared_experts.down_proj mlp.shared_expert.down_proj"},
    OtherNames{"wpe", "wte"},
    OtherNames{"self_attn.sinks", "self_attn.core"},
    OtherNames{"mlp.gate", "mlp.router"},
    OtherNames{"mlp.router", "mlp.gate"},
    OtherNames{"mlp.experts.w1", "mlp.experts.gate_proj mlp.experts.gate_up_proj"},
    OtherNames{"mlp.experts.w2", "mlp.experts.down_proj"},
    OtherNames{"mlp.experts.w3", "mlp.experts.up_proj mlp.experts.gate_up_proj"},
    OtherNames{"mlp.experts.gate_proj", "mlp.experts.w1 mlp.experts.gate_up_proj"},
    OtherNames{"mlp.experts.up_proj", "mlp.experts.w3 mlp.experts.gate_up_proj"},
    OtherNames{"mlp.experts.down_proj", "mlp.experts.w2"},
    OtherNames{"mlp.experts.gate_up_proj", "mlp.experts.gate_proj+mlp.experts.up_proj mlp.experts.w1+mlp.experts.w3"},
    OtherNames{"mlp.gate_up_proj", "mlp.gate_proj+mlp.up_proj"},
    OtherNames{"mlp.shared_expert.gate_proj", "mlp.shared_experts.gate_proj"},
    OtherNames{"mlp.shared_expert.up_proj", "mlp.shared_experts.up_proj"},
    OtherNames{"mlp.shared_expert.down_proj", "mlp.shared_experts.down_proj"},
};

Parts split(std::string_view text, char separator) {
  Parts parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

template <class Table>
bool contains(const Table& table, std::string_view name) {
  return std::ranges::find(table, name) != table.end();
}

constexpr std::array<std::string_view, 3> kMlpNames{"mlp.", "block_sparse_moe.",
                                                    "feed_forward."};  // …, Mixtral, Llama 4

std::string with_mlp(std::string op, std::string_view mlp) {
  if (op.starts_with(kMlpNames.front())) op.replace(0, kMlpNames.front().size(), mlp);
  return op;
}

// Cuts the tensor's own name off its module's. What follows "weight" describes it: bitsandbytes' "weight.absmax".
TensorRole cut_leaf(Parts& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto* const leaf = std::ranges::find(kLeaves, parts[i], &Leaf::name);
    if (leaf == kLeaves.end()) continue;
    const bool last = i + 1 == parts.size();
    parts.resize(i);
    return last ? leaf->role : TensorRole::kSide;
  }
  for (const Leaf& ending : kEndings) {
    if (parts.size() < 2 || !parts.back().ends_with(ending.name)) continue;
    parts.back().remove_suffix(ending.name.size());
    return ending.role;
  }
  return TensorRole::kParameters;
}

// Experts by number are one operator here. An older GGUF: "ffn_up.3".
std::string join_op(const Parts& parts) {
  std::string op;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool expert = i > 0 && (parts[i - 1] == "experts" || parts[i - 1].starts_with("ffn_"));
    if (expert && whole_number(parts[i])) {
      if (parts[i - 1] != "experts") op += "_exps";
      continue;
    }
    if (i > 0) op += '.';
    op += parts[i];
  }
  return op;
}

// Buffers that look like parameters: masks of GPT-2 and GPT-NeoX, rotary frequencies of GGUF.
bool is_buffer(const TensorName& tensor, std::string_view name) {
  return ((tensor.op == "attn" || tensor.op == "attention") && name.ends_with(".bias")) ||
         tensor.op.starts_with("rope_f");
}

}  // namespace

TensorName parse_tensor_name(std::string_view name) {
  std::string_view inner = name;
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!inner.starts_with(wrapper)) continue;
      inner.remove_prefix(wrapper.size());
      cut = true;
    }
  }
  Parts parts = split(inner, '.');
  TensorName tensor;
  if (parts.size() > 2 && contains(kLayerLists, parts[0])) tensor.layer = whole_number(parts[1]);
  if (tensor.layer) parts.erase(parts.begin(), parts.begin() + 2);
  tensor.role = cut_leaf(parts);
  tensor.op = join_op(parts);
  if (is_buffer(tensor, name)) tensor.role = TensorRole::kBuffer;
  return tensor;
}

std::vector<std::string> ops_of(const TensorName& tensor, const std::function<bool(const std::string&)>& is_known) {
  if (is_known(tensor.op)) return {tensor.op};
  std::string name = tensor.op;
  for (const std::string_view mlp : kMlpNames) {
    if (name.starts_with(mlp)) name = std::string(kMlpNames.front()) + name.substr(mlp.size());
  }
  const auto* const others = std::ranges::find(kOtherNames, name, &OtherNames::name);
  std::string choices = name;
  if (others != kOtherNames.end()) choices.append(" ").append(others->ops);
  for (const std::string_view choice : split(choices, ' ')) {
    const Parts shared = split(choice, '+');
    for (const std::string_view mlp : kMlpNames) {
      std::vector<std::string> ops(shared.begin(), shared.end());
      for (std::string& op : ops) op = with_mlp(std::move(op), mlp);
      if (std::ranges::all_of(ops, is_known)) return ops;
    }
  }
  return {};
}

}  // namespace llmprof::model

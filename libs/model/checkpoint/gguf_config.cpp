#include "model/checkpoint/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::model {
namespace {

using base::Json;

constexpr std::int64_t kMostNumber = std::int64_t{1} << 40;  // sums and differences of such do not overflow

// Asks the metadata for "<architecture>.<key>". The first error is kept.
class Metadata {
 public:
  Metadata(const GgufModel& model, std::string_view where) : model_(model), where_(where) {
    architecture_ = text("general.architecture");
    for (const StoredTensor& tensor : model.list.tensors) names_.insert(tensor.name);
  }

  const std::string& architecture() const { return architecture_; }
  bool has_tensor(std::string_view name) const { return names_.contains(name); }
  const GgufTensor* find_tensor(std::string_view name) const {  // of the first file
    const auto found = std::ranges::find(model_.first.tensors, name, &GgufTensor::name);
    return found != model_.first.tensors.end() ? &*found : nullptr;
  }

  const GgufValue* find(std::string_view key) const {
    const auto found = model_.first.metadata.find(fmt::format("{}.{}", architecture_, key));
    return found != model_.first.metadata.end() ? &found->second : nullptr;
  }
  std::uint64_t tokens() const {
    const auto found = model_.first.metadata.find("tokenizer.ggml.tokens");
    const auto* const list = found != model_.first.metadata.end() ? std::get_if<GgufArray>(&found->second) : nullptr;
    return list != nullptr ? list->count : 0;
  }

  // One number for all layers; per-layer lists must be of equal numbers. nullopt if it is not there.
  std::optional<std::int64_t> number(std::string_view key) {
    const GgufValue* const value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* const list = std::get_if<GgufArray>(value);
    const auto* const whole = std::get_if<std::int64_t>(value);
    const std::int64_t first = whole != nullptr                            ? *whole
                               : list != nullptr && !list->numbers.empty() ? list->numbers.front()
                                                                           : -1;
    if (first < 0 || first > kMostNumber) {
      reject(ErrorCode::kCorruptInput,
             fmt::format("{}.{} is not a whole number from 0 to {}", architecture_, key, kMostNumber));
      return std::nullopt;
    }
    if (list != nullptr && std::ranges::any_of(list->numbers, [&](std::int64_t other) { return other != first; })) {
      reject(ErrorCode::kUnsupported,
             fmt::format("{}.{} differs between layers, which is not supported", architecture_, key));
      return std::nullopt;
    }
    return first;
  }
  std::int64_t required(std::string_view key) {
    const std::optional<std::int64_t> found = number(key);
    if (!found) reject(ErrorCode::kCorruptInput, fmt::format("{}.{} is missing", architecture_, key));
    return found.value_or(0);
  }

  void reject(ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, fmt::format("{}: {}", where_, base::printable(message)), ""};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string text(std::string_view key) {
    const auto found = model_.first.metadata.find(key);
    const auto* const value = found != model_.first.metadata.end() ? std::get_if<std::string>(&found->second) : nullptr;
    if (value == nullptr) reject(ErrorCode::kCorruptInput, fmt::format("{} is missing", key));
    return value != nullptr ? base::shorten(base::printable(*value), 40) : "";
  }

  const GgufModel& model_;
  std::string_view where_;
  std::string architecture_;
  std::set<std::string_view> names_;
  std::optional<Error> error_;
};

void copy(Metadata& from, std::string_view key, Json& to, const char* name) {
  if (const std::optional<std::int64_t> number = from.number(key)) to[name] = *number;
}

// Rows of the embedding: exact also where the vocabulary is padded.
void set_vocabulary(Metadata& from, Json& to) {
  const GgufTensor* const table = from.find_tensor("token_embd.weight");
  if (table != nullptr && table->sizes.size() == 2) {
    to["vocab_size"] = table->sizes[1];
  } else if (from.find("vocab_size") != nullptr) {
    copy(from, "vocab_size", to, "vocab_size");
  } else if (from.tokens() > 0) {
    to["vocab_size"] = from.tokens();
  }
}

void set_common(Metadata& from, Json& to) {
  to["num_hidden_layers"] = from.required("block_count") - from.number("nextn_predict_layers").value_or(0);
  to["hidden_size"] = from.required("embedding_length");
  to["num_attention_heads"] = from.required("attention.head_count");
  copy(from, "attention.head_count_kv", to, "num_key_value_heads");
  copy(from, "attention.key_length", to, "head_dim");
  copy(from, "feed_forward_length", to, "intermediate_size");
  copy(from, "context_length", to, "max_position_embeddings");
  copy(from, "attention.sliding_window", to, "sliding_window");
  copy(from, "nextn_predict_layers", to, "num_nextn_predict_layers");
  to["tie_word_embeddings"] = !from.has_tensor("output.weight");
  if (from.has_tensor("blk.0.attn_q.bias")) to["attention_bias"] = true;
  if (from.has_tensor("blk.0.ffn_up.bias")) to["mlp_bias"] = true;
  to["torch_dtype"] = "float16";  // what llama.cpp keeps the cache in; the weights' own types are in the file
}

// ---- one function per architecture that says more, or says it in other words -----------------------------------

void set_llama(Metadata& from, Json& to) {
  if (from.number("expert_count").value_or(0) == 0) return;
  to["model_type"] = "mixtral";
  copy(from, "expert_count", to, "num_local_experts");
  copy(from, "expert_used_count", to, "num_experts_per_tok");
}

void set_qwen(Metadata&, Json& to) { to.erase("attention_bias"); }  // the family knows which have it

void set_qwen_moe(Metadata& from, Json& to) {
  set_qwen(from, to);
  copy(from, "expert_count", to, "num_experts");
  copy(from, "expert_used_count", to, "num_experts_per_tok");
  copy(from, "expert_feed_forward_length", to, "moe_intermediate_size");
  copy(from, "expert_shared_feed_forward_length", to, "shared_expert_intermediate_size");
  to["decoder_sparse_step"] = 1;
}

// Which layers have the window: a list of flags, or every n-th layer is without.
void set_window_pattern(Metadata& from, Json& to) {
  const GgufValue* const value = from.find("attention.sliding_window_pattern");
  const auto* const flags = value != nullptr ? std::get_if<GgufArray>(value) : nullptr;
  if (flags != nullptr && !flags->numbers.empty()) {
    Json types = Json::array();
    for (const std::int64_t windowed : flags->numbers)
      types.push_back(windowed != 0 ? "sliding_attention" : "full_attention");
    to["layer_types"] = types;
  } else {
    copy(from, "attention.sliding_window_pattern", to, "sliding_window_pattern");
  }
}

void set_gpt2(Metadata& from, Json& to) {
  const Json common = to;
  to = Json{{"model_type", "gpt2"}, {"torch_dtype", "float16"}};
  to["n_layer"] = common["num_hidden_layers"];
  to["n_embd"] = common["hidden_size"];
  to["n_head"] = common["num_attention_heads"];
  to["n_positions"] = from.required("context_length");
  copy(from, "feed_forward_length", to, "n_inner");
  // A conversion stores the tied matrix a second time.
  to["tie_word_embeddings"] = true;
}

// Files of before 2025 give the sizes of whole heads; later ones those of the latent, and the heads' under "_mla".
void set_deepseek2(Metadata& from, Json& to) {
  to.erase("head_dim");
  to["model_type"] = from.has_tensor("blk.3.exp_probs_b.bias") || from.number("expert_gating_func").value_or(1) == 2
                         ? "deepseek_v3"
                         : "deepseek_v2";
  const bool latent = from.find("attention.key_length_mla") != nullptr;
  const std::int64_t key = from.required(latent ? "attention.key_length_mla" : "attention.key_length");
  const std::int64_t rope = from.required("rope.dimension_count");
  to["qk_rope_head_dim"] = rope;
  to["qk_nope_head_dim"] = key - rope;
  to["v_head_dim"] = from.required(latent ? "attention.value_length_mla" : "attention.value_length");
  to["kv_lora_rank"] = from.required("attention.kv_lora_rank");
  to["num_key_value_heads"] = to["num_attention_heads"];
  if (from.number("attention.q_lora_rank").value_or(0) > 0) {
    copy(from, "attention.q_lora_rank", to, "q_lora_rank");
  } else {
    to["q_lora_rank"] = nullptr;
  }
  copy(from, "expert_count", to, "n_routed_experts");
  copy(from, "expert_used_count", to, "num_experts_per_tok");
  copy(from, "expert_shared_count", to, "n_shared_experts");
  copy(from, "expert_feed_forward_length", to, "moe_intermediate_size");
  copy(from, "leading_dense_block_count", to, "first_k_dense_replace");
  to["moe_layer_freq"] = 1;
}

void set_gpt_oss(Metadata& from, Json& to) {
  copy(from, "expert_count", to, "num_local_experts");
  copy(from, "expert_used_count", to, "num_experts_per_tok");
  copy(from, "expert_feed_forward_length", to, "intermediate_size");
  to["attention_bias"] = true;
}

struct Architecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // of the config.json
  void (*set_more)(Metadata&, Json&);
};

constexpr std::array kArchitectures{
    Architecture{"llama", "llama", set_llama},
    Architecture{"qwen2", "qwen2", set_qwen},
    Architecture{"qwen2moe", "qwen2_moe", set_qwen_moe},
    Architecture{"qwen3", "qwen3", set_qwen},
    Architecture{"qwen3moe", "qwen3_moe", set_qwen_moe},
    Architecture{"gemma", "gemma", nullptr},
    Architecture{"gemma2", "gemma2", set_window_pattern},
    Architecture{"gemma3", "gemma3_text", set_window_pattern},
    Architecture{"phi3", "phi3", nullptr},
    Architecture{"gpt2", "gpt2", set_gpt2},
    Architecture{"deepseek2", "deepseek_v2", set_deepseek2},
    Architecture{"gpt-oss", "gpt_oss", set_gpt_oss},
};

}  // namespace

Result<std::string> config_text_of(const GgufModel& model, std::string_view where) {
  Metadata from(model, where);
  if (from.error()) return *from.error();
  const auto* const known = std::ranges::find(kArchitectures, from.architecture(), &Architecture::name);
  Json config;
  config["model_type"] = known != kArchitectures.end() ? std::string(known->model_type) : from.architecture();
  set_common(from, config);
  if (known != kArchitectures.end() && known->set_more != nullptr) known->set_more(from, config);
  set_vocabulary(from, config);
  if (from.error()) return *from.error();
  return base::to_text(config);
}

}  // namespace llmprof::model

// A transformer that no config describes: what the shapes of a run's products say (analyze/infer_model.cpp writes it).
// Widths are exact. Norms and activations are taken as Llama's or, with biases, as GPT-2's.

#include <algorithm>
#include <array>

#include "base/json.h"
#include "model/families/standard.h"

namespace llmprof::model {
namespace inferred {
namespace {

constexpr std::array<std::string_view, 1> kModelTypes{"inferred"};

// "adapters": {"self_attn.q_proj": 16}: low-rank products beside the matrix of the operator.
void read_adapters(Fields& fields, Config& config) {
  const base::Json* adapters = fields.find("adapters");
  if (adapters == nullptr) return;
  if (!adapters->is_object()) return fields.reject(ErrorCode::kCorruptInput, "adapters: not an object");
  for (const auto& [name, rank] : adapters->items()) {
    if (!rank.is_number_integer() || rank.get<std::int64_t>() < 1 || rank.get<std::int64_t>() > kMaxCount)
      return fields.reject(ErrorCode::kCorruptInput, "adapters: ranks are whole numbers from 1");
    config.adapters[name] = rank.get<std::int64_t>();
  }
}

Config read(Fields& fields) {
  Config config;
  const std::int64_t layers = fields.count("num_hidden_layers");
  config.hidden = fields.count("hidden_size");
  config.vocab = fields.zero_or_more("vocab_size", 0);
  config.has_last = config.vocab > 0;  // without: whatever is done with the result of the last layer is not counted
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  const bool bias = fields.flag_or("bias", false);
  config.norm_bias = bias;
  config.frozen = fields.flag_or("frozen", false);
  read_adapters(fields, config);
  Attention attention{.heads = fields.count("num_attention_heads"),
                      .kv_heads = fields.count("num_key_value_heads"),
                      .qk_dim = fields.count("head_dim"),
                      .qkv_bias = bias,
                      .out_bias = bias,
                      .rope = fields.flag_or("rope", true),
                      .causal = fields.flag_or("causal", true)};
  attention.v_dim = attention.qk_dim;
  const Mlp mlp{.width = fields.count("intermediate_size"), .gated = fields.flag_or("gated", true), .bias = bias};
  if (!fields.flag_or("heads_known", true))
    fields.note(kHeadsUnknown,
                "its heads are not known: the widths of all of them together are, and costs rest on these");
  if (!fields.error()) set_layers(config, layers, {.attention = attention, .mlp = mlp});
  return config;
}

Structure describe(const Config& config) {
  Structure whole = structure(config, {});
  for (std::vector<Op>& ops : whole.kinds) {
    std::vector<Op> with;
    for (Op& op : ops) {
      const auto adapter = config.adapters.find(op.name);
      with.push_back(std::move(op));
      if (adapter == config.adapters.end()) continue;
      const std::int64_t in = with.back().in, out = with.back().out;
      with.push_back(linear({.name = adapter->first + ".lora_A", .in = in, .out = adapter->second}));
      with.push_back(linear({.name = adapter->first + ".lora_B", .in = adapter->second, .out = out}));
    }
    ops = std::move(with);
  }
  if (!config.frozen) return whole;
  const auto freeze = [](std::vector<Op>& ops) {
    for (Op& op : ops) op.frozen = !op.name.ends_with(".lora_A") && !op.name.ends_with(".lora_B");
  };
  freeze(whole.first), freeze(whole.last);
  std::ranges::for_each(whole.kinds, freeze);
  return whole;
}

}  // namespace
}  // namespace inferred

extern const Family kInferred;
const Family kInferred{
    .name = "inferred", .model_types = inferred::kModelTypes, .read = inferred::read, .describe = inferred::describe};

}  // namespace llmprof::model

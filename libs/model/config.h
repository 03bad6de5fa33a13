#pragma once
// A decoder-only transformer as numbers: what a config.json, a GGUF header or a built-in name says. A family file
// (families/) fills it; the families turn it into operators.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::model {

// How one value is stored. Quantised weights: with their scales and zero points, so bytes may be 0.5195…
struct Number {
  std::string type = "float32";
  double bytes = 4;
  bool operator==(const Number&) const = default;
};

// bytes of "float32", "bfloat16", "float16", "float8_e4m3", "int8", "int4"… and their usual spellings; nullopt if
// unknown.
std::optional<Number> number_of(std::string_view type);

struct Attention {
  std::int64_t heads = 0, kv_heads = 0;  // kv_heads == heads: MHA, 1: MQA, between: GQA
  std::int64_t qk_dim = 0, v_dim = 0;    // of one head
  std::int64_t window = 0;               // keys a query sees at most, itself included; 0: all before it
  std::int64_t chunk = 0;                // a query sees its own chunk only; 0: no chunks
  // Multi-head latent attention (DeepSeek): K and V are kept as one latent of kv_rank and a shared rotary key of
  // rope_dim (part of qk_dim). kv_rank 0: keys and values are kept as they are. q_rank 0: q comes from one matrix.
  std::int64_t q_rank = 0, kv_rank = 0, rope_dim = 0;
  bool qkv_bias = false, out_bias = false;
  std::int64_t q_norm = 0, k_norm = 0;  // weights of norms over q and k; 0: none
  bool sinks = false;                   // GPT-OSS: a learned logit per head
  bool rope = true;
  bool causal = true;  // else every query sees all keys of its sequence: encoders
  bool operator==(const Attention&) const = default;

  bool latent() const { return kv_rank > 0; }
  std::int64_t kv_values() const {  // cached per token
    return latent() ? kv_rank + rope_dim : kv_heads * (qk_dim + v_dim);
  }
};

struct Mlp {
  std::int64_t width = 0;  // of the dense MLP, or of one expert
  bool gated = true;       // gate, up, down instead of up, down
  bool bias = false;
  std::int64_t experts = 0, experts_per_token = 0;  // 0: dense
  std::int64_t local_experts = 0;                   // of a shard; 0: all of them
  double expert_batches = 1;                        // of a shard: see Experts::batches
  std::int64_t shared_width = 0;                    // of the shared experts together; 0: none
  bool shared_gate = false;                         // Qwen2-MoE: the shared expert has a gate of one output
  bool router_bias = false;
  bool operator==(const Mlp&) const = default;
};

struct LayerKind {
  Attention attention;
  Mlp mlp;
  bool operator==(const LayerKind&) const = default;
};

struct Quantization {
  std::string method;               // as quantization_config says it: "fp8", "gptq", "awq", "mxfp4", …
  Number weight;                    // scales included
  std::string arithmetic;           // type of the products; "" the activation's
  std::vector<std::string> ignore;  // modules left alone: a path, a part of one, or "re:" and a pattern
  std::vector<std::string> only;    // the same way, the only modules that are not; empty: every matrix of a layer
};
bool covers(const Quantization& quantization, std::string_view module);  // quantization.h: many modules at once

inline constexpr std::string_view kHeadsUnknown = "num_attention_heads";  // field of the note of an inferred model

// Something that a config says and the formulas do not cover. Numbers are then bounds.
struct Caveat {
  std::string field;    // "sliding_attention_v9"
  std::string meaning;  // "not understood: FLOPs and bytes are what the rest of the model needs at least"
};

struct Config {
  std::string family;  // name of the Family that describes it
  std::string name;    // built-in name or path it came from; "" unknown
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t positions = 0;   // longest context; rows of the table if position_table
  bool position_table = false;  // GPT-2: learned positions
  bool norm_bias = false;       // LayerNorm with bias instead of RMSNorm
  bool tied_embeddings = false;
  bool frozen = false;                           // only the adapters are trained
  std::map<std::string, std::int64_t> adapters;  // low-rank products beside operators: name -> rank
  std::vector<LayerKind> kinds;                  // distinct layers
  std::vector<std::uint32_t> kind_of_layer;      // index into kinds, one per layer

  Number weight, kv, activation;       // plain weights; cached values; tensors between operators
  std::string arithmetic = "float32";  // of the products
  std::optional<Quantization> quantization;
  std::map<std::string, Number> stored;  // by module path, exact, from the checkpoint's own headers; may be empty
  std::vector<Caveat> caveats;
  std::vector<Caveat> notes;  // left out on purpose (prediction layers, a vision tower): the numbers are exact

  // What a shard leaves out (shard.h).
  std::int64_t first_layer = 0;  // number of the first of kind_of_layer
  bool has_first = true, has_last = true;
  double vocab_share = 1;  // of the rows that are looked up

  std::int64_t layers() const { return static_cast<std::int64_t>(kind_of_layer.size()); }
  void set_type(const Number& number);  // weights, cache, activations and arithmetic alike
};

// A config with `layers` equal layers.
void set_layers(Config& config, std::int64_t layers, const LayerKind& kind);
// Appends a layer, sharing an equal kind.
void add_layer(Config& config, const LayerKind& kind);

// The text of a config.json as Hugging Face writes it. Missing or absurd values are errors that name the key.
Result<Config> parse_config(std::string_view json_text, std::string_view where);

// How a model is run: the types of its numbers, where they are not those of its config. "" leaves what the config says.
struct Types {
  std::string weights;      // two bytes and more: of everything; less: of the layers' matrices, as quantisation does
  std::string kv;           // of the cache
  std::string activations;  // between operators
  std::string arithmetic;   // of the products
};
Result<void> set_types(Config& config, const Types& types);

}  // namespace llmprof::model

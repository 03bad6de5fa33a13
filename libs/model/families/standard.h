#pragma once
// What most decoders share: their keys, the defaults of their config classes in transformers, the order of a layer.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/families.h"
#include "model/op.h"

namespace llmprof::model {

// The operators that decoder families consist of.

struct Naming {
  std::string attention = "self_attn";
  std::string mlp = "mlp";
  bool fused_qkv = false;      // one matrix: <attention>.qkv_proj (Phi-3)
  bool fused_gate_up = false;  // one matrix: <mlp>.gate_up_proj
  std::string qkv = "qkv_proj", out = "o_proj", gate = "gate_proj", up = "up_proj", down = "down_proj",
              gate_up = "gate_up_proj";
  std::string router = "gate";      // <mlp>.<router>
  std::string experts = "experts";  // <mlp>.<experts>.gate_proj …
  std::string shared = "shared_experts";
};

// From the projections of q, k and v to the output projection; not the norm before.
std::vector<Op> attention_ops(const Config& config, const Attention& attention, const Naming& names);
// Dense, or router, routed and shared experts.
std::vector<Op> mlp_ops(const Config& config, const Mlp& mlp, const Naming& names);

// Values of a config class of transformers that a file may leave out.
struct Defaults {
  std::int64_t hidden = 0, layers = 0, heads = 0;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t width = 0, vocab = 0, positions = 0;
  bool tied = false;
};

// A config without its layers, one layer as the common keys describe it, and how many there are.
struct Decoder {
  Config config;
  LayerKind kind;
  std::int64_t layers = 0;
};
Decoder read_decoder(Fields& fields, const Defaults& defaults);

enum class View : std::uint8_t { kFull, kSliding, kChunked };  // what a layer's queries see

// One for each layer: as layer_types says, else as `usual(layer)`.
std::vector<View> layer_views(Fields& fields, std::int64_t layers, const std::function<View(std::int64_t)>& usual);
// Usually all but every `pattern`-th layer have a window.
std::vector<View> windowed_but_every(Fields& fields, std::int64_t layers, std::int64_t pattern);

// The decoder's layers: all alike unless layer_types says otherwise, or with a window where the views say so.
Config uniform(Fields& fields, Decoder decoder);
Config with_views(Decoder decoder, const std::vector<View>& views, std::int64_t window);

// Keys a windowed layer sees; `usual` where the file leaves it out. null and 0 (transformers 5 writes it) mean none.
std::int64_t read_window(Fields& fields, std::int64_t usual);

// The experts of `sparse` as mlp_layer_types says, else where `usual(layer)`.
Config with_experts(Fields& fields, Decoder decoder, const Mlp& sparse, const std::function<bool(std::int64_t)>& usual);

// No token goes to more experts than there are.
void expect_choice(Fields& fields, const Mlp& mlp);

// In the order in which a layer applies them. Empty: there is none.
struct Layout {
  Naming naming;
  std::string prefix = "layers";
  std::string embedding = "embed_tokens", last_norm = "norm";
  std::string before_attention = "input_layernorm", after_attention;
  std::string before_mlp = "post_attention_layernorm", after_mlp;
};
Structure structure(const Config& config, const Layout& layout);

// All families, in the files of this folder.
extern const Family kCohere, kDeepseekV2, kDeepseekV3, kFalcon, kFalconTwoNorms, kGemma, kGemma2, kGemma3, kGeneric,
    kGlm, kGlm4, kGlm4Moe, kGpt2, kGptNeox, kGptOss, kGptj, kInferred, kLlama, kLlama4, kMixtral, kOlmo2, kOpt, kPhi,
    kPhi3, kQwen2, kQwen2Moe, kQwen3, kQwen3Moe, kStarcoder2;

}  // namespace llmprof::model

#pragma once
// What most decoders share: their keys, the defaults of their config classes in transformers, the order of a layer.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "model/families.h"

namespace llmprof::model {

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

// The decoder's layers: all alike unless layer_types says otherwise, or with a window where the views say so.
Config uniform(Fields& fields, Decoder decoder);
Config with_views(Decoder decoder, const std::vector<View>& views, std::int64_t window);

// Keys a windowed layer sees; `usual` where the file leaves it out. null and 0 (transformers 5 writes it) mean none.
std::int64_t read_window(Fields& fields, std::int64_t usual);

// Qwen: a window, if it is used at all, from layer max_window_layers on.
std::int64_t read_qwen_window(Fields& fields);  // 0: not used
std::vector<View> qwen_views(Fields& fields, std::int64_t layers, std::int64_t window);
// The experts of `sparse` in every decoder_sparse_step-th layer that is not in mlp_only_layers.
Config qwen_sparse(Fields& fields, Decoder decoder, const Mlp& sparse);

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
Layout norms_on_both_sides();  // of attention and of the MLP: Gemma 2 and 3
Structure structure(const Config& config, const Layout& layout);

}  // namespace llmprof::model

#include "analyze/design/describe.h"

#include <fmt/format.h>

#include <utility>

#include "analyze/design/stage.h"
#include "base/human.h"

namespace llmprof::analyze::design {
namespace {

std::string describe(const model::Attention& a) {
  std::string text;
  if (a.latent()) {
    text = fmt::format("{} heads of {} (keys) and {} (values), a latent of {} + {} cached (MLA)", a.heads, a.qk_dim,
                       a.v_dim, a.kv_rank, a.rope_dim);
  } else {
    const std::string size =
        a.qk_dim == a.v_dim ? fmt::format("{}", a.qk_dim) : fmt::format("{} (keys) and {} (values)", a.qk_dim, a.v_dim);
    const char* kind = a.kv_heads == a.heads ? "MHA" : a.kv_heads == 1 ? "MQA" : "GQA";
    text = fmt::format("{} heads of {}, {} for keys and values ({})", a.heads, size, a.kv_heads, kind);
  }
  if (a.window > 0) text += fmt::format(", window {}", a.window);
  if (a.chunk > 0) text += fmt::format(", chunks of {}", a.chunk);
  return "attention: " + text;
}

std::string describe(const model::Mlp& m) {
  const std::string gated = m.gated ? "gated, " : "";
  if (m.experts == 0) return fmt::format("MLP: {}width {}", gated, m.width);
  std::string text = fmt::format("MoE: {} of {} experts, {}width {}", m.experts_per_token, m.experts, gated, m.width);
  if (m.shared_width > 0) text += fmt::format(", shared width {}", m.shared_width);
  return text;
}

// Sentences with the layers they are true of, in the order of their first layer.
using Sentences = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

void add(Sentences& sentences, std::string text, std::int64_t layer) {
  for (auto& [known, layers] : sentences) {
    if (known != text) continue;
    layers.push_back(layer);
    return;
  }
  sentences.push_back({std::move(text), {layer}});
}

void append(const Sentences& sentences, std::size_t all, std::vector<std::string>& out) {
  for (const auto& [text, layers] : sentences) {
    const bool everywhere = layers.size() == all;
    out.push_back(everywhere ? text : fmt::format("{} (layers {})", text, layer_numbers(layers)));
  }
}

}  // namespace

std::vector<std::string> describe_architecture(const model::Config& config) {
  Sentences attention, mlp;
  for (std::size_t i = 0; i < config.kind_of_layer.size(); ++i) {
    const model::LayerKind& kind = config.kinds.at(config.kind_of_layer[i]);
    const auto layer = config.first_layer + static_cast<std::int64_t>(i);
    add(attention, describe(kind.attention), layer);
    add(mlp, describe(kind.mlp), layer);
  }
  std::vector<std::string> out;
  append(attention, config.kind_of_layer.size(), out);
  append(mlp, config.kind_of_layer.size(), out);
  return out;
}

std::string describe_types(const model::Config& config) {
  std::string weights = config.weight.type;
  std::string products = config.arithmetic;
  if (config.quantization) {
    weights = fmt::format("{} where quantised ({}), else {}", config.quantization->weight.type,
                          config.quantization->method, config.weight.type);
    if (!config.quantization->arithmetic.empty()) products = config.quantization->arithmetic + " and " + products;
  }
  if (!config.stored.empty()) weights = "as the checkpoint holds them";
  return fmt::format("weights {}, KV cache {}, activations {}, products {}", weights, config.kv.type,
                     config.activation.type, products);
}

std::string describe_source(const model::Config& config, const std::optional<model::Checkpoint>& checkpoint) {
  if (config.stored.empty() || !checkpoint) return "analytic, from the config";
  return fmt::format("exact, from the headers of {} {} file{}: {} in {} tensors", checkpoint->files.size(),
                     checkpoint->format, checkpoint->files.size() == 1 ? "" : "s",
                     base::human_bytes(static_cast<double>(checkpoint->bytes)), checkpoint->tensors);
}

}  // namespace llmprof::analyze::design

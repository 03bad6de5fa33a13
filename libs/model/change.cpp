#include "model/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/axis.h"

namespace llmprof::model {
namespace {

constexpr std::int64_t kMostValue = 1'000'000'000, kMostLayers = 100'000;

Error refuse(std::string message) { return Error{ErrorCode::kUsage, std::move(message), ""}; }

template <class Edit>
Result<void> edit_kinds(Config& config, const Edit& edit) {
  for (LayerKind& kind : config.kinds) edit(kind);
  return {};
}

Error uneven(std::int64_t heads, std::int64_t kv_heads) {
  return refuse(fmt::format("{} heads cannot share {} key-value heads evenly", heads, kv_heads));
}

Result<void> set_heads(Config& config, std::int64_t heads) {
  for (const LayerKind& kind : config.kinds) {
    const std::int64_t kv_heads = std::max<std::int64_t>(1, kind.attention.kv_heads);
    if (heads % kv_heads != 0) return uneven(heads, kv_heads);
  }
  return edit_kinds(config, [&](LayerKind& kind) { kind.attention.heads = heads; });
}

Result<void> set_kv_heads(Config& config, std::int64_t kv_heads) {
  for (const LayerKind& kind : config.kinds) {
    if (kind.attention.latent()) return refuse("this model keeps a latent: it has no key-value heads to change");
    if (kind.attention.heads % kv_heads != 0) return uneven(kind.attention.heads, kv_heads);
  }
  return edit_kinds(config, [&](LayerKind& kind) { kind.attention.kv_heads = kv_heads; });
}

// More layers repeat those that are there, in their order.
Result<void> set_layer_count(Config& config, std::int64_t layers) {
  if (layers > kMostLayers) return refuse(fmt::format("{} layers are too many", layers));
  const std::vector<std::uint32_t> kinds = config.kind_of_layer;
  if (kinds.empty()) return refuse("this model has no layers");
  config.kind_of_layer.clear();
  for (std::int64_t i = 0; i < layers; ++i)
    config.kind_of_layer.push_back(kinds[static_cast<std::size_t>(i) % kinds.size()]);
  return {};
}

Result<void> set_width(Config& config, std::int64_t width) {
  return edit_kinds(config, [&](LayerKind& kind) { kind.mlp.width = width; });
}

Result<void> set_vocab(Config& config, std::int64_t vocab) {
  config.vocab = vocab;
  return {};
}

Result<void> set_experts_per_token(Config& config, std::int64_t count) {
  bool any = false;
  for (const LayerKind& kind : config.kinds) {
    any = any || kind.mlp.experts > 0;
    if (kind.mlp.experts > 0 && count > kind.mlp.experts)
      return refuse(fmt::format("{} experts per token of {}", count, kind.mlp.experts));
  }
  if (!any) return refuse("this model has no experts");
  return edit_kinds(config, [&](LayerKind& kind) {
    if (kind.mlp.experts > 0) kind.mlp.experts_per_token = count;
  });
}

Result<void> set_window(Config& config, std::int64_t tokens) {
  return edit_kinds(config, [&](LayerKind& kind) { kind.attention.window = tokens; });
}

struct Size {
  std::string_view key;
  Result<void> (*apply)(Config&, std::int64_t);
};
constexpr Size kSizes[] = {{"heads", set_heads},        {"kv_heads", set_kv_heads},
                           {"layers", set_layer_count}, {"intermediate", set_width},
                           {"vocab", set_vocab},        {"experts_per_token", set_experts_per_token},
                           {"window", set_window}};

struct Type {
  std::string_view key;
  std::string Types::*member;
};
constexpr Type kTypes[] = {{"dtype", &Types::weights},
                           {"kv_dtype", &Types::kv},
                           {"activation_dtype", &Types::activations},
                           {"arithmetic", &Types::arithmetic}};

}  // namespace

std::span<const std::string_view> change_keys() {
  static const auto kAll = [] {
    std::array<std::string_view, std::size(kTypes) + std::size(kSizes)> keys;
    auto* next = keys.begin();
    for (const Type& type : kTypes) *next++ = type.key;
    for (const Size& size : kSizes) *next++ = size.key;
    return keys;
  }();
  return kAll;
}

bool is_change_key(std::string_view key) { return std::ranges::find(change_keys(), key) != change_keys().end(); }

Result<void> change(Config& config, std::string_view key, std::string_view value) {
  config.stored.clear();
  for (const Type& type : kTypes) {
    if (type.key != key) continue;
    Types types;
    types.*type.member = value;
    return set_types(config, types);
  }
  const auto* const size = std::ranges::find(kSizes, key, &Size::key);
  if (size == std::end(kSizes)) return refuse(fmt::format("a model has no {}", key));
  const Result<std::int64_t> count = base::parse_count(value);
  if (!count || *count < 1 || *count > kMostValue)
    return refuse(fmt::format("{}: '{}' is not a number from 1 on", key, value));
  return size->apply(config, *count);
}

}  // namespace llmprof::model

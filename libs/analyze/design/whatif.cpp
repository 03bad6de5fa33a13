#include "analyze/design/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/axis.h"
#include "base/suggest.h"

namespace llmprof::analyze::design {
namespace {

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

constexpr std::int64_t kMostValue = 1'000'000'000;

// Every layer of the model alike.
template <class Edit>
void edit_kinds(model::Config& config, const Edit& edit) {
  for (model::LayerKind& kind : config.kinds) edit(kind);
  config.stored.clear();  // sizes of a checkpoint are of the model as it was
}

struct Key {
  std::string_view name;
  Result<void> (*apply)(ModelSetup&, std::int64_t);
};

Result<void> set_heads(ModelSetup& setup, std::int64_t heads) {
  for (const model::LayerKind& kind : setup.subject.config.kinds) {
    if (heads % std::max<std::int64_t>(1, kind.attention.kv_heads) != 0)
      return usage(fmt::format("{} heads cannot share {} key-value heads evenly", heads, kind.attention.kv_heads));
  }
  edit_kinds(setup.subject.config, [&](model::LayerKind& kind) { kind.attention.heads = heads; });
  return {};
}

Result<void> set_kv_heads(ModelSetup& setup, std::int64_t heads) {
  for (const model::LayerKind& kind : setup.subject.config.kinds) {
    if (kind.attention.latent()) return usage("this model keeps a latent: it has no key-value heads to change");
    if (kind.attention.heads % heads != 0)
      return usage(fmt::format("{} heads cannot share {} key-value heads evenly", kind.attention.heads, heads));
  }
  edit_kinds(setup.subject.config, [&](model::LayerKind& kind) { kind.attention.kv_heads = heads; });
  return {};
}

Result<void> set_layers_of(ModelSetup& setup, std::int64_t layers) {
  model::Config& config = setup.subject.config;
  if (layers > 100'000) return usage(fmt::format("{} layers are too many", layers));
  const std::vector<std::uint32_t> kinds = config.kind_of_layer;
  config.kind_of_layer.clear();
  for (std::int64_t i = 0; i < layers; ++i)
    config.kind_of_layer.push_back(kinds[static_cast<std::size_t>(i) % kinds.size()]);
  config.stored.clear();
  return {};
}

Result<void> set_width(ModelSetup& setup, std::int64_t width) {
  edit_kinds(setup.subject.config, [&](model::LayerKind& kind) { kind.mlp.width = width; });
  return {};
}

Result<void> set_experts_per_token(ModelSetup& setup, std::int64_t count) {
  for (const model::LayerKind& kind : setup.subject.config.kinds) {
    if (kind.mlp.experts > 0 && count > kind.mlp.experts)
      return usage(fmt::format("{} experts per token of {}", count, kind.mlp.experts));
  }
  edit_kinds(setup.subject.config, [&](model::LayerKind& kind) {
    if (kind.mlp.experts > 0) kind.mlp.experts_per_token = count;
  });
  return {};
}

Result<void> set_window(ModelSetup& setup, std::int64_t tokens) {
  edit_kinds(setup.subject.config, [&](model::LayerKind& kind) { kind.attention.window = tokens; });
  return {};
}

template <auto kMember>
Result<void> set_option(ModelSetup& setup, std::int64_t value) {
  setup.options.*kMember = value;
  return {};
}
template <auto kMember>
Result<void> set_parallel(ModelSetup& setup, std::int64_t value) {
  setup.options.parallel.*kMember = value;
  return {};
}

constexpr Key kKeys[] = {{"batch", set_option<&Options::batch>},
                         {"prompt", set_option<&Options::prompt>},
                         {"context", set_option<&Options::context>},
                         {"tp", set_parallel<&model::Parallel::tensor>},
                         {"pp", set_parallel<&model::Parallel::pipeline>},
                         {"ep", set_parallel<&model::Parallel::expert>},
                         {"heads", set_heads},
                         {"kv_heads", set_kv_heads},
                         {"layers", set_layers_of},
                         {"intermediate", set_width},
                         {"experts_per_token", set_experts_per_token},
                         {"window", set_window}};
constexpr std::array<std::string_view, 4> kTypes = {"dtype", "kv_dtype", "activation_dtype", "arithmetic"};

Result<bool> set_type(ModelSetup& setup, std::string_view key, std::string_view value) {
  model::Types types;
  std::string* const into = key == "dtype"              ? &types.weights
                            : key == "kv_dtype"         ? &types.kv
                            : key == "activation_dtype" ? &types.activations
                            : key == "arithmetic"       ? &types.arithmetic
                                                        : nullptr;
  if (into == nullptr) return false;
  *into = value;
  setup.subject.config.stored.clear();
  LLMPROF_TRY(model::set_types(setup.subject.config, types));
  return true;
}

}  // namespace

Result<void> set(ModelSetup& setup, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  if (equals == std::string_view::npos || equals + 1 == setting.size())
    return usage(fmt::format("--set: '{}' is not KEY=VALUE", setting), "as in --set dtype=float8 --set kv_heads=4");
  const std::string_view value = setting.substr(equals + 1);
  LLMPROF_LET(const bool is_type, set_type(setup, key, value));
  if (is_type) return {};
  const auto* const found = std::ranges::find(kKeys, key, &Key::name);
  if (found == std::end(kKeys)) {
    std::vector<std::string> known(kTypes.begin(), kTypes.end());
    for (const Key& each : kKeys) known.emplace_back(each.name);
    known.emplace_back("device");
    return usage(fmt::format("--set: nothing is called '{}'", key), base::did_you_mean(key, known));
  }
  const Result<std::int64_t> count = base::parse_count(value);
  if (!count || *count < 1 || *count > kMostValue)
    return usage(fmt::format("--set {}: '{}' is not a number from 1 on", key, value));
  return found->apply(setup, *count);
}

std::vector<ExpectedStage> expected(const Design& before, const Design& after,
                                    const std::vector<MeasuredStage>& measured) {
  std::vector<ExpectedStage> out;
  for (const MeasuredStage& stage : measured) {
    const Stage *a = before.stage(stage.stage), *b = after.stage(stage.stage);
    if (a == nullptr || b == nullptr || !a->floor.ns || !b->floor.ns || !(*a->floor.ns > 0) || !(stage.ns > 0))
      continue;
    const double busy_ns = stage.ns * std::clamp(stage.busy.value_or(1), 0.0, 1.0);
    const double by_floor = std::max(*b->floor.ns, stage.ns + *b->floor.ns - *a->floor.ns);
    const double by_ratio = std::max(*b->floor.ns, stage.ns - busy_ns + busy_ns * *b->floor.ns / *a->floor.ns);
    out.push_back({stage.stage, stage.ns, *a->floor.ns, *b->floor.ns, std::min(by_floor, by_ratio),
                   std::max(by_floor, by_ratio)});
  }
  return out;
}

Result<std::vector<Gradient>> gradients(const ModelSetup& setup) {
  LLMPROF_LET(const Design base, make_design(setup.subject, setup.options, setup.roof));
  const model::Config& config = setup.subject.config;
  const std::int64_t context = base.options.context, layers = config.layers();
  const model::Attention& attention = config.kinds.front().attention;
  std::vector<std::pair<std::string, std::string>> steps = {
      {"1 layer more", fmt::format("layers={}", layers + 1)},
      {"1 k more context", fmt::format("context={}", context + 1024)},
      {"1 k more prompt", fmt::format("prompt={}", base.options.prompt + 1024)},
      {"1 sequence more", fmt::format("batch={}", base.options.batch + 1)},
      {"twice the batch", fmt::format("batch={}", 2 * base.options.batch)}};
  if (!attention.latent() && attention.kv_heads * 2 <= attention.heads)
    steps.emplace_back("twice the key-value heads", fmt::format("kv_heads={}", 2 * attention.kv_heads));
  if (!attention.latent() && attention.kv_heads % 2 == 0)
    steps.emplace_back("half the key-value heads", fmt::format("kv_heads={}", attention.kv_heads / 2));
  std::vector<Gradient> out;
  for (const auto& [what, setting] : steps) {
    ModelSetup changed = setup;
    if (!set(changed, setting)) continue;
    const Result<Design> design = make_design(changed.subject, changed.options, changed.roof);
    if (!design) continue;  // longer than the model allows
    const auto less = [](const std::optional<double>& a, const std::optional<double>& b) {
      return a && b ? std::optional(*a - *b) : std::nullopt;
    };
    out.push_back(
        {what, less(design->speeds.ttft_ns, base.speeds.ttft_ns), less(design->speeds.tpot_ns, base.speeds.tpot_ns),
         less(design->speeds.tokens_per_s, base.speeds.tokens_per_s), design->memory.needed() - base.memory.needed()});
  }
  return out;
}

std::vector<Cliff> cliffs(const Design& design) {
  std::vector<Cliff> out;
  const std::int64_t batch = design.options.batch, context = design.options.context;
  if (design.memory.largest_batch && *design.memory.largest_batch > 0) {
    out.push_back({"memory", fmt::format("batch {} is the largest at context {}; the batch is {}",
                                         *design.memory.largest_batch, context, batch)});
  }
  if (design.memory.longest_context && *design.memory.longest_context > 0) {
    out.push_back(
        {"memory", fmt::format("context {} is the longest with batch {}", *design.memory.longest_context, batch)});
  }
  // Products of few rows are computed in tiles of 8 (tensor cores), engines capture graphs in steps of 8 from 8 on.
  if (batch > 8 && batch % 8 != 0) {
    out.push_back({"rows of products", fmt::format("a batch of {} takes about as long as {}: tiles and CUDA graphs of "
                                                   "engines have multiples of 8 rows",
                                                   batch, (batch + 7) / 8 * 8)});
  }
  return out;
}

}  // namespace llmprof::analyze::design

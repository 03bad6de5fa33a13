#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "model/families.h"
#include "model/model.h"
#include "model/op.h"
#include "model/pass.h"
#include "model/quantization.h"

namespace llmprof::model {

namespace {

Structure structure_of(const Config& config) {
  const Family* family = find_family(config.family);
  LLMPROF_ASSERT(family != nullptr);
  return family != nullptr ? family->describe(config) : Structure{};
}

// Biases stay as they are: bytes are the average over matrix and bias.
Number quantised_weight(const Op& op, const Config& config) {
  Number weight = config.quantization->weight;
  const auto matrix = static_cast<double>(op.multiply_adds), all = static_cast<double>(op.parameters);
  if (all > matrix) weight.bytes = (matrix * weight.bytes + (all - matrix) * config.weight.bytes) / all;
  return weight;
}

// Weights as the checkpoint holds them, else as the quantisation says, else plain.
void settle(Op& op, const std::string& module, const Config& config, const Coverage* coverage) {
  const bool quantised = op.quantisable && coverage != nullptr && coverage->covers(module);
  const auto stored = config.stored.find(module);
  op.weight = stored != config.stored.end() ? stored->second : quantised ? quantised_weight(op, config) : config.weight;
  const bool own = quantised && !config.quantization->arithmetic.empty();
  op.arithmetic = own ? config.quantization->arithmetic : config.arithmetic;
}

// Only then do equal layers differ in the types of their weights.
bool settled_by_path(const Config& config) { return config.quantization || !config.stored.empty(); }

bool same_types(const std::vector<Op>& a, const std::vector<Op>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Op& x, const Op& y) { return x.weight == y.weight && x.arithmetic == y.arithmetic; });
}

}  // namespace

Graph::Graph(const Config& config) : config_(config) {
  Structure structure = structure_of(config);
  layer_prefix_ = structure.layer_prefix;
  const auto coverage = config.quantization ? std::make_unique<const Coverage>(*config.quantization) : nullptr;
  if (config.has_first) first_.ops = std::move(structure.first);
  if (config.has_last) last_.ops = std::move(structure.last);
  for (Group* group : {&first_, &last_}) {
    for (Op& op : group->ops) settle(op, op.name, config, coverage.get());
  }
  std::vector<std::vector<std::uint32_t>> groups_of_kind(structure.kinds.size());
  for (std::size_t i = 0; i < config.kind_of_layer.size(); ++i) {
    const std::uint32_t kind = config.kind_of_layer[i];
    const std::int64_t number = config.first_layer + static_cast<std::int64_t>(i);
    const std::uint32_t group = group_of(number, structure.kinds.at(kind), groups_of_kind[kind], coverage.get());
    groups_[group].layers.push_back(number);
    group_of_layer_.push_back(group);
  }
}

std::uint32_t Graph::group_of(std::int64_t layer, const std::vector<Op>& kind, std::vector<std::uint32_t>& candidates,
                              const Coverage* coverage) {
  if (!candidates.empty() && !settled_by_path(config_)) return candidates.front();
  std::vector<Op> ops = kind;
  for (Op& op : ops) settle(op, fmt::format("{}.{}.{}", layer_prefix_, layer, op.name), config_, coverage);
  for (const std::uint32_t candidate : candidates) {
    if (same_types(groups_[candidate].ops, ops)) return candidate;
  }
  candidates.push_back(static_cast<std::uint32_t>(groups_.size()));
  groups_.push_back({.ops = std::move(ops), .layers = {}});
  return candidates.back();
}

std::string_view class_name(OpClass op_class) {
  switch (op_class) {
    case OpClass::kEmbedding:
      return "embedding";
    case OpClass::kNorm:
      return "norm";
    case OpClass::kProjection:
      return "projection";
    case OpClass::kRope:
      return "rope";
    case OpClass::kAttention:
      return "attention";
    case OpClass::kElementwise:
      return "elementwise";
    case OpClass::kRouter:
      return "router";
    case OpClass::kLogits:
      return "logits";
    case OpClass::kSampling:
      return "sampling";
    case OpClass::kLoss:
      return "loss";
  }
  return "unknown";
}

std::int64_t Op::own_parameters() const {
  std::int64_t total = borrowed ? 0 : parameters * (experts ? experts->here : 1);
  for (const Lookup& table : lookups) total += table.rows * table.width;
  return total;
}

Op linear(const Linear& linear) {
  Op op{.name = linear.name,
        .op_class = OpClass::kProjection,
        .multiply_adds = linear.in * linear.out,
        .in = linear.in,
        .out = linear.out,
        .parameters = linear.in * linear.out + (linear.bias ? linear.out : 0),
        .quantisable = true,
        .tensors = {linear.in, linear.out},
        .backward_reads = linear.in * linear.out,
        .backward_tensors = {linear.in, linear.out, linear.in},  // input, output's gradient, input's gradient
        .kept = linear.kept ? linear.out : 0};
  // On the way back the residual stream's gradient is the product's own: no tensor more.
  if (linear.residual) op.tensors.push_back(linear.out);
  return op;
}

Op norm(std::string name, const Config& config, Rows rows) {
  Op op{.name = std::move(name),
        .op_class = OpClass::kNorm,
        .rows = rows,
        .parameters = config.hidden * (config.norm_bias ? 2 : 1),
        .tensors = {config.hidden, config.hidden},
        .backward_reads = config.hidden,
        .backward_tensors = {config.hidden, config.hidden, config.hidden},
        .kept = config.hidden};
  // Inside a layer the input's gradient is added to that of the residual stream.
  if (rows == Rows::kTokens) op.backward_tensors.push_back(config.hidden);
  return op;
}

Op norm_of(std::string name, std::int64_t weights, std::int64_t values) {
  return {.name = std::move(name),
          .op_class = OpClass::kNorm,
          .parameters = weights,
          .tensors = {values, values},
          .backward_reads = weights,
          .backward_tensors = {values, values, values},
          .kept = values};
}

Op elementwise(std::string name, OpClass op_class, std::vector<std::int64_t> tensors,
               std::vector<std::int64_t> backward_tensors, std::int64_t kept) {
  return {.name = std::move(name),
          .op_class = op_class,
          .tensors = std::move(tensors),
          .backward_tensors = std::move(backward_tensors),
          .kept = kept};
}

Op attention_core(std::string name, const Attention& attention) {
  const std::int64_t q = attention.heads * attention.qk_dim, result = attention.heads * attention.v_dim;
  const std::int64_t k = attention.kv_heads * attention.qk_dim, v = attention.kv_heads * attention.v_dim;
  return {.name = std::move(name),
          .op_class = OpClass::kAttention,
          .parameters = attention.sinks ? attention.heads : 0,
          .attention = attention,
          .tensors = {q, result},                          // K and V are the cache
          .backward_tensors = {q, k, v, result, q, k, v},  // q, k, v, the result's gradient; those of q, k, v
          .kept = result};
}

Op embedding(std::string name, const Config& config) {
  Op op{.name = std::move(name),
        .op_class = OpClass::kEmbedding,
        .lookups = {{config.vocab, config.hidden}},
        .tensors = {config.hidden},
        .backward_tensors = {config.hidden},
        .kept = config.hidden};
  if (config.position_table) op.lookups.push_back({config.positions, config.hidden, true});
  return op;
}

Op lm_head(const Config& config) {
  Op op = linear({.name = "lm_head", .in = config.hidden, .out = config.vocab});
  op.op_class = OpClass::kLogits;
  op.quantisable = false;
  op.rows = Rows::kSampled;
  op.borrowed = config.tied_embeddings && config.has_first;
  return op;
}

Op sampling(const Config& config) {
  return {.name = "sampling",
          .op_class = OpClass::kSampling,
          .rows = Rows::kSampled,
          .tensors = {config.vocab},
          .use = Use::kInference};
}

Op loss(const Config& config) {
  return {.name = "loss",
          .op_class = OpClass::kLoss,
          .rows = Rows::kSampled,
          .tensors = {config.vocab},
          .backward_tensors = {config.vocab, config.vocab},  // logits, their gradient
          .use = Use::kTraining};
}

Pass prefill(std::int64_t batch, std::int64_t tokens, std::int64_t context) {
  return {.sequences = {{.count = batch, .tokens = tokens, .context = context > 0 ? context : tokens, .sampled = 1}}};
}

Pass decode(std::int64_t batch, std::int64_t context) {
  return {.sequences = {{.count = batch, .tokens = 1, .context = context, .sampled = 1}}};
}

Pass mixed(std::vector<Sequences> sequences) { return {.sequences = std::move(sequences)}; }

Pass train(PassKind kind, std::int64_t batch, std::int64_t tokens) {
  return {.kind = kind, .sequences = {{.count = batch, .tokens = tokens, .context = tokens, .sampled = tokens}}};
}

}  // namespace llmprof::model

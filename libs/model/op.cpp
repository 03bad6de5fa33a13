#include "model/op.h"

namespace llmprof::model {

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

}  // namespace llmprof::model

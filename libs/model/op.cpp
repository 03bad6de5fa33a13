#include "model/op.h"

namespace llmprof::model {

std::int64_t Op::own_parameters() const {
  std::int64_t total = borrowed ? 0 : parameters;
  for (const Lookup& table : lookups) total += table.rows * table.width;
  return total;
}

Op linear(const Linear& linear) {
  Op op{.name = linear.name,
        .multiply_adds = linear.in * linear.out,
        .parameters = linear.in * linear.out + (linear.bias ? linear.out : 0),
        .tensors = {linear.in, linear.out},
        .backward_reads = linear.in * linear.out,
        .backward_tensors = {linear.in, linear.out, linear.in}};  // input, output's gradient, input's gradient
  // On the way back the residual stream's gradient is the product's own: no tensor more.
  if (linear.residual) op.tensors.push_back(linear.out);
  return op;
}

Op norm(std::string name, const Config& config, Rows rows) {
  Op op{.name = std::move(name),
        .rows = rows,
        .parameters = config.hidden * (config.biases ? 2 : 1),
        .tensors = {config.hidden, config.hidden},
        .backward_reads = config.hidden,
        .backward_tensors = {config.hidden, config.hidden, config.hidden}};
  // Inside a layer the input's gradient is added to that of the residual stream.
  if (rows == Rows::kTokens) op.backward_tensors.push_back(config.hidden);
  return op;
}

Op elementwise(std::string name, std::vector<std::int64_t> tensors, std::vector<std::int64_t> backward_tensors) {
  return {.name = std::move(name), .tensors = std::move(tensors), .backward_tensors = std::move(backward_tensors)};
}

Op attention_core(std::string name, const Config& config) {
  const std::int64_t q = config.heads * config.head_dim;
  const std::int64_t kv = config.kv_heads * config.head_dim;
  return {.name = std::move(name),
          .attention = true,
          .tensors = {q, q},                               // q in, result out; K and V are the cache
          .backward_tensors = {q, kv, kv, q, q, kv, kv}};  // q, k, v, the result's gradient; those of q, k, v
}

Op embedding(std::string name, const Config& config, std::vector<Lookup> lookups) {
  return {.name = std::move(name),
          .lookups = std::move(lookups),
          .tensors = {config.hidden},
          .backward_tensors = {config.hidden}};
}

Op lm_head(const Config& config) {
  Op op = linear({.name = "lm_head", .in = config.hidden, .out = config.vocab});
  op.rows = Rows::kSampled;
  op.borrowed = config.tied_embeddings;
  return op;
}

Op sampling(const Config& config) {
  return {.name = "sampling", .rows = Rows::kSampled, .tensors = {config.vocab}, .use = Use::kInference};
}

Op loss(const Config& config) {
  return {.name = "loss",
          .rows = Rows::kSampled,
          .tensors = {config.vocab},
          .backward_tensors = {config.vocab, config.vocab},  // logits, their gradient
          .use = Use::kTraining};
}

}  // namespace llmprof::model

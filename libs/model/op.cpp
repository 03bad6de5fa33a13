#include "model/op.h"

namespace llmprof::model {

Op linear(const Linear& linear) {
  Op op{.name = linear.name,
        .multiply_adds = linear.in * linear.out,
        .parameters = linear.in * linear.out + (linear.bias ? linear.out : 0),
        .tensors = {linear.in, linear.out}};
  if (linear.residual) op.tensors.push_back(linear.out);
  return op;
}

Op norm(std::string name, const Config& config, Rows rows) {
  return {.name = std::move(name),
          .rows = rows,
          .parameters = config.hidden * (config.biases ? 2 : 1),
          .tensors = {config.hidden, config.hidden}};
}

Op elementwise(std::string name, std::vector<std::int64_t> tensors) {
  return {.name = std::move(name), .tensors = std::move(tensors)};
}

Op attention_core(std::string name, const Config& config) {
  const std::int64_t width = config.heads * config.head_dim;
  return {.name = std::move(name),
          .attention = true,
          .tensors = {width, width}};  // q in, result out; K and V are the cache
}

Op embedding(std::string name, const Config& config, std::vector<Lookup> lookups) {
  return {.name = std::move(name), .lookups = std::move(lookups), .tensors = {config.hidden}};
}

Op lm_head(const Config& config) {
  Op op = linear({.name = "lm_head", .in = config.hidden, .out = config.vocab});
  op.rows = Rows::kSampled;
  op.borrowed = config.tied_embeddings;
  return op;
}

Op sampling(const Config& config) { return {.name = "sampling", .rows = Rows::kSampled, .tensors = {config.vocab}}; }

}  // namespace llmprof::model

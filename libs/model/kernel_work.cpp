#include "model/kernel_work.h"

#include "model/cost.h"

namespace llmprof::model {

KernelWork product_work(const Product& p) {
  return {.flops = 2 * p.count * p.m * p.n * p.k,
          .read_bytes = p.count * (p.m * p.k * p.a_bytes + p.k * p.n * p.b_bytes),
          .write_bytes = p.count * p.m * p.n * p.c_bytes};
}

KernelWork streaming_work(double read_values, double written_values, double value_bytes, double parameters) {
  return {.read_bytes = (read_values + parameters) * value_bytes, .write_bytes = written_values * value_bytes};
}

KernelWork attention_work(const Attention& a, double count, double tokens, double context, double value_bytes) {
  const auto heads = static_cast<double>(a.heads);
  const double query = a.latent() ? static_cast<double>(a.kv_rank + a.rope_dim) : static_cast<double>(a.qk_dim);
  const double value = a.latent() ? static_cast<double>(a.kv_rank) : static_cast<double>(a.v_dim);
  const double cached = attended_keys(a, tokens, context) * static_cast<double>(a.kv_values());
  return {.flops = count * 2 * heads * (query + value) * attended_pairs(a, tokens, context),
          .read_bytes = count * (tokens * heads * query + cached) * value_bytes,
          .write_bytes = count * tokens * heads * value * value_bytes};
}

KernelWork experts_work(const ExpertLayer& layer) {
  const Experts experts{.all = layer.experts, .here = layer.experts, .per_token = layer.per_token};
  const auto tokens = static_cast<double>(layer.tokens), hidden = static_cast<double>(layer.hidden);
  const auto intermediate = static_cast<double>(layer.intermediate);
  const double rows = tokens * static_cast<double>(layer.per_token);
  const double weights = distinct_experts(experts, tokens) * 3 * hidden * intermediate;
  // Gate and up read each row once and write twice the intermediate; their product is read and written; down likewise.
  const double read = rows * hidden + rows * 2 * intermediate + rows * intermediate;
  const double written = rows * 2 * intermediate + rows * intermediate + tokens * hidden;
  return {.flops = 2 * rows * 3 * hidden * intermediate,
          .read_bytes = (weights + read) * layer.value_bytes,
          .write_bytes = written * layer.value_bytes};
}

KernelWork convolution_work(const Convolution& c) {
  const auto outputs = static_cast<double>(c.batch * c.out_height() * c.out_width());
  const auto weights = static_cast<double>(c.out_channels * c.in_channels * c.kernel * c.kernel);
  const auto input = static_cast<double>(c.batch * c.in_channels * c.height * c.width);
  return {.flops = 2 * outputs * weights,
          .read_bytes = (input + weights) * c.value_bytes,
          .write_bytes = outputs * static_cast<double>(c.out_channels) * c.value_bytes};
}

KernelWork lstm_work(const Lstm& l) {
  const auto rows = static_cast<double>(l.batch * l.steps), hidden = static_cast<double>(l.hidden);
  double weights = 0;
  for (std::int64_t layer = 0; layer < l.layers; ++layer) {
    weights += 4 * hidden * (static_cast<double>(layer == 0 ? l.in : l.hidden) + hidden);
  }
  const double biases = static_cast<double>(l.layers) * 8 * hidden;
  const double states = static_cast<double>(l.layers * l.batch) * hidden;
  return {.flops = 2 * rows * weights,
          .read_bytes = (weights + biases + rows * static_cast<double>(l.in) + 2 * states) * l.value_bytes,
          .write_bytes = (rows * hidden + 2 * states) * l.value_bytes};
}

}  // namespace llmprof::model

#include "model/memory.h"

#include <algorithm>

#include "model/cost.h"

namespace llmprof::model {
namespace {

template <class Visit>
void for_each_op(const Graph& graph, Visit visit) {
  for (const Op& op : graph.first().ops) visit(op, 1.0);
  for (const Graph::Group& group : graph.groups()) {
    for (const Op& op : group.ops) visit(op, static_cast<double>(group.layers.size()));
  }
  for (const Op& op : graph.last().ops) visit(op, 1.0);
}

bool is_core(const Op& op) { return op.attention && !op.latent_expansion; }

double kept_tokens(const Attention& attention, double context) {
  if (attention.chunk > 0) return std::min(context, static_cast<double>(attention.chunk));
  if (attention.window > 0) return std::min(context, static_cast<double>(attention.window));
  return context;
}

bool cheap(const Op& op) {
  return op.op_class == OpClass::kNorm || op.op_class == OpClass::kRope || op.op_class == OpClass::kElementwise;
}

double kept_bytes(const Op& op, const Config& config, const Amounts& amounts, Recompute recompute) {
  if (op.use == Use::kInference || (recompute == Recompute::kCheap && cheap(op))) return 0;
  return static_cast<double>(op.kept) * rows_of(op, amounts) * config.activation.bytes;
}

double group_kept_bytes(const std::vector<Op>& ops, const Config& config, const Amounts& amounts, Recompute recompute) {
  double total = 0;
  for (const Op& op : ops) total += kept_bytes(op, config, amounts, recompute);
  return total;
}

// The input of every layer, and while its way back runs all results of the largest layer.
double layer_activations(const Graph& graph, const Amounts& amounts, Recompute recompute) {
  const Config& config = graph.config();
  double all = 0, largest = 0;
  for (const Graph::Group& group : graph.groups()) {
    const double one = group_kept_bytes(group.ops, config, amounts, recompute);
    all += one * static_cast<double>(group.layers.size());
    largest = std::max(largest, one);
  }
  if (recompute != Recompute::kLayers) return all;
  const double input = static_cast<double>(config.hidden) * amounts.rows(Rows::kTokens) * config.activation.bytes;
  return std::min(all, input * static_cast<double>(graph.config().layers()) + largest);
}

double layer_flops(const Graph& graph, const Amounts& amounts) {
  double flops = 0;
  for (const Graph::Group& group : graph.groups()) {
    for (const Op& op : group.ops) {
      flops += forward_cost(op, graph.config(), amounts, {}).flops * static_cast<double>(group.layers.size());
    }
  }
  return flops;
}

}  // namespace

double weights_bytes(const Graph& graph) {
  double total = 0;
  for_each_op(graph, [&](const Op& op, double layers) {
    total += layers * static_cast<double>(op.own_parameters()) * op.weight.bytes;
  });
  return total;
}

double kv_cache_bytes(const Graph& graph, std::int64_t batch, std::int64_t context) {
  double values = 0;
  for_each_op(graph, [&](const Op& op, double layers) {
    if (!is_core(op)) return;
    const double tokens = kept_tokens(*op.attention, static_cast<double>(std::max<std::int64_t>(0, context)));
    values += layers * tokens * static_cast<double>(op.attention->kv_values());
  });
  return values * static_cast<double>(std::max<std::int64_t>(0, batch)) * graph.config().kv.bytes;
}

double kv_bytes_per_token(const Graph& graph) { return kv_cache_bytes(graph, 1, 1); }

double activation_bytes(const Graph& graph, const Pass& pass) {
  const Amounts amounts(pass);
  const Config& config = graph.config();
  double largest = 0;
  for_each_op(graph, [&](const Op& op, double) {
    if (!used(op, pass.kind)) return;
    double values = 0;
    for (const std::int64_t width : op.tensors) values += static_cast<double>(width) * rows_of(op, amounts);
    largest = std::max(largest, values);
  });
  const double residual = static_cast<double>(config.hidden) * amounts.rows(Rows::kTokens);
  return (largest + residual) * config.activation.bytes;
}

TrainingMemory training_memory(const Graph& graph, std::int64_t batch, std::int64_t tokens, Recompute recompute) {
  const Amounts amounts(train(PassKind::kForward, batch, tokens));
  const Config& config = graph.config();
  TrainingMemory memory;
  memory.weights = memory.gradients = weights_bytes(graph);
  memory.moments = 2 * kMomentBytes * static_cast<double>(parameters(graph));
  memory.activations = group_kept_bytes(graph.first().ops, config, amounts, recompute) +
                       group_kept_bytes(graph.last().ops, config, amounts, recompute) +
                       layer_activations(graph, amounts, recompute);
  if (recompute == Recompute::kLayers) memory.recomputed_flops = layer_flops(graph, amounts);
  return memory;
}

}  // namespace llmprof::model

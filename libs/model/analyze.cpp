#include <fmt/format.h>

#include <algorithm>

#include "model/cost.h"

namespace llmprof::model {
namespace {

template <class Visit>
void for_each_group(const Graph& graph, Visit visit) {
  visit(graph.first(), 1.0);
  for (const Graph::Group& group : graph.groups()) visit(group, static_cast<double>(group.layers.size()));
  visit(graph.last(), 1.0);
}

OpCost row_of(const Op& op, const Costs& costs) {
  OpCost row;
  static_cast<Costs&>(row) = costs;
  row.op = op.name;
  row.arithmetic = op.arithmetic;
  row.op_class = op.op_class;
  return row;
}

// Of what part of a model an operator is.
std::string_view part_of(const Op& op) {
  if (op.experts) return "experts";
  switch (op.op_class) {
    case OpClass::kEmbedding:
      return "embedding";
    case OpClass::kNorm:
      return "norms";
    case OpClass::kRouter:
      return "router";
    case OpClass::kLogits:
      return "logits";
    default:
      return op.name.find("attn") != std::string::npos || op.op_class == OpClass::kAttention ? "attention" : "mlp";
  }
}

}  // namespace

Costs& Costs::operator+=(const Costs& other) {
  flops += other.flops;
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  activation_bytes += other.activation_bytes;
  return *this;
}

Costs Costs::operator*(double factor) const {
  return {flops * factor, weight_bytes * factor, kv_bytes * factor, activation_bytes * factor};
}

std::int64_t parameters(const Graph& graph) {
  std::int64_t total = 0;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) total += op.own_parameters() * static_cast<std::int64_t>(layers);
  });
  return total;
}

std::int64_t active_parameters(const Graph& graph) {
  std::int64_t total = parameters(graph);
  for (const Graph::Group& group : graph.groups()) {
    for (const Op& op : group.ops) {
      if (!op.experts) continue;
      const std::int64_t idle = std::max<std::int64_t>(0, op.experts->here - op.experts->per_token);
      total -= idle * op.parameters * static_cast<std::int64_t>(group.layers.size());
    }
  }
  return total;
}

std::vector<PartParameters> parameters_by_part(const Graph& graph) {
  std::vector<PartParameters> parts;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) {
      const std::int64_t count = op.own_parameters() * static_cast<std::int64_t>(layers);
      if (count == 0) continue;
      const std::string_view name = part_of(op);
      auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p.part == name; });
      if (part == parts.end()) part = parts.insert(parts.end(), {.part = std::string(name)});
      part->parameters += count;
      part->bytes += static_cast<double>(count) * op.weight.bytes;
    }
  });
  return parts;
}

double weights_read_bytes(const Graph& graph) {
  double total = 0;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) {
      const double copies = op.experts ? static_cast<double>(op.experts->here) : 1;
      total += layers * copies * static_cast<double>(op.parameters) * op.weight.bytes;
    }
  });
  return total;
}

double training_state_bytes(const Graph& graph) {
  double total = 0;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) {
      const double beside = op.frozen ? 0 : op.weight.bytes + 2 * kMomentBytes;  // gradient and moments
      total += layers * static_cast<double>(op.own_parameters()) * (op.weight.bytes + beside);
    }
  });
  return total;
}

std::vector<std::string> arithmetic_types(const Graph& graph) {
  std::vector<std::string> types;
  for_each_group(graph, [&](const Graph::Group& group, double) {
    for (const Op& op : group.ops) {
      if (std::ranges::find(types, op.arithmetic) == types.end()) types.push_back(op.arithmetic);
    }
  });
  return types;
}

double gemm_flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
}

double gemm_bytes(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t element_bytes) {
  const auto rows = static_cast<double>(m), columns = static_cast<double>(n), inner = static_cast<double>(k);
  return (rows * inner + inner * columns + rows * columns) * static_cast<double>(batch) *
         static_cast<double>(element_bytes);
}

std::vector<OpCost> analyze(const Graph& graph, const Pass& pass, const Conditions& conditions) {
  const Amounts amounts(pass);
  const auto rows_of_group = [&](const Graph::Group& group) {
    std::vector<OpCost> rows;
    for (const Op& op : group.ops) {
      if (!used(op, pass.kind)) continue;
      rows.push_back(row_of(op, cost_of(op, graph.config(), pass.kind, amounts, conditions)));
    }
    return rows;
  };
  std::vector<OpCost> rows;
  const auto add = [&](const std::vector<OpCost>& group, const std::string& prefix) {
    for (const OpCost& row : group) {
      rows.push_back(row);
      rows.back().module = prefix + row.op;
    }
  };
  add(rows_of_group(graph.first()), "");
  std::vector<std::vector<OpCost>> groups;
  for (const Graph::Group& group : graph.groups()) groups.push_back(rows_of_group(group));
  for (std::size_t i = 0; i < graph.group_of_layer().size(); ++i) {
    const std::int64_t number = graph.config().first_layer + static_cast<std::int64_t>(i);
    add(groups[graph.group_of_layer()[i]], fmt::format("{}.{}.", graph.layer_prefix(), number));
  }
  add(rows_of_group(graph.last()), "");
  return rows;
}

std::vector<OpCost> analyze_by_op(const Graph& graph, const Pass& pass, const Conditions& conditions) {
  const Amounts amounts(pass);
  std::vector<OpCost> rows;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) {
      if (!used(op, pass.kind)) continue;
      const Costs costs = cost_of(op, graph.config(), pass.kind, amounts, conditions) * layers;
      const auto same = [&](const OpCost& row) { return row.op == op.name && row.arithmetic == op.arithmetic; };
      auto row = std::find_if(rows.begin(), rows.end(), same);
      if (row == rows.end()) {
        row = rows.insert(rows.end(), row_of(op, {}));
        row->module = op.name;
        row->layers = 0;
      }
      *row += costs;
      row->layers += static_cast<std::int64_t>(layers);
    }
  });
  return rows;
}

PassCosts total(const Graph& graph, const Pass& pass, const Conditions& conditions) {
  const Amounts amounts(pass);
  PassCosts sum;
  for_each_group(graph, [&](const Graph::Group& group, double layers) {
    for (const Op& op : group.ops) {
      if (!used(op, pass.kind)) continue;
      const Costs costs = cost_of(op, graph.config(), pass.kind, amounts, conditions) * layers;
      sum += costs;
      if (costs.flops > 0) sum.flops_by_type[op.arithmetic] += costs.flops;
    }
  });
  return sum;
}

}  // namespace llmprof::model

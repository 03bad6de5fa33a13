#include "analyze/design/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/numbers.h"

namespace llmprof::analyze::design {

namespace {

Row row_of(std::string name, const model::Costs& costs, const Floor& floor) {
  Row row;
  row.costs = costs;
  row.name = std::move(name);
  row.intensity = flops_per_byte(costs);
  row.floor = floor;
  return row;
}

// The operators of all stages of the pipeline; those of the same name and type together.
std::vector<model::OpCost> operator_costs(const Graphs& graphs, const model::Pass& pass,
                                          const model::Conditions& conditions) {
  std::vector<model::OpCost> rows;
  for (const model::Graph& graph : graphs.stages) {
    for (model::OpCost& cost : model::analyze_by_op(graph, pass, conditions)) {
      const auto same = [&](const model::OpCost& row) {
        return row.op == cost.op && row.arithmetic == cost.arithmetic;
      };
      const auto found = std::ranges::find_if(rows, same);
      if (found == rows.end()) {
        rows.push_back(std::move(cost));
      } else {
        *found += cost;
        found->layers += cost.layers;
      }
    }
  }
  return rows;
}

bool in_layers(const Graphs& graphs, std::string_view op) {
  const auto has = [&](const model::Graph::Group& group) {
    return std::ranges::any_of(group.ops, [&](const model::Op& o) { return o.name == op; });
  };
  return std::ranges::any_of(graphs.whole.groups(), has);
}

// Costs of one group of layers, or of what stands around them.
struct Bucket {
  std::string name;
  std::int64_t layers = 0, parameters = 0;
  model::PassCosts costs;

  void add(const model::OpCost& cost, double times) {
    costs += cost * times;
    if (cost.flops > 0) costs.flops_by_type[cost.arithmetic] += cost.flops * times;
  }
};

std::int64_t group_parameters(const model::Graph::Group& group) {
  std::int64_t sum = 0;
  for (const model::Op& op : group.ops) sum += op.own_parameters();
  return sum * static_cast<std::int64_t>(std::max<std::size_t>(1, group.layers.size()));
}

std::vector<Bucket> buckets_of(const model::Graph& graph) {
  std::vector<Bucket> buckets;
  buckets.push_back({.name = "before layers", .parameters = group_parameters(graph.first())});
  for (const model::Graph::Group& group : graph.groups()) {
    const auto count = static_cast<std::int64_t>(group.layers.size());
    buckets.push_back({.name = (count == 1 ? "layer " : "layers ") + layer_numbers(group.layers),
                       .layers = count,
                       .parameters = group_parameters(group)});
  }
  buckets.push_back({.name = "after layers", .parameters = group_parameters(graph.last())});
  return buckets;
}

// Number of the layer in "layers.3.mlp.up_proj"; nothing outside the layers.
std::optional<std::int64_t> layer_of(std::string_view module, std::string_view prefix) {
  if (!module.starts_with(prefix) || module.size() <= prefix.size() || module[prefix.size()] != '.')
    return std::nullopt;
  return base::leading_number<std::int64_t>(module.substr(prefix.size() + 1));
}

// Layers of a group cost the same: the first of them stands for all.
std::vector<Bucket> layer_costs(const model::Graph& graph, const model::Pass& pass,
                                const model::Conditions& conditions) {
  std::vector<Bucket> buckets = buckets_of(graph);
  bool after = false;
  for (const model::OpCost& cost : model::analyze(graph, pass, conditions)) {
    const std::optional<std::int64_t> number = layer_of(cost.module, graph.layer_prefix());
    if (!number) {
      (after ? buckets.back() : buckets.front()).add(cost, 1);
      continue;
    }
    after = true;
    const auto index = static_cast<std::size_t>(*number - graph.config().first_layer);
    const std::uint32_t group = graph.group_of_layer().at(index);
    const auto& layers = graph.groups()[group].layers;
    if (layers.front() == *number) buckets[group + 1].add(cost, static_cast<double>(layers.size()));
  }
  return buckets;
}

void add_shares(std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows) sum += row.floor.ns.value_or(0);
  for (Row& row : rows) {
    if (row.floor.ns && sum > 0) row.share = *row.floor.ns / sum;
  }
}

std::vector<Row> layer_rows(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions,
                            const hw::Roofline& roofline) {
  std::vector<Row> rows;
  for (const model::Graph& graph : graphs.stages) {
    for (Bucket& bucket : layer_costs(graph, pass, conditions)) {
      if (bucket.parameters == 0 && bucket.costs.flops + bucket.costs.bytes() <= 0) continue;
      Row row = row_of(std::move(bucket.name), bucket.costs,
                       roofline.floor(bucket.costs.flops_by_type, bucket.costs.bytes()));
      row.layers = bucket.layers;
      row.parameters = bucket.parameters;
      rows.push_back(std::move(row));
    }
  }
  add_shares(rows);
  return rows;
}

std::vector<Row> operator_rows(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions,
                               const hw::Roofline& roofline) {
  std::vector<Row> rows;
  for (const model::OpCost& cost : operator_costs(graphs, pass, conditions)) {
    Row row = row_of(cost.op, cost,
                     hw::floor_of(roofline.compute_ns(cost.arithmetic, cost.flops), roofline.memory_ns(cost.bytes())));
    row.arithmetic = cost.arithmetic;
    row.layers = in_layers(graphs, cost.op) ? cost.layers : 0;
    rows.push_back(std::move(row));
  }
  add_shares(rows);
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    const auto weight = [](const Row& r) { return std::tuple(r.floor.ns.value_or(0), r.costs.flops, r.costs.bytes()); };
    return weight(a) > weight(b);
  });
  return rows;
}

}  // namespace

double new_tokens(const model::Pass& pass) {
  double sum = 0;
  if (pass.kind == model::PassKind::kOptimizer) return sum;
  for (const model::Sequences& s : pass.sequences) sum += static_cast<double>(s.count) * static_cast<double>(s.tokens);
  return sum;
}

std::optional<double> flops_per_byte(const model::Costs& costs) {
  return costs.bytes() > 0 ? std::optional(costs.flops / costs.bytes()) : std::nullopt;
}

std::string layer_numbers(const std::vector<std::int64_t>& layers) {
  constexpr std::size_t kMostParts = 6;
  std::string text;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    if (++parts > kMostParts) return text + ",…";
    text += text.empty() ? "" : ",";
    text += end - i == 1 ? fmt::format("{}", layers[i]) : fmt::format("{}-{}", layers[i], layers[end - 1]);
    i = end;
  }
  return text;
}

std::optional<double> slowest_ns(const std::vector<Stage>& passes) {
  double slowest = 0;
  for (std::size_t i = 0; i < passes.front().pipeline.size(); ++i) {
    double sum = 0;
    for (const Stage& pass : passes) {
      if (!pass.pipeline[i].ns) return std::nullopt;
      sum += *pass.pipeline[i].ns;
    }
    slowest = std::max(slowest, sum);
  }
  return slowest > 0 ? std::optional(slowest) : std::nullopt;
}

Stage cost_stage(const Graphs& graphs, const NamedPass& named, const model::Conditions& conditions,
                 const hw::Roofline& roofline) {
  Stage stage{.name = named.name,
              .what = named.what,
              .tokens = new_tokens(named.pass),
              .costs = device_costs(graphs, named.pass, conditions),
              .communication_bytes = model::communication_bytes(graphs.whole.config(), graphs.parallel, named.pass)};
  const model::PassCosts whole = model::total(graphs.whole, named.pass, conditions);
  stage.model_compute_ns = roofline.compute_ns(whole.flops_by_type);
  if (stage.model_compute_ns) *stage.model_compute_ns /= static_cast<double>(graphs.parallel.ranks());
  stage.intensity = flops_per_byte(stage.costs);
  stage.ridge = roofline.ridge(stage.costs.flops_by_type);
  stage.floor = {.compute_ns = 0, .memory_ns = 0, .ns = 0};
  for (const model::Graph& graph : graphs.stages) {
    const model::PassCosts part = model::total(graph, named.pass, conditions);
    stage.pipeline.push_back(roofline.floor(part.flops_by_type, part.bytes()));
    stage.floor += stage.pipeline.back();
  }
  stage.operators = operator_rows(graphs, named.pass, conditions, roofline);
  stage.layers = layer_rows(graphs, named.pass, conditions, roofline);
  return stage;
}

Result<Graphs> make_graphs(const model::Config& config, const model::Parallel& parallel) {
  Graphs graphs{.whole = model::Graph(config), .stages = {}, .parallel = parallel};
  if (parallel.tensor == 1 && parallel.pipeline == 1 && parallel.expert == 1) {
    graphs.stages.push_back(graphs.whole);
    return graphs;
  }
  // What does not divide evenly goes to the last ranks: theirs is the largest part.
  model::Rank rank{.tensor = parallel.tensor - 1, .pipeline = 0, .expert = parallel.expert - 1};
  for (; rank.pipeline < std::max<std::int64_t>(1, parallel.pipeline); ++rank.pipeline) {
    LLMPROF_LET(const model::Config part, model::shard(config, parallel, rank));
    graphs.stages.emplace_back(part);
  }
  return graphs;
}

model::PassCosts device_costs(const Graphs& graphs, const model::Pass& pass, const model::Conditions& conditions) {
  model::PassCosts sum;
  for (const model::Graph& graph : graphs.stages) {
    const model::PassCosts part = model::total(graph, pass, conditions);
    sum += part;
    for (const auto& [type, flops] : part.flops_by_type) sum.flops_by_type[type] += flops;
  }
  return sum;
}

namespace {

Memory parts_of(const model::Graph& graph, const Load& load) {
  Memory memory;
  memory.weights = model::weights_bytes(graph);
  memory.kv_per_token = model::kv_bytes_per_token(graph);
  memory.kv = model::kv_cache_bytes(graph, load.batch, load.context);
  memory.activations = std::max(model::activation_bytes(graph, model::prefill(load.batch, load.prompt)),
                                model::activation_bytes(graph, model::decode(load.batch, load.context)));
  return memory;
}

Memory largest_stage(const Graphs& graphs, const Load& load) {
  Memory largest;
  for (const model::Graph& graph : graphs.stages) {
    const Memory memory = parts_of(graph, load);
    if (memory.needed() >= largest.needed()) largest = memory;
  }
  return largest;
}

// The largest value for which `fits`, which turns false once and for all; 0 if it never holds.
template <class Fits>
std::int64_t largest_that(Fits fits, std::int64_t most) {
  std::int64_t good = 0, bad = most + 1;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

double needed_bytes(const Graphs& graphs, const Load& load) { return largest_stage(graphs, load).needed(); }

Memory memory_of(const Graphs& graphs, const Load& load, double device_bytes) {
  Memory memory = largest_stage(graphs, load);
  if (!(device_bytes > 0)) return memory;
  memory.device = device_bytes;
  memory.left_for_kv = device_bytes - memory.weights - memory.activations;
  memory.fits = memory.needed() <= device_bytes;
  const auto context_fits = [&](std::int64_t context) {
    return needed_bytes(graphs, {load.batch, load.prompt, context}) <= device_bytes;
  };
  const auto batch_fits = [&](std::int64_t batch) {
    return needed_bytes(graphs, {batch, load.prompt, load.context}) <= device_bytes;
  };
  const std::int64_t positions = graphs.whole.config().positions;
  const std::int64_t longest = largest_that(context_fits, kMost);
  memory.context_ends_with_model = positions > 0 && longest > positions;
  memory.longest_context = memory.context_ends_with_model ? positions : longest;
  memory.largest_batch = largest_that(batch_fits, kMost);
  return memory;
}

model::TrainingMemory training_memory_of(const Graphs& graphs, const Load& load, model::Recompute recompute) {
  model::TrainingMemory largest;
  double recomputed_flops = 0;
  for (const model::Graph& graph : graphs.stages) {
    const model::TrainingMemory memory = model::training_memory(graph, load.batch, load.prompt, recompute);
    recomputed_flops += memory.recomputed_flops;
    if (memory.total() >= largest.total()) largest = memory;
  }
  largest.recomputed_flops = recomputed_flops;
  return largest;
}

}  // namespace llmprof::analyze::design

#include "analyze/design/sweep.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::analyze::design {
namespace {

std::int64_t* value_of(Load& load, std::string_view axis) {
  if (axis == "batch") return &load.batch;
  if (axis == "prompt") return &load.prompt;
  if (axis == "context") return &load.context;
  return nullptr;
}

Result<std::size_t> check(const std::vector<base::Axis>& axes, bool train) {
  std::size_t points = 1;
  for (const base::Axis& axis : axes) {
    Load load;
    if (value_of(load, axis.name) == nullptr || (train && axis.name == "context")) {
      return Error{ErrorCode::kUsage, fmt::format("cannot sweep over '{}'", axis.name),
                   train ? "a training step has batch and prompt" : "axes are batch, prompt and context"};
    }
    const auto [least, most] = std::ranges::minmax(axis.values);
    if (least < 1 || most > kMost) {
      return Error{ErrorCode::kUsage, fmt::format("values of {} must be between 1 and {}", axis.name, kMost), ""};
    }
    points *= axis.values.size();  // at most three axes of 100,000: no overflow
  }
  if (points <= kMaxSweepPoints) return points;
  return Error{ErrorCode::kUsage, fmt::format("{} points are more than {}", points, kMaxSweepPoints), ""};
}

// Everything that stays the same from point to point.
struct Setting {
  const Graphs& graphs;
  const Ruler& ruler;
  model::Conditions conditions;
  const Roof& roof;
  model::Recompute recompute;

  SweepPoint::Pass pass(const model::Pass& pass) const {
    SweepPoint::Pass out{.flops = 0, .bytes = 0, .floor = {.compute_ns = 0, .memory_ns = 0, .ns = 0}};
    for (const model::Graph& graph : graphs.stages) {
      const model::PassCosts costs = model::total(graph, pass, conditions);
      out.flops += costs.flops;
      out.bytes += costs.bytes();
      out.floor += ruler.floor(costs);
    }
    return out;
  }
};

void cost_inference(const Setting& setting, SweepPoint& point) {
  const Load& load = point.load;
  point.memory_bytes = needed_bytes(setting.graphs, load);
  point.first = setting.pass(model::prefill(load.batch, load.prompt));
  point.decode = setting.pass(model::decode(load.batch, load.context));
  const std::optional<double> tpot_ns = point.decode.floor.ns;
  if (!tpot_ns || !(*tpot_ns > 0)) return;
  point.tokens_per_s_per_sequence = 1e9 / *tpot_ns;
  point.tokens_per_s = static_cast<double>(load.batch * setting.graphs.groups()) * 1e9 / *tpot_ns;
}

void cost_training(const Setting& setting, SweepPoint& point) {
  const Load& load = point.load;
  point.memory_bytes = training_memory_of(setting.graphs, load, setting.recompute).total();
  point.first.floor = {.compute_ns = 0, .memory_ns = 0, .ns = 0};
  for (const auto kind : {model::PassKind::kForward, model::PassKind::kBackward, model::PassKind::kOptimizer}) {
    const SweepPoint::Pass part = setting.pass(model::train(kind, load.batch, load.prompt));
    point.first.flops += part.flops;
    point.first.bytes += part.bytes;
    point.first.floor += part.floor;
  }
  const std::optional<double> step_ns = point.first.floor.ns;
  const double tokens = static_cast<double>(load.batch * setting.graphs.groups()) * static_cast<double>(load.prompt);
  if (step_ns && *step_ns > 0) point.tokens_per_s = tokens / (*step_ns * 1e-9);
}

// The load of point `index`, counting with the last axis fastest.
Load load_at(const std::vector<base::Axis>& axes, std::size_t index, Load load) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    *value_of(load, axis->name) = axis->values[index % axis->values.size()];
    index /= axis->values.size();
  }
  return load;
}

}  // namespace

Result<Sweep> sweep(const Subject& subject, const Options& wanted, const Roof& roof, std::vector<base::Axis> axes) {
  LLMPROF_LET(const Options options, complete(wanted, subject.config));
  LLMPROF_LET(const std::size_t points, check(axes, options.train));
  LLMPROF_LET(const Graphs graphs, make_graphs(subject.config, options.parallel));
  const Ruler ruler(roof, arithmetic_types(graphs));
  const Setting setting{graphs, ruler, conditions_of(options, roof), roof, options.recompute};
  Sweep sweep{.axes = std::move(axes), .train = options.train, .points = std::vector<SweepPoint>(points)};
  for (std::size_t i = 0; i < points; ++i) {
    SweepPoint& point = sweep.points[i];
    point.load = load_at(sweep.axes, i, {options.batch, options.prompt, options.context});
    (options.train ? cost_training : cost_inference)(setting, point);
    if (roof.memory_bytes > 0) point.fits = point.memory_bytes <= roof.memory_bytes;
  }
  return sweep;
}

}  // namespace llmprof::analyze::design

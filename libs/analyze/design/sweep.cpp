#include "analyze/design/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/design/stage.h"
#include "base/axis.h"

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
  const hw::Roofline& roofline;
  model::Conditions conditions;
  const Roof& roof;
  model::Recompute recompute;

  // Passes one after the other; the stages of a pipeline take turns.
  SweepPoint::Pass cost(std::initializer_list<model::Pass> passes) const {
    SweepPoint::Pass out{.floor = {.compute_ns = 0, .memory_ns = 0, .ns = 0}};
    for (const model::Graph& graph : graphs.stages) {
      Floor device{.compute_ns = 0, .memory_ns = 0, .ns = 0};
      for (const model::Pass& pass : passes) {
        const model::PassCosts costs = model::total(graph, pass, conditions);
        out.flops += costs.flops;
        out.bytes += costs.bytes();
        device += roofline.floor(costs.flops_by_type, costs.bytes());
      }
      out.floor += device;
      if (device.ns) out.slowest_ns = std::max(out.slowest_ns.value_or(0), *device.ns);
    }
    return out;
  }

  std::optional<double> tokens_per_s(double tokens, const SweepPoint::Pass& pass) const {
    if (!pass.slowest_ns || !(*pass.slowest_ns > 0)) return std::nullopt;
    return tokens * static_cast<double>(graphs.groups()) / (*pass.slowest_ns * 1e-9);
  }
};

void cost_inference(const Setting& setting, SweepPoint& point) {
  const Load& load = point.load;
  point.memory_bytes = needed_bytes(setting.graphs, load);
  point.first = setting.cost({model::prefill(load.batch, load.prompt)});
  point.decode = setting.cost({model::decode(load.batch, load.context)});
  point.tokens_per_s = setting.tokens_per_s(static_cast<double>(load.batch), point.decode);
  if (point.tokens_per_s) point.tokens_per_s_per_sequence = 1e9 / *point.decode.floor.ns;
}

void cost_training(const Setting& setting, SweepPoint& point) {
  const Load& load = point.load;
  const auto pass = [&](model::PassKind kind) { return model::train(kind, load.batch, load.prompt); };
  point.memory_bytes = training_memory_of(setting.graphs, load, setting.recompute).total();
  point.first = setting.cost(
      {pass(model::PassKind::kForward), pass(model::PassKind::kBackward), pass(model::PassKind::kOptimizer)});
  point.tokens_per_s =
      setting.tokens_per_s(static_cast<double>(load.batch) * static_cast<double>(load.prompt), point.first);
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
  const hw::Roofline roofline(roof.peaks, roof.device, model::arithmetic_types(graphs.whole));
  const Setting setting{graphs, roofline, conditions_of(options, roof), roof, options.recompute};
  Sweep sweep{.axes = std::move(axes), .train = options.train, .points = std::vector<SweepPoint>(points)};
  for (std::size_t i = 0; i < points; ++i) {
    SweepPoint& point = sweep.points[i];
    point.load = load_at(sweep.axes, i, {options.batch, options.prompt, options.context});
    (options.train ? cost_training : cost_inference)(setting, point);
    if (roof.memory_bytes > 0) point.fits = point.memory_bytes <= roof.memory_bytes;
  }
  return sweep;
}

namespace {

constexpr std::size_t kMostGroups = 10'000;

Error refuse(std::string_view item, std::string_view rule) {
  return {ErrorCode::kUsage, fmt::format("'{}': {}", item, rule),
          "write COUNTxTOKENS@CONTEXT, as in 8x1@2048,1x512@512"};
}

// "8x1@2048"; without a count one, without a context the tokens alone.
Result<model::Sequences> parse_one(std::string_view item) {
  model::Sequences sequences;
  const std::size_t x = item.find('x');
  const std::size_t at = std::min(item.find('@'), item.size());
  const std::size_t tokens_begin = x == std::string_view::npos || x > at ? 0 : x + 1;
  if (tokens_begin > 0) {
    LLMPROF_LET(sequences.count, base::parse_count(item.substr(0, x)));
  }
  LLMPROF_LET(sequences.tokens, base::parse_count(item.substr(tokens_begin, at - tokens_begin)));
  sequences.context = sequences.tokens;
  if (at < item.size()) {
    LLMPROF_LET(sequences.context, base::parse_count(item.substr(at + 1)));
  }
  if (sequences.count < 1 || sequences.tokens < 1) return refuse(item, "count and tokens are 1 at least");
  if (sequences.context < sequences.tokens) return refuse(item, "the context includes the new tokens");
  if (std::max(sequences.count, sequences.context) > kMost) return refuse(item, fmt::format("more than {}", kMost));
  return sequences;
}

}  // namespace

Result<std::vector<model::Sequences>> parse_sequences(std::string_view text) {
  std::vector<model::Sequences> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    Result<model::Sequences> one = parse_one(item);
    if (!one) return refuse(item, one.error().message);
    if (all.size() == kMostGroups) return refuse(item, "too many groups of sequences");
    all.push_back(*one);
    begin = end + 1;
  }
  return all;
}

}  // namespace llmprof::analyze::design

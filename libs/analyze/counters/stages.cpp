#include "analyze/counters/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "analyze/counters/fold.h"
#include "analyze/counters/place.h"
#include "analyze/counters/work.h"
#include "analyze/names/range_words.h"

namespace llmprof::analyze::counters {

namespace {

struct Group {
  Fold fold;
  std::int64_t measured = 0;    // steps or ranges
  std::set<std::string> names;  // of ranges
  std::set<std::int64_t> devices;
  CostSum cost;
};

const Stage* stage_of(const Summary& summary, std::string_view name) {
  const auto found = std::ranges::find(summary.stages, name, &Stage::name);
  return found == summary.stages.end() ? nullptr : &*found;
}

// Instructions are counted by code put into kernels: kernels in graphs do not have it and count as nothing.
bool is_instrumented(std::string_view metric) { return metric.find("__sass_") != metric.npos; }

Metrics without_instrumented(const Metrics& metrics) {
  Metrics out = metrics;
  std::erase_if(out, [](const auto& entry) { return is_instrumented(entry.first); });
  return out;
}

double time_of(const Measurement& measurement) {
  if (const auto gpu = value_of("gpu_time_ns", measurement.metrics)) return *gpu;
  double sum = 0;
  for (const MeasuredWindow& window : measurement.windows) sum += static_cast<double>(window.end_ns - window.begin_ns);
  return sum / static_cast<double>(std::max<std::size_t>(1, measurement.windows.size()));
}

class Groups {
 public:
  Groups(const std::vector<PlacedStep>& steps, Summary& summary) : steps_(steps), summary_(summary) {
    for (const PlacedStep& step : steps) by_id_.emplace(step.id, &step);
  }

  void add(const Measurement& measurement) {
    if (measurement.graph)
      add_graph(measurement);
    else
      add_range(measurement);
  }

  StepCosts finish(const AnalysisContext& analysis) {
    for (auto& [stage, group] : graphs_) ranges_.try_emplace(stage, std::move(group));  // ranges say more
    for (const Stage& stage : summary_.stages) {
      const auto found = ranges_.find(stage.name);
      if (found != ranges_.end()) add_stage(stage, found->second, analysis);
    }
    for (const auto& [shape, group] : modules_) {
      const std::string& name = group.names.size() == 1 ? *group.names.begin() : shape;
      summary_.counters.modules.push_back({name, group.measured, group.fold.values("range")});
    }
    add_notes();
    return std::move(costs_);
  }

 private:
  void add_range(const Measurement& measurement) {
    std::optional<CoveredSteps> all;
    for (const MeasuredWindow& window : measurement.windows) {
      const std::optional<CoveredSteps> here = covered(window, measurement.name, steps_);
      if (!here || (all && all->stage != here->stage)) {
        add_module(measurement);
        return;
      }
      if (!all) all = CoveredSteps{.stage = here->stage};
      all->steps += here->steps, all->flops += here->flops, all->bytes += here->bytes;
    }
    if (!all) return;
    const auto steps = static_cast<double>(all->steps);
    Group& group = ranges_[all->stage];
    group.cost.add(all->flops, all->bytes, steps);
    group.measured += all->steps;
    add_to(group, measurement, all->stage, steps / static_cast<double>(measurement.windows.size()));
  }

  // A step may launch several graphs: each measured launch then stands for one of them.
  void add_graph(const Measurement& measurement) {
    const MeasuredWindow& first = measurement.windows.front();
    const Stage* stage = stage_of(summary_, first.graph_stage);
    if (first.graph_stage_step < 0 || stage == nullptr || stage->steps <= 0) {
      ++unplaced_graphs_;
      return;
    }
    const double launches = static_cast<double>(stage->graph_launches) / static_cast<double>(stage->steps);
    if (launches > 1.01) several_graphs_.insert(stage->name);
    Group& group = graphs_[stage->name];
    for (const MeasuredWindow& window : measurement.windows) {
      const auto step = by_id_.find(window.graph_stage_step);
      if (step != by_id_.end()) group.cost.add(step->second->flops, step->second->bytes, 1);
    }
    group.measured += std::ssize(measurement.windows);
    add_to(group, measurement, stage->name, 1 / std::max(1.0, launches));
  }

  void add_to(Group& group, const Measurement& measurement, const std::string& stage_name, double steps) {
    const Stage* stage = stage_of(summary_, stage_name);
    const bool graphs = measurement.graph || (stage != nullptr && stage->graph_launches > 0);
    const bool blind = graphs && std::ranges::any_of(measurement.metrics,
                                                     [](const auto& entry) { return is_instrumented(entry.first); });
    if (blind) blind_.insert(stage_name);
    group.fold.add(blind ? without_instrumented(measurement.metrics) : measurement.metrics, steps,
                   time_of(measurement));
    group.devices.insert(measurement.device_id);
  }

  void add_module(const Measurement& measurement) {
    Group& group = modules_[shape_of(measurement.name)];  // "Train step 5", "Train step 6" are alike
    group.names.insert(measurement.name);
    Metrics metrics = measurement.metrics;
    if (summary_.coverage.graph_launches > 0)
      std::erase_if(metrics, [](const auto& entry) { return is_instrumented(entry.first) && entry.second == 0; });
    group.fold.add(metrics, 1, time_of(measurement));
    group.measured += std::ssize(measurement.windows);
    group.devices.insert(measurement.device_id);
  }

  void add_stage(const Stage& stage, const Group& group, const AnalysisContext& analysis) {
    CountedStage counted{.stage = stage.name, .steps = stage.steps, .measured = group.measured, .method = "range"};
    counted.values = group.fold.values("range");
    costs_[stage.name] = group.cost.mean();
    complete(counted, group.fold.metrics(), *group.devices.begin(), costs_[stage.name], {analysis, summary_});
    if (group.devices.size() > 1)
      note(fmt::format("{}: means over {} devices that were measured", stage.name, group.devices.size()));
    summary_.counters.stages.push_back(std::move(counted));
  }

  void add_notes() {
    for (const std::string& stage : blind_)
      note(
          fmt::format("{} launches graphs: instructions of plain cores are not seen in them, so FLOPs outside of the "
                      "tensor cores are unknown",
                      stage));
    for (const std::string& stage : several_graphs_)
      note(
          fmt::format("{} launches several graphs per step: a step is taken as so many times the mean of the launches "
                      "that were measured",
                      stage));
    if (unplaced_graphs_ > 0)
      note(fmt::format("{} measured graph launches belong to no step and are left out", unplaced_graphs_));
  }
  void note(std::string text) { summary_.counters.notes.push_back(std::move(text)); }

  const std::vector<PlacedStep>& steps_;
  Summary& summary_;
  std::unordered_map<std::int64_t, const PlacedStep*> by_id_;
  StepCosts costs_;
  std::map<std::string, Group> ranges_, graphs_, modules_;
  std::set<std::string> blind_, several_graphs_;
  std::int64_t unplaced_graphs_ = 0;
};

}  // namespace

StepCost CostSum::mean() const {
  const auto known = [this](double sum) {
    return steps_ > 0 && std::isfinite(sum) ? std::optional(sum / steps_) : std::nullopt;
  };
  return {known(flops_), known(bytes_)};
}

void complete(CountedStage& counted, const Metrics& metrics, std::int64_t device_id, const StepCost& cost,
              const std::pair<const AnalysisContext&, const Summary&>& from) {
  const auto& [analysis, summary] = from;
  const Stage* stage = stage_of(summary, counted.stage);
  const std::vector<hw::Peak> peaks = peaks_of(analysis, device_id);
  // Measured steps take longer: the time is that of the others (sql/stages.sql).
  const double time_ns = stage == nullptr ? 0 : static_cast<double>(stage->step_p50_ns.value_or(0));
  counted.work = work_of(metrics, time_ns, peaks);
  counted.hfu = flops_of_peak(counted.work, peaks);
  if (counted.hfu) counted.hfu_type = counted.work.type;
  // Which share of the model one of several devices has to move is unknown.
  if (summary.busy_devices <= 1 && cost.bytes.value_or(0) > 0 && counted.work.dram_bytes)
    counted.redundancy = *counted.work.dram_bytes / *cost.bytes;
}

StepCosts fill_measured(const std::vector<Measurement>& measurements, const std::vector<PlacedStep>& steps,
                        const AnalysisContext& analysis, Summary& summary) {
  Groups groups(steps, summary);
  for (const Measurement& measurement : measurements) groups.add(measurement);
  return groups.finish(analysis);
}

namespace {

bool covers(const MeasuredWindow& window, const std::string& name, const PlacedStep& step) {
  if (window.begin_ns <= step.begin_ns && step.host_end_ns <= window.end_ns) return true;
  if (step.range != name) return false;  // a part of the step
  const std::int64_t shared = std::min(window.end_ns, step.host_end_ns) - std::max(window.begin_ns, step.begin_ns);
  return 2 * shared >= step.host_end_ns - step.begin_ns;
}

}  // namespace

std::optional<CoveredSteps> covered(const MeasuredWindow& window, const std::string& name,
                                    const std::vector<PlacedStep>& steps) {
  const auto first_after =
      std::ranges::lower_bound(steps, std::pair(window.thread_id, window.end_ns), {},
                               [](const PlacedStep& step) { return std::pair(step.thread_id, step.begin_ns); });
  CoveredSteps out;
  // Steps of a thread do not overlap, but for nested ones: the first that ended before the window ends the search.
  for (auto at = first_after; at != steps.begin();) {
    --at;
    if (at->thread_id != window.thread_id || at->host_end_ns <= window.begin_ns) break;
    if (!covers(window, name, *at)) continue;
    if (out.steps > 0 && out.stage != at->stage) return std::nullopt;
    out.stage = at->stage;
    ++out.steps, out.flops += at->flops, out.bytes += at->bytes;
  }
  return out.steps > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace llmprof::analyze::counters

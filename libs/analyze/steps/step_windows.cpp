#include "analyze/steps/step_windows.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace llmprof::analyze {

namespace {

struct StepLanes {
  std::vector<BusyLane> lanes;
  std::vector<std::vector<std::size_t>> steps;
  std::size_t threads = 0;
};

// One lane per thread, and one per stage in which a step's window begins where the earlier steps of the stage have
// ended: the latter add up to the stage without overlap.
StepLanes lanes_of(const std::vector<Step>& steps) {
  std::map<std::pair<bool, std::int64_t>, std::pair<std::vector<Window>, std::vector<std::size_t>>> groups;
  std::map<std::uint32_t, std::int64_t> covered_until_ns;
  for (std::size_t i = 0; i < steps.size(); ++i) {  // sorted by begin
    const Window window{steps[i].begin_ns, steps[i].end_ns};
    auto& [of_thread, thread_steps] = groups[{false, steps[i].thread_id}];
    of_thread.push_back(window);
    thread_steps.push_back(i);
    auto& [of_stage, stage_steps] = groups[{true, steps[i].stage.id}];
    std::int64_t& covered = covered_until_ns.try_emplace(steps[i].stage.id, window.begin_ns).first->second;
    if (window.end_ns <= covered) continue;
    of_stage.push_back({std::max(window.begin_ns, covered), window.end_ns});
    stage_steps.push_back(i);
    covered = window.end_ns;
  }
  StepLanes out;
  for (auto& [key, group] : groups) {
    if (!key.first) ++out.threads;
    out.lanes.emplace_back(std::move(group.first));
    out.steps.push_back(std::move(group.second));
  }
  return out;
}

}  // namespace

Result<void> extend_steps(const trace::Run& run, const std::vector<Window>& windows, const StepTimes::Devices& devices,
                          Attribution& attribution, std::vector<Step>& steps) {
  std::vector<std::int64_t> end_ns;
  for (const Step& step : steps) end_ns.push_back(step.end_ns);
  const auto ends = [&](std::int32_t step, std::int64_t at_ns) {
    if (step != kNone) end_ns[step] = std::max(end_ns[step], at_ns);
  };
  WorkReader reader(run, windows, attribution.asks_calls() ? WorkReader::With::kCalls : WorkReader::With::kTimes);
  for (std::size_t b = 0; b < reader.size(); ++b) {
    LLMPROF_LET(const WorkBlock block, reader.take());
    const Kernels& kernels = block.kernels;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (!devices.is_cpu(kernels.device_id[i])) ends(attribution.step_of(kernels, i), kernels.end_ns[i]);
    }
    const GraphLaunches& launches = block.launches;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      const std::int64_t launch_ns = launches.launch_begin_ns[i];
      ends(attribution.step_at(launches.thread_id[i], launch_ns != kNull ? launch_ns : launches.begin_ns[i]),
           launches.end_ns[i]);
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (end_ns[i] == steps[i].end_ns) continue;
    steps[i].host_end_ns = steps[i].end_ns;
    steps[i].end_ns = end_ns[i];
  }
  set_turns(steps);
  return {};
}

StepBusy::StepBusy(const std::vector<Step>& steps, StepTimes::Devices devices, const Job& job)
    : device_ns(steps.size()), stage_ns(steps.size()), devices_(std::move(devices)), busy_({}) {
  StepLanes lanes = lanes_of(steps);
  steps_ = std::move(lanes.steps);
  threads_ = lanes.threads;
  std::vector<std::vector<std::int64_t>> own(threads_);  // devices of the rank of each thread; empty: any
  for (std::size_t lane = 0; lane < threads_ && job.ranks.size() > 1; ++lane) {
    const JobRank* rank = job.rank_of(steps[steps_[lane].front()].process_id);
    if (rank != nullptr) own[lane] = rank->devices;
  }
  busy_ = BusyTime(std::move(lanes.lanes), [own = std::move(own)](std::size_t lane, std::int64_t device_id) {
    return lane >= own.size() || own[lane].empty() || std::ranges::find(own[lane], device_id) != own[lane].end();
  });
}

void StepBusy::add(std::int64_t device_id, Window window) {
  if (devices_.busiest_is_cpu || !devices_.is_cpu(device_id)) busy_.add(device_id, window);
}

// By begin. The time in which no node of a launch executes is taken off its end: where it lies was not recorded.
void StepBusy::add(const WorkBlock& block, const SharesOfGraphs& shares) {
  const Kernels& kernels = block.kernels;
  const GraphLaunches& launches = block.launches;
  std::size_t k = 0;
  for (std::size_t l = 0; l <= launches.size(); ++l) {
    const std::int64_t until_ns = l < launches.size() ? launches.begin_ns[l] : INT64_MAX;
    for (; k < kernels.size() && kernels.begin_ns[k] <= until_ns; ++k)
      add(kernels.device_id[k], {kernels.begin_ns[k], kernels.end_ns[k]});
    if (l == launches.size() || launches.nodes_recorded[l] > 0) continue;
    const auto graph = shares.find(launches.graph[l]);
    const double busy = graph == shares.end() ? 1 : graph->second.busy;
    const double duration_ns = launches.end_ns[l] - launches.begin_ns[l];
    add(launches.device_id[l], {launches.begin_ns[l], launches.begin_ns[l] + std::llround(busy * duration_ns)});
  }
}

void StepBusy::finish() {
  const std::vector<BusyLane> lanes = busy_.finish();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    std::vector<std::int64_t>& target = lane < threads_ ? device_ns : stage_ns;
    for (std::size_t i = 0; i < steps_[lane].size(); ++i) target[steps_[lane][i]] = lanes[lane].busy_ns()[i];
  }
}

StepTimes::Devices step_time_devices(const AnalysisContext& analysis) {
  StepTimes::Devices devices{.busiest_is_cpu = analysis.devices.empty() || analysis.devices.front().kind == "cpu"};
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    if (analysis.devices[i].kind == "cpu") {
      devices.cpus.push_back(analysis.device_ids[i]);
    } else if (analysis.devices[i].kernel_ns > 0) {
      devices.others_worked = true;
    }
  }
  return devices;
}

void add_copies_and_waits(const CopiesAndWaits& read, StepTimes& times) {
  const auto& [copies, waits] = read;
  for (std::size_t i = 0; i < copies.rows(); ++i)
    times.add_copy(copies.values[2][i], {copies.values[0][i], copies.values[1][i]});
  for (std::size_t i = 0; i < waits.rows(); ++i)
    times.add_wait(waits.values[2][i], {waits.values[0][i], waits.values[1][i]});
}

}  // namespace llmprof::analyze

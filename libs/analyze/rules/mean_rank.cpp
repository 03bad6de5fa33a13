// Rules think of one timeline with its devices. Of a job of several ranks that work at the same time they are shown a
// mean one: amounts that were added up over ranks are divided by how many worked at once, and peaks are those of a
// rank.

#include <algorithm>
#include <cmath>

#include "analyze/rules/diagnose.h"

namespace llmprof::analyze {
namespace {

template <class... Numbers>
void scale(double by, Numbers&... numbers) {
  const auto one = [by](auto& number) {
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(number)>>) {
      number *= by;
    } else {
      number = std::llround(by * static_cast<double>(number));
    }
  };
  (one(numbers), ...);
}

template <class... Numbers>
void scale_known(double by, std::optional<Numbers>&... numbers) {
  const auto one = [by](auto& number) {
    if (number) scale(by, *number);
  };
  (one(numbers), ...);
}

void scale_efficiency(double by, Efficiency& e) {
  scale_known(by, e.flops, e.flops_shapes, e.bytes, e.recomputed_flops, e.flops_most, e.bytes_most);
  scale_known(by, e.flops_per_s, e.flops_shapes_per_s, e.bytes_per_s);
}

void scale_part(double by, Part& part) {
  scale(by, part.calls, part.total_ns, part.self_ns, part.kernel_ns, part.estimated_ns, part.time_ns);
  scale_efficiency(by, part.efficiency);
  if (part.efficiency.floor_ns) scale(by, *part.efficiency.floor_ns);  // that of a stage is of all devices together
  for (Product& product : part.products) scale(by, product.calls, product.time_ns);
}

void scale_idle(double by, StageIdle& idle) {
  scale(by, idle.gap_ns, idle.between_ns);
  for (IdlePlace& place : idle.places) scale(by, place.time_ns);
  for (IdleWork& work : idle.works) scale(by, work.cpu_ns);
}

struct Scales {
  const Summary& summary;
  // 1 for what no stage has, or has alone.
  double operator()(std::string_view stage) const {
    const auto found = std::ranges::find(summary.stages, stage, &Stage::name);
    return found == summary.stages.end() ? 1 : 1 / found->ranks_at_once;
  }
};

void scale_facts(const Scales& of, double devices, Facts& facts) {
  for (StageBytes& stage : facts.bytes) {
    for (OperatorBytes& op : stage.operators)
      scale(of(stage.stage), op.flops, op.weight_bytes, op.kv_bytes, op.activation_bytes);
  }
  for (StageWaits& stage : facts.waits.stages) scale(of(stage.stage), stage.calls, stage.steps, stage.time_ns);
  for (StageLaunches& stage : facts.launches) scale(of(stage.stage), stage.launches, stage.timed, stage.call_ns);
  for (StageCopies& stage : facts.copies.stages)
    scale(of(stage.stage), stage.copies, stage.steps, stage.bytes, stage.time_ns, stage.call_ns);
  for (ProductKernel& product : facts.products) scale(of(product.stage), product.executions, product.time_ns);
  for (StageChains& stage : facts.chains) {
    const double by = of(stage.stage);
    scale(by, stage.steps, stage.kernels, stage.element_kernels);
    for (ChainGroup& group : stage.groups)
      scale(by, group.chains, group.kernels, group.time_ns, group.longest_ns, group.idle_ns);
  }
  for (StageLogits& stage : facts.logits)
    scale(of(stage.stage), stage.steps, stage.head_ns, stage.after_ns, stage.kernels_ns, stage.after_kernels);
  for (StageOverlap& stage : facts.overlaps) {
    for (Transfers* moved : {&stage.copies, &stage.collectives})
      scale(devices, moved->count, moved->bytes, moved->time_ns, moved->exposed_ns, moved->pageable);
  }
  for (StageAllocations& stage : facts.allocations.stages) {
    scale(of(stage.stage), stage.steps, stage.steps_allocating, stage.allocations, stage.releases, stage.bytes);
    scale_known(of(stage.stage), stage.calls_ns);
  }
  for (StageExperts& stage : facts.experts) scale(of(stage.stage), stage.passes, stage.time_ns);
  InterferenceFacts& waits = facts.interference;
  scale(of("decode"), waits.prefills, waits.intervals, waits.interrupted, waits.all_ns, waits.extra_ns);
  for (GraphBucket& bucket : facts.graph_buckets) scale(of(bucket.stage), bucket.launches, bucket.time_ns);
}

}  // namespace

bool takes_several_ranks(const Summary& summary) {
  return std::ranges::any_of(summary.stages, [](const Stage& stage) { return stage.ranks_at_once != 1; });
}

void take_mean_rank(Summary& summary, Facts& facts) {
  const std::int64_t all = std::max<std::int64_t>(1, summary.busy_devices), own = summary.job.devices_of_rank();
  const double devices = static_cast<double>(own) / static_cast<double>(all);
  const Scales of{summary};
  scale_facts(of, devices, facts);
  for (auto* parts : {&summary.modules, &summary.ops}) {
    for (Part& part : *parts) scale_part(of(part.stage), part);
  }
  for (GemmShape& gemm : summary.gemms) scale(of(gemm.stage), gemm.calls, gemm.time_ns, gemm.estimated_ns);
  for (StageIdle& idle : summary.idle) scale_idle(of(idle.stage), idle);
  for (Stage& stage : summary.stages) {
    const double by = 1 / stage.ranks_at_once;
    scale(by, stage.steps, stage.kernels, stage.measured_steps, stage.warm_up_steps, stage.warm_up_ns, stage.steps_ns,
          stage.kernel_ns, stage.estimated_ns, stage.graph_launches, stage.graph_launches_by_node);
    scale(devices, stage.device_busy_ns, stage.idle_ns);
    scale_efficiency(by, stage.efficiency);
    stage.ranks_at_once = 1;
  }
  summary.busy_devices = own;
  scale_known(devices, summary.peak_flops, summary.peak_bandwidth);
}

}  // namespace llmprof::analyze

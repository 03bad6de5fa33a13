// Device memory that is taken and given back inside steps, and memory that an allocator cannot give back.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::allocator_churn {
namespace {

constexpr double kLeastSteps = 0.1;  // of a stage, with an allocation after the first
constexpr double kLeastStuck = 0.2;  // of what the allocator holds, free between what is in use
constexpr double kLeastStuckBytes = 1e9;
constexpr const char* kAllocate =
    "Allocate once before the steps and reuse the memory: a caching allocator, a static KV cache, no empty_cache() in "
    "the loop.";

std::string rows_of(const std::string& stage) {
  return fmt::format(
      "SELECT s.number, a.begin_ns, a.end_ns, a.bytes, a.kind FROM allocation AS a JOIN step AS s ON a.process_id = "
      "s.process_id AND a.begin_ns >= s.begin_ns AND a.begin_ns < s.end_ns WHERE s.stage = {} AND a.device_id IS NOT "
      "NULL ORDER BY a.begin_ns",
      sql_literal(stage));
}

Finding in_steps(const StageAllocations& seen, const Stage& stage) {
  Finding out{.stage = stage.name};
  out.title = fmt::format("Device memory is allocated or freed in {} of {} {}", seen.steps_allocating, seen.steps,
                          step_word(stage.name, "steps"));
  out.text =
      "Allocating and freeing device memory waits for the driver and often for the device; a step that does it cannot "
      "run ahead.";
  const std::string rows = rows_of(stage.name);
  out.add_fraction("allocating_steps", "steps with an allocation or release of device memory, after the first",
                   ratio(seen.steps_allocating, seen.steps), fmt::format("{} steps", seen.steps), "measured", rows);
  out.add_number("allocations", "allocations in them", seen.allocations, "", "measured", rows);
  out.add_number("releases", "releases in them", seen.releases, "", "measured", rows);
  out.add_number("allocated_bytes", "bytes allocated in them", seen.bytes, "B", "measured", rows);
  out.advice = {
      kAllocate,
      "<torch>Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where sizes grow from step to step.</torch>"};
  if (seen.calls_ns) {
    out.add_time("allocation_calls", "host time in calls that allocate or free", *seen.calls_ns, "measured",
                 "SELECT name, count(*) AS calls, sum(end_ns - begin_ns) AS ns FROM api WHERE regexp_matches(name, "
                 "'Malloc|MemAlloc|Free') GROUP BY 1");
    out.set_gain(*seen.calls_ns, stage.time_ns,
                 fmt::format("{} in {} calls that allocate or free, of {}", human_ns(*seen.calls_ns),
                             seen.allocations + seen.releases, human_ns(stage.time_ns)));
    out.next = "llmprof diff RUN CHANGED_RUN";
  } else {
    out.verdict = Verdict::kInconclusive;
    out.text += " How long the calls took was not recorded.";
    out.next = "llmprof record --gpu api,memory -o calls -- PROGRAM";
  }
  return out;
}

std::optional<Finding> fragmentation(const DeviceAllocator& device) {
  double held = 0, between = 0, in_use = 0;
  for (const AllocatorPool& pool : device.pools) {
    held += pool.bytes, between += pool.between_bytes, in_use += pool.allocated_bytes;
  }
  if (between < kLeastStuckBytes || between < kLeastStuck * held) return std::nullopt;
  Finding out{.part = "fragmentation"};
  out.title = fmt::format("{} of the {} that the allocator holds lie unused between tensors", human_bytes(between),
                          human_bytes(held));
  out.text = "They can neither be given back to the device nor hold anything larger than the pieces they are in.";
  const std::string rows = fmt::format(
      "SELECT s.id, s.bytes, s.allocated_bytes, b.bytes, b.state FROM memory_segment AS s JOIN memory_block AS b ON "
      "b.memory_segment_id = s.id WHERE s.device_id = {} ORDER BY s.id, b.address",
      device.device_id);
  out.add_fraction("allocator.between", "free between tensors of segments in use", between / held,
                   human_bytes(held) + " held", "measured", rows);
  out.add_number("allocator.in_use", "given to the program", in_use, "B", "measured", rows);
  out.advice = {"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow instead of leaving pieces behind.",
                "Allocate what lives long (weights, KV cache) before what lives short."};
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  RuleResult out;
  const AllocationFacts& facts = run.facts.allocations;
  for (const StageAllocations& seen : facts.stages) {
    const Stage* stage = stage_named(run.summary, seen.stage);
    if (stage == nullptr || seen.steps == 0) continue;
    if (seen.steps_allocating >= 2 && seen.steps_allocating >= kLeastSteps * seen.steps) {
      out.findings.push_back(in_steps(seen, *stage));
    } else {
      out.add_why(seen.stage, fmt::format("{} of {} steps after the first allocate or free device memory",
                                          seen.steps_allocating, seen.steps));
    }
  }
  std::int64_t pools = 0;
  for (const DeviceAllocator& device : run.summary.allocators.devices) {
    pools += std::ssize(device.pools);
    if (auto found = fragmentation(device)) out.findings.push_back(std::move(*found));
  }
  if (pools > 0)
    out.add_why(fmt::format("{} pools of the memory snapshot", pools),
                "less than 20 % or 1 GB of what is held lies unused between tensors");
  if (facts.recorded == 0 && pools == 0)
    return not_applicable("0 allocations of device memory were recorded; llmprof record --gpu memory,api would");
  if (out.why.empty())
    out.why =
        fmt::format("{} allocations of device memory, none in a step after the first of its stage", facts.recorded);
  return out;
}

}  // namespace llmprof::analyze::allocator_churn

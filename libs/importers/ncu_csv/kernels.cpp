#include "importers/ncu_csv/kernels.h"

#include <fmt/format.h>

#include <cmath>

namespace llmprof::importers::ncu {
namespace {

std::int64_t whole(double value) { return value > 0 && value < 9e18 ? std::llround(value) : 0; }

}  // namespace

void Kernels::add_counter(const Launch& launch, trace::Name metric, trace::Name unit, double value) {
  if (scope_.id == 0) scope_ = sink_.name("kernel"), method_ = sink_.name("ncu");
  sink_.add(trace::CounterRow{.id = sink_.new_id(),
                              .scope = scope_,
                              .scope_id = launch.id,
                              .metric = metric,
                              .value = value,
                              .unit = unit,
                              .method = method_,
                              .passes = launch.passes});
}

Kernels::Process& Kernels::process_of(const Launch& launch) {
  Process& process = processes_[launch.pid];
  if (process.id != 0) return process;
  process = {sink_.new_id(), sink_.new_id()};
  sink_.add(trace::ProcessRow{
      .id = process.id, .pid = launch.pid, .executable = sink_.name(launch.process), .begin_ns = now_ns_});
  sink_.add(trace::ThreadRow{.id = process.thread,
                             .process_id = process.id,
                             .tid = launch.pid,
                             .name = sink_.name("unknown: Nsight Compute does not say"),
                             .begin_ns = now_ns_});
  return process;
}

trace::Id Kernels::device_of(const Launch& launch) {
  trace::Id& id = devices_[launch.device];
  if (id != 0) return id;
  id = sink_.new_id();
  trace::DeviceRow row{.id = id, .kind = sink_.name("gpu"), .ordinal = launch.device};
  const DeviceFacts& facts = launch.facts;
  row.name = sink_.name(facts.name.empty() ? fmt::format("GPU {}", launch.device) : facts.name);
  if (!launch.compute_capability.empty())
    row.chip = sink_.name(fmt::format("compute capability {}", launch.compute_capability));
  row.units = whole(facts.units);
  row.memory_bytes = whole(facts.memory_bytes);
  row.cache_bytes = whole(facts.cache_bytes);
  if (facts.clock_khz > 0) row.clock_mhz = facts.clock_khz / 1e3;
  sink_.add(row);
  return id;
}

void Kernels::finish(Launch& launch) {
  const Process& process = process_of(launch);
  trace::KernelRow& row = launch.row;
  row.id = launch.id;
  row.device_id = device_of(launch);
  row.thread_id = process.thread;
  // A day is longer than any kernel, and keeps the sum of all far from the end of the clock.
  const bool timed = launch.duration_ns >= 0 && launch.duration_ns < 8.64e13;
  if (!timed) ++untimed_;
  row.begin_ns = now_ns_;
  row.end_ns = now_ns_ += timed ? whole(launch.duration_ns) : 0;
  row.launch_begin_ns = row.launch_end_ns = row.begin_ns;
  if (launch.static_shared >= 0 && launch.static_shared + launch.dynamic_shared < 2e9)
    row.shared_bytes = static_cast<std::int32_t>(launch.static_shared + std::max(0.0, launch.dynamic_shared));
  sink_.add(row);
  ++count_;
}

void Kernels::notes() {
  const auto note = [&](std::string_view text) {
    sink_.add(trace::NoteRow{.ts_ns = 0, .subject = sink_.name("ncu"), .text = sink_.name(text)});
  };
  note(
      "Nsight Compute profiles kernel by kernel, each replayed alone: the kernels stand one behind the other in the "
      "order "
      "of profiling. Times between them and overlap are not known; caches and clocks are as its options set them.");
  if (untimed_ > 0)
    note(fmt::format("{} kernels have no time: gpu__time_duration.sum was not among the metrics.", untimed_));
}

}  // namespace llmprof::importers::ncu

#pragma once
// What fills the sections of a Summary. summary.cpp says in which order; tests call some parts by themselves.

#include <vector>

#include "analyze/context.h"
#include "analyze/model/efficiency.h"
#include "analyze/sections/devices_summary.h"
#include "analyze/sections/energy.h"
#include "analyze/sections/host_summary.h"
#include "analyze/summary.h"
#include "base/result.h"
#include "trace/run.h"
#include "wire/clock.h"

namespace llmprof::analyze {

// ---- GPUs: kernels by time, time by source line, gaps and notes -----------------------------------------------------

// `by`: "line", "function", "stack" or "". Coverage is filled already.
Result<void> fill_gpu(const trace::Run& run, const std::string& by, Summary& summary);

// ---- allocators of frameworks: memory snapshots and memory events ---------------------------------------------------

// The value of a curve at a moment: that of its last point up to then.
std::optional<std::int64_t> value_at(const std::vector<MemoryPoint>& points, std::int64_t ts_ns);

Result<Allocators> allocators(const trace::Run& run);

// ---- blocks of the model and their time in each stage ---------------------------------------------------------------

// Empty where no module is a layer.
Result<std::vector<Block>> blocks_of(const trace::Run& run, bool on_gpu);

// ---- functions by stage, from CPU stack samples ---------------------------------------------------------------------

// Fills Host::stacks and Host::functions, most self time first. Needs the derived tables.
Result<void> fill_functions(const trace::Run& run, Host& host);

// ---- modules and operators: their time, and what they must cost -----------------------------------------------------

// Sets time_ns, what rates refer to: the time of the module's ranges or, on a GPU and where a device works on after the
// host has left them, that of the kernels launched in the module and in those inside it.
void set_times(std::vector<Part>& modules, bool on_gpu = false);

// Fills modules and ops; summary.stages must have their times. `by` is one device: times of kernels are added up over
// devices.
Result<void> fill_parts(const trace::Run& run, const Denominators& by, Summary& summary);

// Fills unmatched; modules must be there.
Result<void> fill_unmatched(const trace::Run& run, Summary& summary);

// ---- readings of devices --------------------------------------------------------------------------------------------

// Needs the stages; tells the waterfalls what it found.
Result<void> fill_telemetry(const trace::Run& run, const AnalysisContext& analysis, Summary& summary);

// The energy of the devices that worked; empty with the reason where none was read.
struct DeviceEnergy {
  std::vector<EnergySegments> devices;
  std::string why;
};
Result<DeviceEnergy> device_energy(const trace::Run& run, const AnalysisContext& analysis);

// ---- metrics of servers ---------------------------------------------------------------------------------------------

struct Bucket {
  double bound = 0;  // values up to here; the last is infinite
  double count = 0;  // of all values up to here
};
// `buckets` in order of their bounds. Inside a bucket values are taken as evenly spread; the first begins at 0.
MetricQuantile quantile_of(const std::vector<Bucket>& buckets, double fraction);

Result<Metrics> server_metrics(const trace::Run& run);

// ---- processes and memory, seen from outside (docs/format/analysis.md) ----------------------------------------------

// Fills processes, readings_per_s, memory, peak and gains. The derived tables must be there.
Result<void> fill_host(const trace::Run& run, Host& host);

// Ranges that were open at that moment: of each process the thread with most of them.
Result<std::vector<OpenRanges>> open_at(const trace::Run& run, std::int64_t ts_ns);

// ---- what recording cost: counted by the collector, estimated per stage ---------------------------------------------

struct TimedStep {
  std::string stage;
  std::int64_t begin_ns = 0, end_ns = 0;
  double recorded = 1;  // share of its kernels whose times were recorded
};
// Steps outside of rests against those inside, of the same kind: kernels timed, or noted; with `any_kind` of all kinds.
// In the order of their begins; none: too few to say.
std::optional<MeasuredRatio> ratio_of_watching(const std::vector<TimedStep>& steps, const wire::Rests& rests,
                                               bool any_kind);
// Steps with kernels timed against those with launches noted.
std::optional<MeasuredRatio> ratio_of_timing(const std::vector<TimedStep>& steps, const wire::Rests& rests);

inline constexpr double kFlaggedShare = 0.01;  // of a stage's time

// Needs the stages and the coverage of `summary`.
Result<void> fill_cost(const trace::Run& run, Summary& summary);

// ---- training steps -------------------------------------------------------------------------------------------------

// One series per thread that trains, in the order of processes and threads.
Result<std::vector<StepSeries>> training_series(const trace::Run& run);

// The step whose total is the median: a step that really happened (nearest rank). The series must not be empty.
const TrainingStep& median_step(const StepSeries& series);

// ---- memory of devices: allocations and readings --------------------------------------------------------------------

struct MemoryChange {
  std::int64_t ts_ns = 0, bytes = 0;  // negative: freed
};
// What is allocated after each change. Of changes at the same time, those that free come first.
std::vector<MemoryPoint> allocated_over_time(std::vector<MemoryChange> changes);

Result<DeviceMemories> device_memories(const trace::Run& run);

// ---- what other tools recorded, and hardware counters ---------------------------------------------------------------

Result<void> fill_imported(const trace::Run& run, const AnalysisContext& analysis, Imported& imported);

// Operators nest on their thread by time. Rows come by thread, begin and falling end, as sql/framework_ops orders them.
class OpNesting {
 public:
  struct Row {
    std::int64_t thread_id, begin_ns, end_ns, name, device_ns, launches;  // name: a code
  };
  struct Sums {
    std::int64_t calls = 0, host_ns = 0, self_host_ns = 0, device_ns = 0, self_device_ns = 0, launches = 0;
  };
  void add(const Row& row);
  void finish();
  const std::vector<Sums>& by_name() const { return sums_; }  // by code

 private:
  struct Open {
    Row row;
    std::int64_t child_host_ns = 0, child_device_ns = 0;
  };
  void close();
  std::vector<Open> open_;
  std::vector<Sums> sums_;
};

// Summary::counters, from what the summary says already. Asks nothing of a run without counters.
Result<void> fill_counters(const trace::Run& run, const AnalysisContext& analysis, Summary& summary);

}  // namespace llmprof::analyze

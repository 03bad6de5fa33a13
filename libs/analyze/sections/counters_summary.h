#pragma once
// What hardware counters say of a run, however they were read. Names are those of the catalogue
// (docs/format/counters.md); a counter that is not there was not collected.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct CounterValue {
  std::string counter, unit, denominator;
  double value = 0;              // of one step, launch or kernel: see where it stands
  std::optional<double> spread;  // standard deviation over occurrences, relative to the value
  std::optional<double> error;   // what the method itself may be off by, relative; of unmixed values
  std::int64_t occurrences = 0;  // that were measured
  std::string method;            // range, kernel, sampled, unmixed, ncu
};

// Bytes and FLOPs at the levels of memory, of one step or launch; and where that stands under the roofs.
struct CountedWork {
  std::optional<double> flops, tensor_flops, dram_bytes, l2_bytes, l1_bytes, time_ns;
  std::optional<double> dram_intensity, l2_intensity, l1_intensity;  // FLOP/B
  std::optional<double> flops_per_s, dram_bytes_per_s;
  std::string type;   // of the arithmetic that takes the most time at its peak
  std::string bound;  // compute, memory; "" unknown
  std::optional<double> of_roof;
};

// The same quantity from up to three places, side by side.
struct QuantityEvidence {
  std::string stage, quantity, unit;                // "flops", "bytes"
  std::optional<double> analytic, shapes, counted;  // of one step
  std::string explanation;                          // where they differ by more than 5 %; "" else
};

struct CountedStage {
  std::string stage;
  std::int64_t steps = 0, measured = 0;  // steps of the stage; of these, measured
  std::string method;
  std::vector<CounterValue> values;  // of one step
  CountedWork work;
  std::optional<double> hfu;         // counted FLOPs / time of unmeasured steps / peak of the type
  std::optional<double> redundancy;  // DRAM bytes counted / bytes that must move
  std::string hfu_type;
};

struct CountedModule {  // a range of the program below the step, where it was measured
  std::string name;
  std::int64_t measured = 0;
  std::vector<CounterValue> values;
};

// Kernels of one class, told apart in samples of the whole device.
struct UnmixedClass {
  std::string name;                  // of the kernel
  std::int64_t time_ns = 0;          // in samples
  std::vector<CounterValue> values;  // rates per second of its time, or percentages; each with an error
};

struct KernelOccupancy {
  std::string kernel, limiter;  // "registers", "shared memory", "threads of a block", "number of blocks"
  std::optional<double> theoretical, achieved;  // of the warps that fit
};

struct StallPlace {
  std::string kernel, reason, file;
  std::optional<std::int64_t> line;
  std::int64_t pc_offset = 0, samples = 0;
  double share = 0;  // of the kernel's samples
};
struct StallReason {
  std::string reason;
  double share = 0;  // of the kernel's samples
};
struct KernelStalls {
  std::string kernel;
  std::int64_t samples = 0;
  double share = 0;                  // of all samples
  std::vector<StallReason> reasons;  // most first
  std::vector<StallPlace> places;    // most first
};

struct Counters {
  std::string method, set, chip;
  std::vector<std::string> notes;  // what was not measured and why; how it was measured
  std::int64_t windows = 0;        // measured: ranges, graphs or kernels
  std::int64_t samples = 0;
  std::optional<double> period_ns;                  // of samples
  std::int64_t cost_ns = 0;                         // that measuring took from the program
  std::optional<double> clock_shift_ns, clock_fit;  // what was added to the samples' times; how well they then fit
  std::vector<CountedStage> stages;
  std::vector<CountedModule> modules;
  std::vector<UnmixedClass> unmixed;  // most time first
  std::string unmixed_why;            // why there are none
  std::vector<QuantityEvidence> evidence;
  std::vector<KernelOccupancy> occupancy;
  std::vector<KernelStalls> stalls;                   // most samples first
  std::int64_t stall_samples = 0, stall_unknown = 0;  // of these, of code that nobody knows
  bool any() const { return windows > 0 || samples > 0 || stall_samples > 0 || !occupancy.empty(); }
};

}  // namespace llmprof::analyze

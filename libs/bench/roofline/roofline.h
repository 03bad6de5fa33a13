#pragma once
// What a device can really do: peak FLOP/s per type, bandwidths, copies, launches, each measured here and now. Nothing
// is stored by this library: an interrupted measurement leaves no trace.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "bench/type.h"
#include "hw/cpu/measure.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::bench {

struct RooflineOptions {
  std::vector<Type> types;  // whose FLOP/s are measured; empty: all that the device may have
  bool quick = false;       // fewer shapes, less time for each: within 15 s on a GPU, else within 90
};

struct Roofline {
  hw::Device device;
  std::vector<hw::PeakRow> rows;
  std::vector<std::string> notes;  // what a reader must know: who else used the device, what limited its clock
  double seconds = 0;              // that it took
};

// "cpu", "cuda", "cuda:1", or "" for the first GPU, else the CPU; also "gpu" and a bare number, as elsewhere.
struct RooflineTarget {
  bool cpu = true;
  int index = 0;  // of a GPU, as CUDA counts
};
Result<RooflineTarget> parse_roofline_target(std::string_view name, int gpus);

// `name` as above. A quantity that this device lacks is a row that says why; an error is for what stops everything.
Result<Roofline> measure_roofline(const std::string& name, const RooflineOptions& options,
                                  const base::Progress& progress);

// The device that `name` means, without opening it: whose stored peaks are meant.
Result<hw::Device> roofline_device(const std::string& name);

// A measurement as a list of steps, each with an estimate of its time, so that progress has a total.
using hw::GoOn;

struct RooflineStep {
  std::string name;    // "bfloat16 products"
  double seconds = 0;  // expected
  hw::Peak wanted;     // quantity, type and unit: the row when the step fails
  // Rows of one or more peaks. An error becomes a row with its reason; kInterrupted ends everything.
  std::function<Result<std::vector<hw::PeakRow>>(const GoOn& go_on)> run;
};

Result<std::vector<hw::PeakRow>> run_steps(const std::vector<RooflineStep>& steps, const base::Progress& progress);

// What a step is for: a peak without a value.
hw::Peak wanted_peak(std::string quantity, std::string type, std::string unit);

// For steps that give one peak.
std::function<Result<std::vector<hw::PeakRow>>(const GoOn&)> one_peak(std::function<Result<hw::Peak>(const GoOn&)> run);

// The steps of a CPU's roofline: the multiply-add loop beside OpenBLAS, and streams per level of the memory.
std::vector<RooflineStep> cpu_steps(const hw::Device& device, const RooflineOptions& options);

// Of two ways to reach a CPU's peak, the better one: "float32" and "float32, one core" become what OpenBLAS reached,
// where that is more than the loop; and all cores reach what one of them did, even where other programs held the rest:
// whatever a program does, it was possible.
void settle_cpu(std::vector<hw::PeakRow>& rows);

}  // namespace llmprof::bench

#pragma once
// What a device can really do: peak FLOP/s per type, bandwidths, copies, launches, each measured here and now. Nothing
// is stored by this library: an interrupted measurement leaves no trace.

#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "bench/type.h"
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

}  // namespace llmprof::bench

#pragma once
// What the units of one GPU did between two samples (NVML's GPU performance monitoring, Hopper and later).

#include <vector>

#include "hw/telemetry_nvml_calls.h"

namespace llmprof::hw {

class GpmReader {
 public:
  // Off where the GPU or the driver cannot.
  GpmReader(const NvmlTelemetryApi& nvml, NvmlGpu& gpu);
  bool on() const { return samples_[1] != nullptr; }

  // From the second time on, the activity since the sample before; a time less than 100 ms after it does nothing:
  // NVML's answers are undefined then.
  void read(NvmlCalls& calls, NvmlGpu& gpu, std::vector<Reading>& into);

 private:
  const NvmlTelemetryApi& nvml_;
  void* samples_[2] = {nullptr, nullptr};  // NVML's, kept for the life of the process
  int newest_ = 1;
  std::uint64_t newest_ns_ = 0;  // 0: there is none
};

}  // namespace llmprof::hw

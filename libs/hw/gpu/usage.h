#pragma once
// Who else uses a GPU, and in what state it is: what makes a measurement on it worth less. Asked of NVML, by dlopen;
// what a driver does not tell stays unknown.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::hw {

struct GpuProcess {
  std::int64_t pid = 0;                      // as NVML sees it: from inside a container it may be the host's
  std::optional<std::int64_t> memory_bytes;  // of the GPU
  std::string name;                          // "" where /proc does not know the pid
};

struct GpuUsage {
  std::optional<std::vector<GpuProcess>> processes;  // that compute on it, this one included
  std::optional<double> busy_share;                  // of the last moments (up to 1 s) in which a kernel ran, 0 … 1
  std::optional<std::int64_t> memory_used_bytes, memory_total_bytes;
  std::optional<double> sm_clock_mhz, memory_clock_mhz;
  std::vector<std::string> clock_limits;  // why the clock is below its highest: "power limit"; being idle is not one
  std::optional<double> power_watts, power_limit_watts, temperature_celsius;
};

// `pci_bus_id` as CUDA writes it ("0000:3b:00.0"): CUDA and NVML count devices differently.
Result<GpuUsage> gpu_usage(const std::string& pci_bus_id);
struct NvmlApi;  // hw/nvml.h
Result<GpuUsage> read_gpu_usage(const NvmlApi& nvml, const std::string& pci_bus_id);

// What a reader of measurements must know, in words, one sentence each; empty when the GPU is ours alone and at ease.
// `own_pid` is left out of the others; `we_hold_context`: this process has the GPU open, so that one process more, some
// hundreds of MiB and a little load are its own even where its pid is not recognised.
std::vector<std::string> busy_notes(const GpuUsage& usage, std::int64_t own_pid, bool we_hold_context);

// Both of the above for this process, best asked before anything runs. Where NVML does not answer, one note says so.
std::vector<std::string> gpu_notes(const std::string& pci_bus_id, bool we_hold_context);

}  // namespace llmprof::hw

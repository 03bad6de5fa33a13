#pragma once
// The functions of NVML that tell how a GPU is used; see hw/nvml.h. A test fills the table with functions of its own.

#include "base/result.h"
#include "hw/gpu_usage.h"
#include "hw/nvml.h"

namespace llmprof::hw {

struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;  // all ones: not available
  unsigned gpu_instance, compute_instance;
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};

inline constexpr int kNvmlInsufficientSize = 7;
inline constexpr unsigned kNvmlClockMemory = 2;
inline constexpr unsigned kNvmlTemperatureGpu = 0;

struct NvmlUsageApi {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handle_by_bus_id)(const char*, NvmlDevice**) = nullptr;
  // All others are optional.
  const char* (*error_string)(int) = nullptr;
  int (*processes)(NvmlDevice*, unsigned*, NvmlProcess*) = nullptr;
  int (*utilization)(NvmlDevice*, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice*, NvmlMemory*) = nullptr;
  int (*clock)(NvmlDevice*, unsigned, unsigned*) = nullptr;
  int (*clock_reasons)(NvmlDevice*, unsigned long long*) = nullptr;
  int (*clock_reasons_before_12_2)(NvmlDevice*, unsigned long long*) = nullptr;
  int (*power)(NvmlDevice*, unsigned*) = nullptr;        // milliwatts
  int (*power_limit)(NvmlDevice*, unsigned*) = nullptr;  // milliwatts
  int (*temperature)(NvmlDevice*, unsigned, unsigned*) = nullptr;
};

Result<GpuUsage> read_gpu_usage(const NvmlUsageApi& nvml, const std::string& pci_bus_id);

}  // namespace llmprof::hw

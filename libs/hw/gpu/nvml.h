#pragma once
// The functions of NVIDIA's management library that llmprof calls. Declared here, loaded by dlopen: no CUDA header and
// no driver is needed to build or to run. Signatures, numbers and structures are part of NVML's stable interface
// (suffix _v2 where renewed). Tests fill the table with functions of their own.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::hw {

struct NvmlDevice;  // opaque

struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;  // all ones: not available
  unsigned gpu_instance, compute_instance;
};
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};

inline constexpr int kNvmlSuccess = 0, kNvmlInvalidArgument = 2, kNvmlNotSupported = 3, kNvmlNoPermission = 4;
inline constexpr int kNvmlInsufficientSize = 7, kNvmlDriverNotLoaded = 9, kNvmlFunctionNotFound = 13;
inline constexpr int kNvmlGpuIsLost = 15, kNvmlResetRequired = 16, kNvmlVersionMismatch = 25;
inline constexpr unsigned kNvmlClockSm = 1, kNvmlClockMemory = 2, kNvmlTemperatureGpu = 0;

struct NvmlFieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;  // 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int, 6 unsigned short
  int status;
  union {
    double real;
    int integer;
    unsigned number;
    unsigned long long large;
    long long large_signed;
    unsigned short small;
  };
};
static_assert(sizeof(NvmlFieldValue) == 40);
inline constexpr unsigned kFieldEnergy = 83, kFieldPower = 186;

struct NvmlGpmSupport {
  unsigned version, supported;
};
struct NvmlGpmMetric {
  unsigned id;
  int status;
  double value;
  const char *short_name, *long_name, *unit;
};
struct NvmlGpmMetrics {
  unsigned version, count;
  void *first, *second;
  NvmlGpmMetric metrics[512];  // NVML's own has as many as it knows metrics (98, 333…); it touches `count` of them
};
static_assert(offsetof(NvmlGpmMetrics, metrics) == 24 && sizeof(NvmlGpmMetric) == 40);

// name, function, arguments. Power is in milliwatts, energy in millijoules; link_traffic: 0 sent, 1 received, KB/s over
// 20 ms, in which it waits. Older drivers lack some: all but init may be nullptr.
// clang-format off
#define LLMPROF_NVML_CALLS(X) \
  X(shutdown, nvmlShutdown, ()) \
  X(driver_version, nvmlSystemGetDriverVersion, (char*, unsigned)) \
  X(count, nvmlDeviceGetCount_v2, (unsigned*)) \
  X(handle, nvmlDeviceGetHandleByIndex_v2, (unsigned, NvmlDevice**)) \
  X(handle_by_bus_id, nvmlDeviceGetHandleByPciBusId_v2, (const char*, NvmlDevice**)) \
  X(name, nvmlDeviceGetName, (NvmlDevice*, char*, unsigned)) \
  X(uuid, nvmlDeviceGetUUID, (NvmlDevice*, char*, unsigned)) \
  X(capability, nvmlDeviceGetCudaComputeCapability, (NvmlDevice*, int*, int*)) \
  X(cores, nvmlDeviceGetNumGpuCores, (NvmlDevice*, unsigned*)) \
  X(max_clock, nvmlDeviceGetMaxClockInfo, (NvmlDevice*, unsigned, unsigned*)) \
  X(mig_mode, nvmlDeviceGetMigMode, (NvmlDevice*, unsigned*, unsigned*)) \
  X(processes, nvmlDeviceGetComputeRunningProcesses_v3, (NvmlDevice*, unsigned*, NvmlProcess*)) \
  X(utilization, nvmlDeviceGetUtilizationRates, (NvmlDevice*, NvmlUtilization*)) \
  X(memory, nvmlDeviceGetMemoryInfo, (NvmlDevice*, NvmlMemory*)) \
  X(clock, nvmlDeviceGetClockInfo, (NvmlDevice*, unsigned, unsigned*)) \
  X(clock_reasons, nvmlDeviceGetCurrentClocksEventReasons, (NvmlDevice*, unsigned long long*)) \
  X(clock_reasons_before_12_2, nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice*, unsigned long long*)) \
  X(fields, nvmlDeviceGetFieldValues, (NvmlDevice*, int, NvmlFieldValue*)) \
  X(power, nvmlDeviceGetPowerUsage, (NvmlDevice*, unsigned*)) \
  X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice*, unsigned*)) \
  X(energy, nvmlDeviceGetTotalEnergyConsumption, (NvmlDevice*, unsigned long long*)) \
  X(temperature, nvmlDeviceGetTemperature, (NvmlDevice*, unsigned, unsigned*)) \
  X(performance_state, nvmlDeviceGetPerformanceState, (NvmlDevice*, unsigned*)) \
  X(link_generation, nvmlDeviceGetCurrPcieLinkGeneration, (NvmlDevice*, unsigned*)) \
  X(link_width, nvmlDeviceGetCurrPcieLinkWidth, (NvmlDevice*, unsigned*)) \
  X(link_traffic, nvmlDeviceGetPcieThroughput, (NvmlDevice*, unsigned, unsigned*)) \
  X(gpm_support, nvmlGpmQueryDeviceSupport, (NvmlDevice*, NvmlGpmSupport*)) \
  X(gpm_allocate, nvmlGpmSampleAlloc, (void**)) \
  X(gpm_sample, nvmlGpmSampleGet, (NvmlDevice*, void*)) \
  X(gpm_metrics, nvmlGpmMetricsGet, (NvmlGpmMetrics*))
// clang-format on

struct NvmlApi {
  int (*init)() = nullptr;
  const char* (*error_string)(int) = nullptr;
#define LLMPROF_NVML_FIELD(name, function, arguments) int(*name) arguments = nullptr;
  LLMPROF_NVML_CALLS(LLMPROF_NVML_FIELD)
#undef LLMPROF_NVML_FIELD

  // In NVML's words, or its number behind `unknown`.
  std::string error_text(int status, std::string_view unknown = "NVML status") const;
};

Result<NvmlApi> load_nvml();

// Whether a function is there and succeeds.
template <class... Parameters, class... Arguments>
bool succeeds(int (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == kNvmlSuccess;
}

}  // namespace llmprof::hw

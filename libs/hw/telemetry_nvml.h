#pragma once
// NVML's functions that tell what a GPU does now, and the source of telemetry made of them. A test fills the table with
// functions of its own. Numbers and structures are of NVML's stable interface.

#include <memory>

#include "hw/gpu_usage_nvml.h"
#include "hw/telemetry.h"

namespace llmprof::hw {

inline constexpr int kNvmlInvalidArgument = 2, kNvmlNotSupported = 3, kNvmlNoPermission = 4;
inline constexpr int kNvmlDriverNotLoaded = 9, kNvmlFunctionNotFound = 13;
inline constexpr int kNvmlGpuIsLost = 15, kNvmlResetRequired = 16, kNvmlVersionMismatch = 25;

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

struct NvmlTelemetryApi {
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice**) = nullptr;
  // All others are optional.
  const char* (*error_string)(int) = nullptr;
  int (*name)(NvmlDevice*, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice*, char*, unsigned) = nullptr;
  int (*mig_mode)(NvmlDevice*, unsigned*, unsigned*) = nullptr;
  int (*fields)(NvmlDevice*, int, NvmlFieldValue*) = nullptr;
  int (*power)(NvmlDevice*, unsigned*) = nullptr;             // milliwatts
  int (*energy)(NvmlDevice*, unsigned long long*) = nullptr;  // millijoules
  int (*power_limit)(NvmlDevice*, unsigned*) = nullptr;       // milliwatts
  int (*clock)(NvmlDevice*, unsigned, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice*, unsigned, unsigned*) = nullptr;
  int (*utilization)(NvmlDevice*, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice*, NvmlMemory*) = nullptr;
  int (*performance_state)(NvmlDevice*, unsigned*) = nullptr;
  int (*clock_reasons)(NvmlDevice*, unsigned long long*) = nullptr;
  int (*clock_reasons_before_12_2)(NvmlDevice*, unsigned long long*) = nullptr;
  int (*link_generation)(NvmlDevice*, unsigned*) = nullptr;
  int (*link_width)(NvmlDevice*, unsigned*) = nullptr;
  int (*link_traffic)(NvmlDevice*, unsigned,
                      unsigned*) = nullptr;  // 0 sent, 1 received; KB/s over 20 ms, in which it waits
  int (*processes)(NvmlDevice*, unsigned*, NvmlProcess*) = nullptr;
  int (*gpm_support)(NvmlDevice*, NvmlGpmSupport*) = nullptr;
  int (*gpm_allocate)(void**) = nullptr;
  int (*gpm_sample)(NvmlDevice*, void*) = nullptr;
  int (*gpm_metrics)(NvmlGpmMetrics*) = nullptr;
};

// Starts NVML and looks for GPUs.
Result<std::unique_ptr<TelemetrySource>> nvml_source(const NvmlTelemetryApi& nvml);

}  // namespace llmprof::hw

#pragma once
// The few functions of NVIDIA's management library that llmprof calls. Declared here, loaded by dlopen: no CUDA header
// and no driver is needed to build or to run. Signatures are part of NVML's stable interface (suffix _v2 where
// renewed).

#include <cstdint>

#include "base/result.h"

namespace llmprof::hw {

struct NvmlDevice;  // opaque

struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};

inline constexpr int kNvmlSuccess = 0;
inline constexpr unsigned kNvmlClockSm = 1;

struct NvmlApi {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice**) = nullptr;
  int (*name)(NvmlDevice*, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice*, NvmlMemory*) = nullptr;
  int (*max_clock)(NvmlDevice*, unsigned, unsigned*) = nullptr;
  int (*capability)(NvmlDevice*, int*, int*) = nullptr;
  int (*cores)(NvmlDevice*, unsigned*) = nullptr;       // optional: older drivers lack it
  int (*uuid)(NvmlDevice*, char*, unsigned) = nullptr;  // optional
  const char* (*error_string)(int) = nullptr;           // optional
};

Result<NvmlApi> load_nvml();

}  // namespace llmprof::hw

#pragma once
// A device that executes kernels: a CPU or a GPU. Nothing above libs/hw names a vendor.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::hw {

struct Device {
  std::string kind;        // "cpu", "gpu"
  std::string name;        // "AMD EPYC 7B13"
  std::string chip;        // instruction set level ("x86-64-v3") or GPU chip ("GH100")
  std::int64_t units = 0;  // cores usable by this process, or SMs
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;     // last-level cache this process can use
  std::optional<double> clock_mhz;  // highest the system reports
  std::string driver;               // GPU driver version, "" for a CPU
  std::string uuid;                 // "GPU-…"; "" if unknown, and for a CPU
};

// The CPU of this machine. `root` is "/" but in tests (a fake /proc and /sys).
Device probe_cpu(const std::string& root = "/");
// GPUs the driver reports (NVML by dlopen); empty without a driver. Asked once.
std::vector<Device> probe_gpus();

}  // namespace llmprof::hw

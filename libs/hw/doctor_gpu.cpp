#include <dlfcn.h>
#include <fmt/format.h>

#include "hw/cupti_paths.h"
#include "hw/device.h"
#include "hw/doctor_checks.h"
#include "hw/library_probe.h"
#include "hw/nvml.h"

namespace llmprof::hw {
namespace {

constexpr const char* kNoGpuNeeded = "nothing to do for a CPU; for an NVIDIA GPU install its driver";

std::string cupti_version(void* handle) {
  const auto get = reinterpret_cast<int (*)(std::uint32_t*)>(::dlsym(handle, "cuptiGetVersion"));
  std::uint32_t version = 0;
  return get != nullptr && get(&version) == 0 ? fmt::format("API version {}", version) : "version unknown";
}

}  // namespace

Finding check_driver(const SystemFiles& files) {
  const std::string version = files.value("proc/driver/nvidia/version", "NVRM version");
  if (version.empty()) return {"gpu driver", Status::kAbsent, "no NVIDIA driver", kNoGpuNeeded};
  if (!files.exists("dev/nvidiactl")) {
    return {"gpu driver", Status::kWarn, version + ", but no /dev/nvidiactl",
            "start the container with its GPUs (docker run --gpus all)"};
  }
  return {"gpu driver", Status::kOk, version, ""};
}

Finding check_nvml() {
  const Result<NvmlApi> nvml = load_nvml();
  if (!nvml) return {"nvml", Status::kAbsent, "libnvidia-ml.so.1 not found", kNoGpuNeeded};
  if (const int code = nvml->init(); code != kNvmlSuccess) {
    const std::string text = nvml->error_string != nullptr ? nvml->error_string(code) : fmt::format("error {}", code);
    return {"nvml", Status::kWarn, text,
            "check that the driver is loaded and matches its libraries (nvidia-smi says more)"};
  }
  nvml->shutdown();
  const std::vector<Device> gpus = probe_gpus();
  std::string found = fmt::format("{} GPU{}", gpus.size(), gpus.size() == 1 ? "" : "s");
  for (const Device& gpu : gpus) found += (&gpu == &gpus.front() ? ": " : ", ") + gpu.name;
  return {"nvml", Status::kOk, found, ""};
}

Finding check_cupti(const SystemFiles& files) {
  for (const std::string& path : cupti_paths(files)) {
    const bool by_name = path.find('/') == std::string::npos;
    if (!by_name && !SystemFiles("/").exists(path)) continue;
    const LibraryProbe probe = probe_library(path, cupti_version);
    if (probe.loaded) return {"cupti", Status::kOk, fmt::format("{}, {}", path, probe.detail), ""};
  }
  return {"cupti", Status::kAbsent, "libcupti.so.13 and libcupti.so.12 not found",
          "nothing to do for a CPU; for GPU kernels install the CUDA toolkit, or pip install nvidia-cuda-cupti"};
}

Finding check_counters(const SystemFiles& files) {
  const std::string admin_only = files.value("proc/driver/nvidia/params", "RmProfilingAdminOnly");
  if (admin_only.empty()) return {"gpu counters", Status::kAbsent, "no NVIDIA driver", kNoGpuNeeded};
  if (admin_only == "0") return {"gpu counters", Status::kOk, "open to all users", ""};
  if (is_privileged(files))
    return {"gpu counters", Status::kOk, "for administrators only, and this process is one", ""};
  return {
      "gpu counters", Status::kWarn, "for administrators only (RmProfilingAdminOnly = 1)",
      "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as root (container: --cap-add SYS_ADMIN)"};
}

}  // namespace llmprof::hw

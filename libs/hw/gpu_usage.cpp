#include "hw/gpu_usage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/dynlib.h"
#include "hw/gpu_usage_nvml.h"
#include "hw/telemetry_metrics.h"

namespace llmprof::hw {
namespace {

using base::bind;
using base::Need;

constexpr base::Binding<NvmlUsageApi> kSymbols[] = {
    bind<&NvmlUsageApi::init>("nvmlInit_v2"),
    bind<&NvmlUsageApi::shutdown>("nvmlShutdown"),
    bind<&NvmlUsageApi::handle_by_bus_id>("nvmlDeviceGetHandleByPciBusId_v2"),
    bind<&NvmlUsageApi::error_string>("nvmlErrorString", Need::kOptional),
    bind<&NvmlUsageApi::processes>("nvmlDeviceGetComputeRunningProcesses_v3", Need::kOptional),
    bind<&NvmlUsageApi::utilization>("nvmlDeviceGetUtilizationRates", Need::kOptional),
    bind<&NvmlUsageApi::memory>("nvmlDeviceGetMemoryInfo", Need::kOptional),
    bind<&NvmlUsageApi::clock>("nvmlDeviceGetClockInfo", Need::kOptional),
    bind<&NvmlUsageApi::clock_reasons>("nvmlDeviceGetCurrentClocksEventReasons", Need::kOptional),
    bind<&NvmlUsageApi::clock_reasons_before_12_2>("nvmlDeviceGetCurrentClocksThrottleReasons", Need::kOptional),
    bind<&NvmlUsageApi::power>("nvmlDeviceGetPowerUsage", Need::kOptional),
    bind<&NvmlUsageApi::power_limit>("nvmlDeviceGetEnforcedPowerLimit", Need::kOptional),
    bind<&NvmlUsageApi::temperature>("nvmlDeviceGetTemperature", Need::kOptional),
};

std::string process_name(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

std::optional<std::vector<GpuProcess>> read_processes(const NvmlUsageApi& nvml, NvmlDevice* device) {
  if (nvml.processes == nullptr) return std::nullopt;
  std::vector<NvmlProcess> found(16);
  auto count = static_cast<unsigned>(found.size());
  int status = nvml.processes(device, &count, found.data());
  if (status == kNvmlInsufficientSize) {
    found.resize(std::min(count, 4096u) + 16u);  // some may start in between
    count = static_cast<unsigned>(found.size());
    status = nvml.processes(device, &count, found.data());
  }
  if (status != kNvmlSuccess || count > found.size()) return std::nullopt;
  std::vector<GpuProcess> processes;
  for (unsigned i = 0; i < count; ++i) {
    GpuProcess process{.pid = found[i].pid, .memory_bytes = {}, .name = process_name(found[i].pid)};
    if (found[i].used_bytes != ~0ull) process.memory_bytes = static_cast<std::int64_t>(found[i].used_bytes);
    processes.push_back(std::move(process));
  }
  return processes;
}

std::vector<std::string> read_clock_limits(const NvmlUsageApi& nvml, NvmlDevice* device) {
  const auto ask = nvml.clock_reasons != nullptr ? nvml.clock_reasons : nvml.clock_reasons_before_12_2;
  unsigned long long bits = 0;
  if (ask == nullptr || ask(device, &bits) != kNvmlSuccess) return {};
  std::vector<std::string> limits;
  for (const ClockLimit& reason : clock_limits()) {
    if ((bits & reason.bit) != 0) limits.emplace_back(reason.words);
  }
  return limits;
}

// A number that NVML tells as unsigned, in the unit wanted.
std::optional<double> number(int (*ask)(NvmlDevice*, unsigned*), NvmlDevice* device, double factor) {
  unsigned value = 0;
  if (ask == nullptr || ask(device, &value) != kNvmlSuccess) return std::nullopt;
  return value * factor;
}

std::optional<double> number(int (*ask)(NvmlDevice*, unsigned, unsigned*), NvmlDevice* device, unsigned which) {
  unsigned value = 0;
  if (ask == nullptr || ask(device, which, &value) != kNvmlSuccess) return std::nullopt;
  return value;
}

GpuUsage read_device(const NvmlUsageApi& nvml, NvmlDevice* device) {
  GpuUsage usage;
  usage.processes = read_processes(nvml, device);
  NvmlUtilization utilization{};
  if (nvml.utilization != nullptr && nvml.utilization(device, &utilization) == kNvmlSuccess) {
    usage.busy_share = utilization.gpu / 100.0;
  }
  NvmlMemory memory{};
  if (nvml.memory != nullptr && nvml.memory(device, &memory) == kNvmlSuccess) {
    usage.memory_used_bytes = static_cast<std::int64_t>(memory.used);
    usage.memory_total_bytes = static_cast<std::int64_t>(memory.total);
  }
  usage.sm_clock_mhz = number(nvml.clock, device, kNvmlClockSm);
  usage.memory_clock_mhz = number(nvml.clock, device, kNvmlClockMemory);
  usage.clock_limits = read_clock_limits(nvml, device);
  usage.power_watts = number(nvml.power, device, 1e-3);
  usage.power_limit_watts = number(nvml.power_limit, device, 1e-3);
  usage.temperature_celsius = number(nvml.temperature, device, kNvmlTemperatureGpu);
  return usage;
}

Error nvml_error(const NvmlUsageApi& nvml, const std::string& what, int status) {
  const char* text = nvml.error_string != nullptr ? nvml.error_string(status) : nullptr;
  return {ErrorCode::kUnsupported,
          fmt::format("{}: {}", what, text != nullptr ? text : fmt::format("status {}", status)), ""};
}

}  // namespace

Result<GpuUsage> read_gpu_usage(const NvmlUsageApi& nvml, const std::string& pci_bus_id) {
  if (const int status = nvml.init(); status != kNvmlSuccess) return nvml_error(nvml, "NVML does not start", status);
  NvmlDevice* device = nullptr;
  const int status = nvml.handle_by_bus_id(pci_bus_id.c_str(), &device);
  Result<GpuUsage> usage = status == kNvmlSuccess
                               ? Result<GpuUsage>(read_device(nvml, device))
                               : Result<GpuUsage>(nvml_error(nvml, "NVML has no GPU at " + pci_bus_id, status));
  nvml.shutdown();
  return usage;
}

Result<GpuUsage> gpu_usage(const std::string& pci_bus_id) {
  const std::string names[] = {"libnvidia-ml.so.1"};
  LLMPROF_LET(const NvmlUsageApi nvml, base::load_api<NvmlUsageApi>(names, kSymbols));
  return read_gpu_usage(nvml, pci_bus_id);
}

std::vector<std::string> gpu_notes(const std::string& pci_bus_id, bool we_hold_context) {
  const Result<GpuUsage> usage = gpu_usage(pci_bus_id);
  if (!usage) return {"whether other programs use this GPU is not known: " + usage.error().message};
  return busy_notes(*usage, ::getpid(), we_hold_context);
}

}  // namespace llmprof::hw

#include "hw/gpu/usage.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string>

#include "base/dynlib.h"
#include "base/json.h"
#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/gpu/nvml.h"
#include "hw/in_child.h"
#include "hw/telemetry/metrics.h"

namespace llmprof::hw {

namespace {

std::string process_name(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

std::optional<std::vector<GpuProcess>> read_processes(const NvmlApi& nvml, NvmlDevice* device) {
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

std::vector<std::string> read_clock_limits(const NvmlApi& nvml, NvmlDevice* device) {
  const auto ask = nvml.clock_reasons != nullptr ? nvml.clock_reasons : nvml.clock_reasons_before_12_2;
  unsigned long long bits = 0;
  if (!succeeds(ask, device, &bits)) return {};
  std::vector<std::string> limits;
  for (const ClockLimit& reason : clock_limits()) {
    if ((bits & reason.bit) != 0) limits.emplace_back(reason.words);
  }
  return limits;
}

// A number that NVML tells as unsigned, in the unit wanted; `which` of several.
template <class Function, class... Which>
std::optional<double> number(Function* ask, NvmlDevice* device, double factor, Which... which) {
  unsigned value = 0;
  return succeeds(ask, device, which..., &value) ? std::optional(value * factor) : std::nullopt;
}

GpuUsage read_device(const NvmlApi& nvml, NvmlDevice* device) {
  GpuUsage usage;
  usage.processes = read_processes(nvml, device);
  NvmlUtilization utilization{};
  if (succeeds(nvml.utilization, device, &utilization)) usage.busy_share = utilization.gpu / 100.0;
  NvmlMemory memory{};
  if (succeeds(nvml.memory, device, &memory)) {
    usage.memory_used_bytes = static_cast<std::int64_t>(memory.used);
    usage.memory_total_bytes = static_cast<std::int64_t>(memory.total);
  }
  usage.sm_clock_mhz = number(nvml.clock, device, 1, kNvmlClockSm);
  usage.memory_clock_mhz = number(nvml.clock, device, 1, kNvmlClockMemory);
  usage.clock_limits = read_clock_limits(nvml, device);
  usage.power_watts = number(nvml.power, device, 1e-3);
  usage.power_limit_watts = number(nvml.power_limit, device, 1e-3);
  usage.temperature_celsius = number(nvml.temperature, device, 1, kNvmlTemperatureGpu);
  return usage;
}

// From what NVML says of a GPU to the sentences a reader of measurements needs.

// What a driver and the context of one program take on the largest GPUs: less says nothing about others.
constexpr std::int64_t kOwnBytes = std::int64_t{2} << 30;
// Opening a context shows as a few percent.
constexpr double kIdleShare = 0.10;
constexpr std::size_t kNamed = 3;  // processes that a note names

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string in_words(const GpuProcess& process) {
  std::string text = fmt::format("pid {}", process.pid);
  if (!process.name.empty()) text += " " + process.name;
  if (process.memory_bytes) text += fmt::format(", {:.1f} GiB", gib(*process.memory_bytes));
  return text;
}

// Without this process. Where its pid is not among them (a container), one of them is it if it holds a context.
std::vector<GpuProcess> others_of(std::vector<GpuProcess> processes, std::int64_t own_pid, bool we_hold_context) {
  const std::size_t all = processes.size();
  std::erase_if(processes, [own_pid](const GpuProcess& process) { return process.pid == own_pid; });
  if (processes.size() < all || !we_hold_context || processes.empty()) return processes;
  // Ours is one that /proc does not know, if any.
  const auto unnamed =
      std::find_if(processes.begin(), processes.end(), [](const GpuProcess& p) { return p.name.empty(); });
  if (unnamed != processes.end()) processes.erase(unnamed);
  return processes;
}

std::string others_note(const std::vector<GpuProcess>& others, const GpuUsage& usage) {
  std::string names;
  for (std::size_t i = 0; i < std::min(others.size(), kNamed); ++i) {
    names += (i == 0 ? "" : "; ") + in_words(others[i]);
  }
  if (others.size() > kNamed) names += fmt::format("; {} more", others.size() - kNamed);
  std::string note = others.size() == 1 ? "another program has this GPU open (" : "other programs have this GPU open (";
  note += names + ")";
  if (usage.busy_share) note += fmt::format("; a kernel ran {:.0f} % of the last moments", *usage.busy_share * 100);
  return note;
}

constexpr base::Binding<NvmlApi> kSymbols[] = {
    base::bind<&NvmlApi::init>("nvmlInit_v2"),
    base::bind<&NvmlApi::error_string>("nvmlErrorString", base::Need::kOptional),
#define LLMPROF_NVML_BINDING(name, function, arguments) base::bind<&NvmlApi::name>(#function, base::Need::kOptional),
    LLMPROF_NVML_CALLS(LLMPROF_NVML_BINDING)
#undef LLMPROF_NVML_BINDING
};

// NVML counts FP32 lanes ("cores"); a multiprocessor has 64 or 128 of them, by compute capability.
unsigned lanes_per_multiprocessor(int major, int minor) {
  const bool narrow = (major == 6 && minor == 0) || major == 7 || (major == 8 && minor == 0);
  return narrow ? 64 : 128;
}

Device read_gpu(const NvmlApi& nvml, NvmlDevice* handle, const std::string& driver) {
  Device device{.kind = "gpu", .driver = driver};
  std::array<char, 128> name{};
  if (succeeds(nvml.name, handle, name.data(), unsigned{name.size()})) device.name = name.data();
  std::array<char, 96> uuid{};
  if (succeeds(nvml.uuid, handle, uuid.data(), unsigned{uuid.size()})) device.uuid = uuid.data();
  NvmlMemory memory{};
  if (succeeds(nvml.memory, handle, &memory)) device.memory_bytes = static_cast<std::int64_t>(memory.total);
  unsigned mhz = 0;
  if (succeeds(nvml.max_clock, handle, kNvmlClockSm, &mhz) && mhz > 0) device.clock_mhz = mhz;
  int major = 0, minor = 0;
  if (succeeds(nvml.capability, handle, &major, &minor)) {
    device.chip = fmt::format("sm_{}{}", major, minor);
    unsigned cores = 0;
    if (succeeds(nvml.cores, handle, &cores)) device.units = cores / lanes_per_multiprocessor(major, minor);
  }
  // NVML does not tell the cache, but the catalogue may.
  if (const DeviceSpec* spec = find_device(device.name)) device.cache_bytes = device_of(*spec).cache_bytes;
  return device;
}

std::vector<Device> ask_driver() {
  const Result<NvmlApi> nvml = load_nvml();
  if (!nvml || nvml->init() != kNvmlSuccess) return {};
  std::array<char, 96> driver{};
  unsigned count = 0;
  (void)succeeds(nvml->driver_version, driver.data(), unsigned{driver.size()});
  if (!succeeds(nvml->count, &count)) count = 0;
  std::vector<Device> devices;
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice* handle = nullptr;
    if (succeeds(nvml->handle, index, &handle)) devices.push_back(read_gpu(*nvml, handle, driver.data()));
  }
  (void)succeeds(nvml->shutdown);
  return devices;
}

// A driver may take seconds to wake up; one that takes longer does not answer at all.
constexpr std::chrono::seconds kPatience{15};

base::Json to_json(const Device& device) {
  return {device.name,         device.chip,        device.units,
          device.memory_bytes, device.cache_bytes, base::maybe(device.clock_mhz),
          device.driver,       device.uuid};
}

Device from_json(const base::Json& fields) {
  Device device{.kind = "gpu", .name = fields[0], .chip = fields[1], .units = fields[2]};
  device.memory_bytes = fields[3];
  device.cache_bytes = fields[4];
  if (fields[5].is_number()) device.clock_mhz = fields[5].get<double>();
  device.driver = fields[6];
  device.uuid = fields[7];
  return device;
}

std::vector<Device> ask_in_child() {
  const Result<std::string> answer = in_child(
      [] {
        base::Json list = base::Json::array();
        for (const Device& device : ask_driver()) list.push_back(to_json(device));
        return base::to_line(list);
      },
      kPatience);
  if (!answer) return {};
  const Result<base::Json> list = base::parse_json(*answer, "the driver's answer");
  std::vector<Device> devices;
  if (!list) return devices;
  for (const base::Json& fields : *list) devices.push_back(from_json(fields));  // our own: every field is there
  return devices;
}

}  // namespace

Result<GpuUsage> read_gpu_usage(const NvmlApi& nvml, const std::string& pci_bus_id) {
  const auto failed = [&](const std::string& what, int status) {
    return Error{ErrorCode::kUnsupported, fmt::format("{}: {}", what, nvml.error_text(status, "status")), ""};
  };
  if (const int status = nvml.init(); status != kNvmlSuccess) return failed("NVML does not start", status);
  NvmlDevice* device = nullptr;
  const int status =
      nvml.handle_by_bus_id != nullptr ? nvml.handle_by_bus_id(pci_bus_id.c_str(), &device) : kNvmlFunctionNotFound;
  Result<GpuUsage> usage = status == kNvmlSuccess
                               ? Result<GpuUsage>(read_device(nvml, device))
                               : Result<GpuUsage>(failed("NVML has no GPU at " + pci_bus_id, status));
  (void)succeeds(nvml.shutdown);
  return usage;
}

Result<GpuUsage> gpu_usage(const std::string& pci_bus_id) {
  LLMPROF_LET(const NvmlApi nvml, load_nvml());
  return read_gpu_usage(nvml, pci_bus_id);
}

std::vector<std::string> gpu_notes(const std::string& pci_bus_id, bool we_hold_context) {
  const Result<GpuUsage> usage = gpu_usage(pci_bus_id);
  if (!usage) return {"whether other programs use this GPU is not known: " + usage.error().message};
  return busy_notes(*usage, ::getpid(), we_hold_context);
}

std::vector<std::string> busy_notes(const GpuUsage& usage, std::int64_t own_pid, bool we_hold_context) {
  std::vector<std::string> notes;
  std::vector<GpuProcess> others;
  if (usage.processes) others = others_of(*usage.processes, own_pid, we_hold_context);
  // Where NVML lists this process by its pid and nobody else, load and memory are its own.
  const bool all_seen = usage.processes && std::any_of(usage.processes->begin(), usage.processes->end(),
                                                       [own_pid](const GpuProcess& p) { return p.pid == own_pid; });
  if (!others.empty()) {
    notes.push_back(others_note(others, usage));
  } else if (!all_seen) {
    if (usage.busy_share.value_or(0) > kIdleShare) {
      notes.push_back(fmt::format("this GPU was busy {:.0f} % of the last moments, with work not visible from here",
                                  *usage.busy_share * 100));
    }
    if (usage.memory_used_bytes.value_or(0) > kOwnBytes) {
      notes.push_back(
          fmt::format("{:.1f} of {:.1f} GiB of this GPU's memory were taken already, by programs not visible "
                      "from here",
                      gib(*usage.memory_used_bytes), gib(usage.memory_total_bytes.value_or(0))));
    }
  }
  for (const std::string& limit : usage.clock_limits) {
    notes.push_back("this GPU's clock is limited: " + limit +
                    (usage.sm_clock_mhz ? fmt::format(" ({:.0f} MHz now)", *usage.sm_clock_mhz) : ""));
  }
  return notes;
}

std::string NvmlApi::error_text(int status, std::string_view unknown) const {
  const char* text = error_string != nullptr ? error_string(status) : nullptr;
  return text != nullptr ? text : fmt::format("{} {}", unknown, status);
}

Result<NvmlApi> load_nvml() {
  const std::string names[] = {"libnvidia-ml.so.1"};
  return base::load_api<NvmlApi>(names, kSymbols);
}

std::vector<Device> probe_gpus() {
  static const std::vector<Device> devices = ask_in_child();
  return devices;
}

}  // namespace llmprof::hw

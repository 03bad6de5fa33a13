#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>

#include "base/dynlib.h"
#include "base/json.h"
#include "hw/catalog.h"
#include "hw/device.h"
#include "hw/in_child.h"
#include "hw/nvml.h"

namespace llmprof::hw {
namespace {

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

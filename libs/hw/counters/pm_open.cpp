// The devices of this machine, each with a sampler.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/dynlib.h"
#include "hw/counters/catalog.h"
#include "hw/counters/pm_device.h"
#include "hw/counters/pm_sampling.h"
#include "hw/doctor.h"
#include "hw/system_files.h"

namespace llmprof::hw::counters {

namespace {

using base::bind;
using base::Need;

struct CudaApi {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*uuid)(std::uint8_t*, int) = nullptr;
  int (*old_uuid)(std::uint8_t*, int) = nullptr;
};
constexpr base::Binding<CudaApi> kCudaSymbols[] = {bind<&CudaApi::init>("cuInit"),
                                                   bind<&CudaApi::count>("cuDeviceGetCount"),
                                                   bind<&CudaApi::device>("cuDeviceGet"),
                                                   bind<&CudaApi::name>("cuDeviceGetName"),
                                                   bind<&CudaApi::uuid>("cuDeviceGetUuid_v2", Need::kOptional),
                                                   bind<&CudaApi::old_uuid>("cuDeviceGetUuid", Need::kOptional)};

class PmOpener {
 public:
  PmOpener(const PmLibrary& library, const CudaApi& cuda, const Selection& selection, std::chrono::nanoseconds period)
      : library_(library), cuda_(cuda), selection_(selection), period_(period) {}

  void open(std::size_t index, PmDevices& devices) const {
    PmDeviceInfo info = describe(index);
    auto chip = cupti::make<cupti::DeviceChipName>();
    chip.device = index;
    if (const int code = library_.chip_name(&chip)) return refuse({"cuptiDeviceGetChipName", code}, index, devices);
    info.chip = chip.chip;
    const ChipMetrics wanted = metrics_of(selection_, info.chip, Method::kSampled);
    devices.not_sampled.insert(devices.not_sampled.end(), wanted.missing.begin(), wanted.missing.end());
    auto config = std::make_unique<PmConfig>(library_, info.chip);
    if (const CallFailure failure = config->choose(wanted.metrics, devices)) return refuse(failure, index, devices);
    if (config->metrics().empty()) {
      devices.problems.push_back({PmRefusal::kUnsupported, fmt::format("GPU {}: nothing of it can be sampled", index)});
      return;
    }
    info.metrics = config->metrics();
    auto device = std::make_unique<CuptiPmDevice>(library_, std::move(config), info.chip, period_);
    if (const CallFailure failure = device->open(index)) return refuse(failure, index, devices);
    devices.samplers.push_back(std::make_unique<PmSampler>(std::move(info), std::move(device)));
  }

 private:
  PmDeviceInfo describe(std::size_t index) const {
    PmDeviceInfo info;
    info.device = static_cast<std::uint32_t>(index);
    info.period = period_;
    int device = 0;
    std::array<char, 128> name{};
    if (cuda_.device(&device, static_cast<int>(index)) != 0) return info;
    if (cuda_.name(name.data(), static_cast<int>(name.size() - 1), device) == 0) info.name = name.data();
    const auto get_uuid = cuda_.uuid != nullptr ? cuda_.uuid : cuda_.old_uuid;
    std::array<std::uint8_t, 16> uuid{};
    if (get_uuid == nullptr || get_uuid(uuid.data(), device) != 0) return info;
    for (std::size_t i = 0; i < 8; ++i) info.uuid_high = info.uuid_high << 8 | uuid[i];
    for (std::size_t i = 8; i < 16; ++i) info.uuid_low = info.uuid_low << 8 | uuid[i];
    return info;
  }

  void refuse(const CallFailure& failure, std::size_t index, PmDevices& devices) const {
    const PmRefusal refusal = refusal_of(failure);
    std::string text = fmt::format("GPU {}: {}", index, text_of(library_, failure));
    if (refusal == PmRefusal::kForbidden) text += "; " + restriction(SystemFiles());
    if (refusal == PmRefusal::kHeld) {
      const std::string holders = likely_holders(SystemFiles());
      text += holders.empty() ? "; no known holder is to be seen here" : "; perhaps by " + holders;
    }
    devices.problems.push_back({refusal, std::move(text)});
  }

  const PmLibrary& library_;
  const CudaApi& cuda_;
  const Selection& selection_;
  std::chrono::nanoseconds period_;
};

PmDevices nothing(PmRefusal refusal, std::string text) {
  PmDevices devices;
  devices.problems.push_back({refusal, std::move(text)});
  return devices;
}

}  // namespace

PmDevices open_pm_devices(const std::string& selection, std::chrono::nanoseconds period) {
  static Result<PmLibrary> library = load_pm_library();  // devices keep referring to it
  const auto selected = select(selection);
  if (!selected) return nothing(PmRefusal::kUnsupported, selected.error().message);
  ::unsetenv("CUDA_INJECTION64_PATH");  // of another tool: it is not us that it wants to see
  const std::string names[] = {"libcuda.so.1"};
  const auto cuda = base::load_api<CudaApi>(names, kCudaSymbols);
  if (!cuda) return nothing(PmRefusal::kAbsent, cuda.error().message);
  if (!library) return nothing(PmRefusal::kAbsent, library.error().message);
  int count = 0;
  if (const int code = cuda->init(0)) return nothing(PmRefusal::kAbsent, fmt::format("cuInit: error {}", code));
  if (cuda->count(&count) != 0 || count <= 0) return nothing(PmRefusal::kAbsent, "CUDA shows no device");
  auto initialize = cupti::make<cupti::ProfilerInitialize>();
  if (const int code = library->initialize(&initialize)) {
    const CallFailure failure{"cuptiProfilerInitialize", code};
    return nothing(refusal_of(failure), text_of(*library, failure));
  }
  PmDevices devices;
  const PmOpener opener(*library, *cuda, *selected, period);
  for (int index = 0; index < count; ++index) opener.open(static_cast<std::size_t>(index), devices);
  for (auto* list : {&devices.unknown, &devices.not_sampled, &devices.left_out}) {  // devices of one chip say the same
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return devices;
}

namespace {

// As /proc/PID/comm has them: cut at 15 characters.
constexpr std::string_view kHolders[] = {"nv-hostengine", "dcgm-exporter", "dcgmi",         "ncu",
                                         "ncu-ui.bin",    "nsys",          "nsys-launcher", "QuadDDaemon"};

}  // namespace

std::string restriction(const SystemFiles& files) {
  const std::string setting = files.value("proc/driver/nvidia/params", "RmProfilingAdminOnly");
  const char* who = is_privileged(files) ? "this process is privileged" : "this process is not privileged";
  if (setting.empty()) return fmt::format("/proc/driver/nvidia/params cannot be read here; {}", who);
  return fmt::format("RmProfilingAdminOnly: {} in /proc/driver/nvidia/params; {}", setting, who);
}

std::string likely_holders(const SystemFiles& files) {
  std::string found;
  for (const std::string& entry : files.list("proc")) {
    if (!to_number(entry)) continue;
    const std::string name = files.line("proc/" + entry + "/comm");
    if (std::ranges::find(kHolders, name) == std::end(kHolders)) continue;
    found += fmt::format("{}{} (pid {})", found.empty() ? "" : ", ", name, entry);
  }
  return found;
}

}  // namespace llmprof::hw::counters

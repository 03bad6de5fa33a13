#include "hw/telemetry_nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <utility>

#include "base/dynlib.h"
#include "hw/telemetry_gpm.h"

namespace llmprof::hw {
namespace {

using base::bind;
using base::Need;

constexpr base::Binding<NvmlTelemetryApi> kSymbols[] = {
    bind<&NvmlTelemetryApi::init>("nvmlInit_v2"),
    bind<&NvmlTelemetryApi::count>("nvmlDeviceGetCount_v2"),
    bind<&NvmlTelemetryApi::handle>("nvmlDeviceGetHandleByIndex_v2"),
    bind<&NvmlTelemetryApi::error_string>("nvmlErrorString", Need::kOptional),
    bind<&NvmlTelemetryApi::name>("nvmlDeviceGetName", Need::kOptional),
    bind<&NvmlTelemetryApi::uuid>("nvmlDeviceGetUUID", Need::kOptional),
    bind<&NvmlTelemetryApi::mig_mode>("nvmlDeviceGetMigMode", Need::kOptional),
    bind<&NvmlTelemetryApi::fields>("nvmlDeviceGetFieldValues", Need::kOptional),
    bind<&NvmlTelemetryApi::power>("nvmlDeviceGetPowerUsage", Need::kOptional),
    bind<&NvmlTelemetryApi::energy>("nvmlDeviceGetTotalEnergyConsumption", Need::kOptional),
    bind<&NvmlTelemetryApi::power_limit>("nvmlDeviceGetEnforcedPowerLimit", Need::kOptional),
    bind<&NvmlTelemetryApi::clock>("nvmlDeviceGetClockInfo", Need::kOptional),
    bind<&NvmlTelemetryApi::temperature>("nvmlDeviceGetTemperature", Need::kOptional),
    bind<&NvmlTelemetryApi::utilization>("nvmlDeviceGetUtilizationRates", Need::kOptional),
    bind<&NvmlTelemetryApi::memory>("nvmlDeviceGetMemoryInfo", Need::kOptional),
    bind<&NvmlTelemetryApi::performance_state>("nvmlDeviceGetPerformanceState", Need::kOptional),
    bind<&NvmlTelemetryApi::clock_reasons>("nvmlDeviceGetCurrentClocksEventReasons", Need::kOptional),
    bind<&NvmlTelemetryApi::clock_reasons_before_12_2>("nvmlDeviceGetCurrentClocksThrottleReasons", Need::kOptional),
    bind<&NvmlTelemetryApi::link_generation>("nvmlDeviceGetCurrPcieLinkGeneration", Need::kOptional),
    bind<&NvmlTelemetryApi::link_width>("nvmlDeviceGetCurrPcieLinkWidth", Need::kOptional),
    bind<&NvmlTelemetryApi::link_traffic>("nvmlDeviceGetPcieThroughput", Need::kOptional),
    bind<&NvmlTelemetryApi::processes>("nvmlDeviceGetComputeRunningProcesses_v3", Need::kOptional),
    bind<&NvmlTelemetryApi::gpm_support>("nvmlGpmQueryDeviceSupport", Need::kOptional),
    bind<&NvmlTelemetryApi::gpm_allocate>("nvmlGpmSampleAlloc", Need::kOptional),
    bind<&NvmlTelemetryApi::gpm_sample>("nvmlGpmSampleGet", Need::kOptional),
    bind<&NvmlTelemetryApi::gpm_metrics>("nvmlGpmMetricsGet", Need::kOptional),
};

constexpr unsigned kMostGpus = 64;
constexpr unsigned kMostProcesses = 4096;
constexpr double kPcieKilobyte = 1024;  // NVML's KB
// Where power and energy together take so much CPU time, ten times a second would be more than all readings may. The
// energy tells the power too, so power is then asked for every fifth time only.
constexpr std::uint64_t kDearNs = 2'500'000;
constexpr unsigned kPowerEvery = 5;

double value_of(const NvmlFieldValue& field) {
  switch (field.type) {
    case 0:
      return field.real;
    case 1:
      return field.number;
    case 4:
      return static_cast<double>(field.large_signed);
    case 5:
      return field.integer;
    case 6:
      return field.small;
    default:
      return static_cast<double>(field.large);
  }
}

struct Gpu : NvmlGpu {
  GpmReader gpm;
  bool field_power = true, field_energy = true;  // told by fields, as far as is known
  bool dear = false;                             // both together are
  unsigned reads = 0;
};

class NvmlSource final : public TelemetrySource {
 public:
  explicit NvmlSource(const NvmlTelemetryApi& nvml) : nvml_(nvml), calls_(nvml.error_string) {}

  void add_gpus(unsigned count) {
    for (unsigned index = 0; index < std::min(count, kMostGpus); ++index) {
      NvmlDevice* handle = nullptr;
      const int status = nvml_.handle(index, &handle);
      if (status == kNvmlSuccess) {
        add(index, handle);
      } else {
        calls_.notes.push_back(fmt::format("GPU {} is not read: {}", index, calls_.error_text(status)));
      }
    }
  }

  const std::vector<TelemetryDevice>& devices() const override { return devices_; }
  std::vector<std::string> take_notes() override { return std::exchange(calls_.notes, {}); }
  std::vector<CallCost> costs() const override { return calls_.costs(); }

  void read(ReadGroup group, std::vector<Reading>& into) override {
    for (Gpu& gpu : gpus_) {
      if (group == ReadGroup::kPower) read_power(gpu, into);
      if (group == ReadGroup::kState) read_state(gpu, into);
      if (group == ReadGroup::kActivity) read_activity(gpu, into);
      if (group == ReadGroup::kProcesses) read_processes(gpu, into);
      if (group == ReadGroup::kLimits)
        number(gpu, NvmlCall::kPowerLimit, nvml_.power_limit, MetricId::kPowerLimit, into, 1e-3);
    }
  }

 private:
  void add(unsigned index, NvmlDevice* handle) {
    unsigned mig = 0, pending = 0;
    if (nvml_.mig_mode != nullptr && nvml_.mig_mode(handle, &mig, &pending) == kNvmlSuccess && mig == 1) {
      calls_.notes.push_back(
          fmt::format("GPU {} is divided into MIG instances, which is not supported: not read", index));
      return;
    }
    TelemetryDevice device;
    device.device = index;
    device.kind = "gpu";
    char text[128] = {};
    if (nvml_.name != nullptr && nvml_.name(handle, text, sizeof text - 1) == kNvmlSuccess) device.name = text;
    if (nvml_.uuid != nullptr && nvml_.uuid(handle, text, sizeof text - 1) == kNvmlSuccess) {
      parse_uuid(text, device.uuid_high, device.uuid_low);
    }
    NvmlGpu gpu;
    gpu.handle = handle;
    gpu.device = index;
    GpmReader gpm(nvml_, gpu);
    gpus_.push_back({gpu, gpm});
    devices_.push_back(std::move(device));
  }

  void put(const Gpu& gpu, MetricId metric, double value, std::vector<Reading>& into, unsigned pid = 0) const {
    into.push_back({metric, gpu.device, pid, calls_.middle_ns(), value});
  }

  // A number that NVML tells as unsigned, in our unit.
  template <class Function, class... Which>
  void number(Gpu& gpu, NvmlCall call, Function* function, MetricId metric, std::vector<Reading>& into, double factor,
              Which... which) {
    unsigned value = 0;
    if (calls_.ask(gpu, call, function, gpu.handle, which..., &value)) put(gpu, metric, value * factor, into);
  }

  // Both in one call, which is what most of its time goes into.
  void read_power(Gpu& gpu, std::vector<Reading>& into) {
    NvmlFieldValue fields[2] = {};
    int count = 0;
    const bool both = gpu.field_power && gpu.field_energy;
    const bool energy_only = both && gpu.dear && gpu.reads++ % kPowerEvery != 0;
    if (gpu.field_power && !energy_only) fields[count++].field = kFieldPower;
    if (gpu.field_energy) fields[count++].field = kFieldEnergy;
    const bool asked = count > 0 && calls_.ask(gpu, NvmlCall::kFields, nvml_.fields, gpu.handle, count, &fields[0]);
    if (asked && count == 2) gpu.dear = calls_.last_cpu_ns() > kDearNs;
    for (int i = 0; asked && i < count; ++i) {
      const bool power = fields[i].field == kFieldPower;
      if (fields[i].status == kNvmlSuccess) {
        put(gpu, power ? MetricId::kPower : MetricId::kEnergy, value_of(fields[i]) * 1e-3, into);
      } else if (fields[i].status == kNvmlGpuIsLost) {
        calls_.took(gpu, NvmlCall::kFields, fields[i].status);
      } else {
        (power ? gpu.field_power : gpu.field_energy) = false;
      }
    }
    const bool no_fields = nvml_.fields == nullptr || !calls_.may_ask(gpu, NvmlCall::kFields);
    if (!gpu.field_power || no_fields) number(gpu, NvmlCall::kPower, nvml_.power, MetricId::kPower, into, 1e-3);
    if (gpu.field_energy && !no_fields) return;
    unsigned long long energy = 0;
    if (calls_.ask(gpu, NvmlCall::kEnergy, nvml_.energy, gpu.handle, &energy)) {
      put(gpu, MetricId::kEnergy, static_cast<double>(energy) * 1e-3, into);
    }
  }

  void read_state(Gpu& gpu, std::vector<Reading>& into) {
    number(gpu, NvmlCall::kClock, nvml_.clock, MetricId::kSmClock, into, 1, kNvmlClockSm);
    number(gpu, NvmlCall::kClock, nvml_.clock, MetricId::kMemoryClock, into, 1, kNvmlClockMemory);
    number(gpu, NvmlCall::kTemperature, nvml_.temperature, MetricId::kTemperature, into, 1, kNvmlTemperatureGpu);
    read_fields(gpu, into);
    NvmlUtilization used{};
    if (calls_.ask(gpu, NvmlCall::kUtilization, nvml_.utilization, gpu.handle, &used)) {
      put(gpu, MetricId::kGpuUtilization, used.gpu, into);
      put(gpu, MetricId::kMemoryUtilization, used.memory, into);
    }
    NvmlMemory memory{};
    if (calls_.ask(gpu, NvmlCall::kMemory, nvml_.memory, gpu.handle, &memory)) {
      put(gpu, MetricId::kMemoryUsed, static_cast<double>(memory.used), into);
      put(gpu, MetricId::kMemoryTotal, static_cast<double>(memory.total), into);
    }
    unsigned state = 0;
    if (calls_.ask(gpu, NvmlCall::kPerformanceState, nvml_.performance_state, gpu.handle, &state) && state <= 15) {
      put(gpu, MetricId::kPerformanceState, state, into);
    }
    unsigned long long reasons = 0;
    const auto ask = nvml_.clock_reasons != nullptr ? nvml_.clock_reasons : nvml_.clock_reasons_before_12_2;
    if (calls_.ask(gpu, NvmlCall::kClockReasons, ask, gpu.handle, &reasons)) {
      put(gpu, MetricId::kClockLimits, static_cast<double>(reasons), into);
    }
    number(gpu, NvmlCall::kLink, nvml_.link_generation, MetricId::kPcieGeneration, into, 1);
    number(gpu, NvmlCall::kLink, nvml_.link_width, MetricId::kPcieWidth, into, 1);
  }

  // The metrics that are one field value each. A field without an answer, or a sensor, is not asked for again.
  void read_fields(Gpu& gpu, std::vector<Reading>& into) {
    for (std::size_t i = 0; i < metrics().size(); ++i) {
      if (metrics()[i].field == 0 || no_field_[i]) continue;
      NvmlFieldValue field{};
      field.field = metrics()[i].field;
      if (!calls_.ask(gpu, NvmlCall::kFields, nvml_.fields, gpu.handle, 1, &field)) continue;
      no_field_[i] = field.status != kNvmlSuccess || value_of(field) <= 0;
      if (!no_field_[i]) put(gpu, static_cast<MetricId>(i), value_of(field) * metrics()[i].factor, into);
    }
  }

  void read_activity(Gpu& gpu, std::vector<Reading>& into) {
    if (gpu.gpm.on()) return gpu.gpm.read(calls_, gpu, into);
    number(gpu, NvmlCall::kLinkTraffic, nvml_.link_traffic, MetricId::kPcieSent, into, kPcieKilobyte, 0u);
    number(gpu, NvmlCall::kLinkTraffic, nvml_.link_traffic, MetricId::kPcieReceived, into, kPcieKilobyte, 1u);
  }

  void read_processes(Gpu& gpu, std::vector<Reading>& into) {
    if (nvml_.processes == nullptr || !calls_.may_ask(gpu, NvmlCall::kProcesses)) return;
    auto count = static_cast<unsigned>(processes_.size());
    int status = calls_.timed(NvmlCall::kProcesses, nvml_.processes, gpu.handle, &count, processes_.data());
    if (status == kNvmlInsufficientSize) {  // some may start in between
      processes_.resize(std::min(count, kMostProcesses) + 16u);
      count = static_cast<unsigned>(processes_.size());
      status = calls_.timed(NvmlCall::kProcesses, nvml_.processes, gpu.handle, &count, processes_.data());
    }
    if (!calls_.took(gpu, NvmlCall::kProcesses, status) || count > processes_.size()) return;
    for (unsigned i = 0; i < count; ++i) {
      if (processes_[i].used_bytes == ~0ull) continue;  // not told here
      put(gpu, MetricId::kProcessMemory, static_cast<double>(processes_[i].used_bytes), into, processes_[i].pid);
    }
  }

  NvmlTelemetryApi nvml_;
  NvmlCalls calls_;
  std::vector<Gpu> gpus_;
  std::vector<TelemetryDevice> devices_;
  std::vector<NvmlProcess> processes_{16};
  std::bitset<static_cast<std::size_t>(MetricId::kCount)> no_field_;  // by metric
};

}  // namespace

Result<std::unique_ptr<TelemetrySource>> nvml_source(const NvmlTelemetryApi& nvml) {
  const NvmlCalls words(nvml.error_string);
  if (const int status = nvml.init(); status != kNvmlSuccess) {
    return Error{status == kNvmlDriverNotLoaded ? ErrorCode::kNotFound : ErrorCode::kUnsupported,
                 "NVML does not start: " + words.error_text(status), ""};
  }
  unsigned count = 0;
  if (const int status = nvml.count(&count); status != kNvmlSuccess) {
    return Error{ErrorCode::kUnsupported, "NVML cannot count the GPUs: " + words.error_text(status), ""};
  }
  if (count == 0) return Error{ErrorCode::kNotFound, "NVML shows no GPU", ""};
  auto source = std::make_unique<NvmlSource>(nvml);
  source->add_gpus(count);
  return std::unique_ptr<TelemetrySource>(std::move(source));
}

Result<std::unique_ptr<TelemetrySource>> open_nvml_source() {
  const std::string names[] = {"libnvidia-ml.so.1"};
  LLMPROF_LET(const NvmlTelemetryApi nvml, base::load_api<NvmlTelemetryApi>(names, kSymbols));
  return nvml_source(nvml);
}

}  // namespace llmprof::hw

// GPUs as a source of telemetry: NVML, asked by a process of our own.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <utility>

#include "hw/gpu/nvml.h"
#include "hw/telemetry/telemetry.h"
#include "wire/clock.h"

namespace llmprof::hw {
namespace {

// ---- calls of NVML on one GPU: timed, and not repeated once the driver said that it cannot --------------------------

// The calls whose cost is counted, and how NVML names them behind "nvmlDevice".
// clang-format off
#define LLMPROF_TIMED_CALLS(X) \
  X(kFields, GetFieldValues) X(kPower, GetPowerUsage) X(kEnergy, GetTotalEnergyConsumption) \
  X(kPowerLimit, GetEnforcedPowerLimit) X(kClock, GetClockInfo) X(kTemperature, GetTemperature) \
  X(kUtilization, GetUtilizationRates) X(kMemory, GetMemoryInfo) X(kPerformanceState, GetPerformanceState) \
  X(kClockReasons, GetCurrentClocksEventReasons) X(kLink, GetCurrPcieLink) \
  X(kLinkTraffic, GetPcieThroughput) X(kProcesses, GetComputeRunningProcesses) X(kGpmSample, GpmSampleGet) \
  X(kGpmMetrics, GpmMetricsGet)
// clang-format on
#define LLMPROF_CALL_ENUM(id, name) id,
#define LLMPROF_CALL_NAME(id, name) #name,
enum class NvmlCall : std::uint8_t { LLMPROF_TIMED_CALLS(LLMPROF_CALL_ENUM) };
constexpr std::string_view kNames[] = {LLMPROF_TIMED_CALLS(LLMPROF_CALL_NAME)};
constexpr std::size_t kNvmlCalls = std::size(kNames);

constexpr std::uint8_t kOff = 255;
constexpr std::uint8_t kMostFailures = 5;  // in a row: what is broken now will stay so

std::size_t at(NvmlCall call) { return static_cast<std::size_t>(call); }

std::uint64_t thread_cpu_ns() { return wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// This driver, GPU or user will never get an answer.
bool is_final(int status) {
  return status == kNvmlInvalidArgument || status == kNvmlNotSupported || status == kNvmlNoPermission ||
         status == kNvmlFunctionNotFound || status == kNvmlVersionMismatch;
}

struct NvmlGpu {
  NvmlDevice* handle = nullptr;
  std::uint32_t device = 0;
  bool lost = false;
  std::array<std::uint8_t, kNvmlCalls> failures{};  // one after another; kOff: not to be asked again
};

class NvmlCalls {
 public:
  explicit NvmlCalls(const NvmlApi& nvml) : nvml_(nvml) {}

  // Whether it succeeded. `function` may be nullptr.
  template <class Function, class... Arguments>
  bool ask(NvmlGpu& gpu, NvmlCall call, Function* function, Arguments... arguments) {
    if (!may_ask(gpu, call) || function == nullptr) return false;
    return took(gpu, call, timed(call, function, arguments...));
  }
  // The call itself and its status.
  template <class Function, class... Arguments>
  int timed(NvmlCall call, Function* function, Arguments... arguments) {
    begin();
    const int status = function(arguments...);
    end(call);
    return status;
  }
  bool may_ask(const NvmlGpu& gpu, NvmlCall call) const { return !gpu.lost && gpu.failures[at(call)] != kOff; }

  // A part of an answer that failed on its own; as ask().
  bool took(NvmlGpu& gpu, NvmlCall call, int status) {
    std::uint8_t& failures = gpu.failures[at(call)];
    if (status == kNvmlSuccess) {
      failures = 0;
      return true;
    }
    if (status == kNvmlGpuIsLost || status == kNvmlResetRequired) {
      if (!gpu.lost) notes.push_back(fmt::format("GPU {} is read no more: {}", gpu.device, nvml_.error_text(status)));
      gpu.lost = true;
    } else if (is_final(status)) {
      failures = kOff;
    } else if (++failures == kMostFailures) {
      failures = kOff;
      notes.push_back(fmt::format("nvmlDevice{} of GPU {} is asked no more, it failed {} times in a row: {}",
                                  kNames[at(call)], gpu.device, kMostFailures, nvml_.error_text(status)));
    }
    return false;
  }

  std::uint64_t middle_ns() const { return begin_ns_ + (end_ns_ - begin_ns_) / 2; }  // of the last call
  std::uint64_t last_cpu_ns() const { return last_cpu_ns_; }

  std::vector<std::string> notes;
  std::vector<CallCost> costs() const {
    std::vector<CallCost> costs;
    for (std::size_t i = 0; i < kNvmlCalls; ++i) {
      if (costs_[i].calls > 0) costs.push_back({kNames[i], costs_[i].calls, costs_[i].cpu_ns, costs_[i].wall_ns});
    }
    return costs;
  }

 private:
  void begin() {
    begin_cpu_ns_ = thread_cpu_ns();
    begin_ns_ = raw_now_ns();
  }

  void end(NvmlCall call) {
    end_ns_ = raw_now_ns();
    Cost& cost = costs_[at(call)];
    ++cost.calls;
    last_cpu_ns_ = thread_cpu_ns() - begin_cpu_ns_;
    cost.cpu_ns += last_cpu_ns_;
    cost.wall_ns += end_ns_ - begin_ns_;
  }

  const NvmlApi& nvml_;
  std::uint64_t begin_ns_ = 0, end_ns_ = 0, begin_cpu_ns_ = 0, last_cpu_ns_ = 0;
  struct Cost {
    std::uint64_t calls = 0, cpu_ns = 0, wall_ns = 0;
  };
  std::array<Cost, kNvmlCalls> costs_{};
};

// ---- what the units of one GPU did between two samples (GPU performance monitoring, Hopper and later) ---------------

constexpr std::uint64_t kLeastApartNs = 100'000'000;
constexpr unsigned kVersion = 1;
bool supported(const NvmlApi& nvml, NvmlDevice* device) {
  if (nvml.gpm_support == nullptr || nvml.gpm_allocate == nullptr || nvml.gpm_sample == nullptr ||
      nvml.gpm_metrics == nullptr) {
    return false;
  }
  NvmlGpmSupport support{kVersion, 0};
  return nvml.gpm_support(device, &support) == kNvmlSuccess && support.supported != 0;
}

class GpmReader {
 public:
  // Off where the GPU or the driver cannot.
  GpmReader(const NvmlApi& nvml, NvmlGpu& gpu) : nvml_(nvml) {
    if (!supported(nvml, gpu.handle)) return;
    for (void*& sample : samples_) {
      if (nvml.gpm_allocate(&sample) != kNvmlSuccess) sample = nullptr;
    }
    if (samples_[0] == nullptr) samples_[1] = nullptr;
  }

  bool on() const { return samples_[1] != nullptr; }

  // From the second time on, the activity since the sample before; a time less than 100 ms after it does nothing:
  // NVML's answers are undefined then.
  void read(NvmlCalls& calls, NvmlGpu& gpu, std::vector<Reading>& into) {
    if (!on()) return;
    if (newest_ns_ != 0 && raw_now_ns() - newest_ns_ < kLeastApartNs) return;
    const int next = 1 - newest_;
    if (!calls.ask(gpu, NvmlCall::kGpmSample, nvml_.gpm_sample, gpu.handle, samples_[next])) {
      newest_ns_ = 0;  // the buffer may be half written
      return;
    }
    const std::uint64_t before_ns = std::exchange(newest_ns_, calls.middle_ns());
    const int before = std::exchange(newest_, next);
    if (before_ns == 0) return;
    NvmlGpmMetrics metrics{};
    metrics.version = kVersion;
    metrics.first = samples_[before];
    metrics.second = samples_[next];
    std::vector<MetricId> asked;
    for (std::size_t i = 0; i < hw::metrics().size(); ++i) {
      if (hw::metrics()[i].gpm == 0) continue;
      metrics.metrics[metrics.count++].id = hw::metrics()[i].gpm;
      asked.push_back(static_cast<MetricId>(i));
    }
    if (!calls.ask(gpu, NvmlCall::kGpmMetrics, nvml_.gpm_metrics, &metrics)) return;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const NvmlGpmMetric& metric = metrics.metrics[i];
      if (metric.status != kNvmlSuccess || !std::isfinite(metric.value)) continue;
      into.push_back({asked[i], gpu.device, 0, newest_ns_, metric.value * info_of(asked[i]).factor});
    }
  }

 private:
  const NvmlApi& nvml_;
  void* samples_[2] = {nullptr, nullptr};  // NVML's, kept for the life of the process
  int newest_ = 1;
  std::uint64_t newest_ns_ = 0;  // 0: there is none
};

// ---- the source -----------------------------------------------------------------------------------------------------

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
  explicit NvmlSource(const NvmlApi& nvml) : nvml_(nvml), calls_(nvml_) {}

  void add_gpus(unsigned count) {
    for (unsigned index = 0; index < std::min(count, kMostGpus); ++index) {
      NvmlDevice* handle = nullptr;
      const int status = nvml_.handle(index, &handle);
      if (status == kNvmlSuccess) {
        add(index, handle);
      } else {
        calls_.notes.push_back(fmt::format("GPU {} is not read: {}", index, nvml_.error_text(status)));
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
    if (succeeds(nvml_.mig_mode, handle, &mig, &pending) && mig == 1) {
      calls_.notes.push_back(
          fmt::format("GPU {} is divided into MIG instances, which is not supported: not read", index));
      return;
    }
    TelemetryDevice device;
    device.device = index;
    device.kind = "gpu";
    char text[128] = {};
    if (succeeds(nvml_.name, handle, &text[0], unsigned{sizeof text - 1})) device.name = text;
    if (succeeds(nvml_.uuid, handle, &text[0], unsigned{sizeof text - 1}))
      parse_uuid(text, device.uuid_high, device.uuid_low);
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

  NvmlApi nvml_;
  NvmlCalls calls_;
  std::vector<Gpu> gpus_;
  std::vector<TelemetryDevice> devices_;
  std::vector<NvmlProcess> processes_{16};
  std::bitset<static_cast<std::size_t>(MetricId::kCount)> no_field_;  // by metric
};

}  // namespace

Result<std::unique_ptr<TelemetrySource>> nvml_source(const NvmlApi& nvml) {
  if (const int status = nvml.init(); status != kNvmlSuccess) {
    return Error{status == kNvmlDriverNotLoaded ? ErrorCode::kNotFound : ErrorCode::kUnsupported,
                 "NVML does not start: " + nvml.error_text(status), ""};
  }
  if (nvml.count == nullptr || nvml.handle == nullptr)
    return Error{ErrorCode::kUnsupported, "NVML cannot count the GPUs", ""};
  unsigned count = 0;
  if (const int status = nvml.count(&count); status != kNvmlSuccess) {
    return Error{ErrorCode::kUnsupported, "NVML cannot count the GPUs: " + nvml.error_text(status), ""};
  }
  if (count == 0) return Error{ErrorCode::kNotFound, "NVML shows no GPU", ""};
  auto source = std::make_unique<NvmlSource>(nvml);
  source->add_gpus(count);
  return std::unique_ptr<TelemetrySource>(std::move(source));
}

Result<std::unique_ptr<TelemetrySource>> open_nvml_source() {
  LLMPROF_LET(const NvmlApi nvml, load_nvml());
  return nvml_source(nvml);
}

}  // namespace llmprof::hw

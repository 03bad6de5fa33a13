// The devices of this machine under CUPTI's PM sampling, each with a sampler.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/dynlib.h"
#include "hw/counters/catalog.h"
#include "hw/counters/chip_host.h"
#include "hw/counters/pm_sampling.h"
#include "hw/doctor.h"
#include "hw/system_files.h"

namespace llmprof::hw::counters {

PmRefusal refusal_of(const CallFailure& failure) {
  constexpr int kFirstUnsupported = 27, kLastUnsupported = 33, kFirstOfDevices = 41, kLastOfDevices = 45;
  const int code = failure.code;
  if (code == cupti::kInsufficientPrivileges || code == cupti::kVirtualInsufficientPrivileges) {
    return PmRefusal::kForbidden;
  }
  if (code == cupti::kHardwareBusy) return PmRefusal::kHeld;
  if ((code >= kFirstUnsupported && code <= kLastUnsupported) || (code >= kFirstOfDevices && code <= kLastOfDevices)) {
    return PmRefusal::kUnsupported;
  }
  return PmRefusal::kFailed;
}

namespace {

using base::bind;
using base::Need;

constexpr std::size_t kLeastHardwareBytes = std::size_t{1} << 20;
// 3.3 KiB were seen with 6 metrics of GH100; reckoned with more.
constexpr std::size_t kBytesPerSample = 4096, kMetricsOfThat = 6;
constexpr double kSysclkGhz = 1.2;  // about: the clock of the system varies, and samples tell their own times
constexpr std::chrono::nanoseconds kLongestApart = std::chrono::seconds(2);
constexpr std::size_t kMostImageBytes = std::size_t{128} << 20;

// Turing and GA100 count cycles of the system clock only.
bool samples_by_time(const std::string& chip) { return !chip.starts_with("TU") && chip != "GA100"; }

// clang-format off
#define LLMPROF_PM_CALLS(X) \
  X(initialize, cuptiProfilerInitialize, ProfilerInitialize) \
  X(chip_name, cuptiDeviceGetChipName, DeviceChipName) \
  X(evaluate, cuptiProfilerHostEvaluateToGpuValues, HostEvaluate) \
  X(enable, cuptiPmSamplingEnable, PmEnable) \
  X(disable, cuptiPmSamplingDisable, PmObject) \
  X(set_config, cuptiPmSamplingSetConfig, PmSetConfig) \
  X(start, cuptiPmSamplingStart, PmObject) \
  X(stop, cuptiPmSamplingStop, PmObject) \
  X(data_size, cuptiPmSamplingGetCounterDataSize, PmDataSize) \
  X(data_initialize, cuptiPmSamplingCounterDataImageInitialize, PmDataInitialize) \
  X(decode, cuptiPmSamplingDecodeData, PmDecode) \
  X(data_info, cuptiPmSamplingGetCounterDataInfo, PmDataInfo) \
  X(sample_info, cuptiPmSamplingCounterDataGetSampleInfo, PmSampleInfo)
// clang-format on
LLMPROF_CUPTI_API(PmApi, LLMPROF_PM_CALLS)

struct ResultApi {
  int (*string)(int, const char**) = nullptr;
};
constexpr base::Binding<ResultApi> kResult[] = {bind<&ResultApi::string>("cuptiGetResultString", Need::kOptional)};

struct PmLibrary : PmApi {
  HostApi host;
  ResultApi result;

  static Result<PmLibrary> load() {
    const std::vector<std::string> paths = cupti_paths(SystemFiles());
    PmLibrary library;
    LLMPROF_LET(static_cast<PmApi&>(library), base::load_api<PmApi>(paths, PmApi::symbols()));
    LLMPROF_LET(library.host, base::load_api<HostApi>(paths, HostApi::symbols()));
    LLMPROF_LET(library.result, base::load_api<ResultApi>(paths, kResult));
    return library;
  }

  std::string text_of(const CallFailure& failure) const {
    const char* name = nullptr;
    if (result.string == nullptr || result.string(failure.code, &name) != cupti::kSuccess) name = nullptr;
    return fmt::format("{}: {} ({})", failure.call, name != nullptr ? name : "error", failure.code);
  }
};

Result<PmLibrary> load_pm_library() {
  auto library = PmLibrary::load();
  if (!library && library.error().code == ErrorCode::kUnsupported) {
    library.error().message += ": samples need CUPTI of CUDA 12.6 or later";
  }
  return library;
}

// Metrics of a chip that can be sampled together, and the image that says so to the device.
class PmConfig {
 public:
  PmConfig(const PmLibrary& library, std::string chip) : library_(library), chip_(std::move(chip)) {}

  // Takes as many of `wanted` as go into one pass; says which are unknown and which are left out.
  CallFailure choose(const std::vector<std::string>& wanted, PmDevices& devices) {
    std::size_t passes = 0;
    CallFailure failure = build(wanted, passes);
    if (failure || passes == 1) return failure;
    std::vector<std::string> chosen;
    for (const std::string& metric : wanted) {
      chosen.push_back(metric);
      failure = build(chosen, passes);
      if (failure) return failure;
      if (passes == 1) continue;
      chosen.pop_back();
      (passes == 0 ? devices.unknown : devices.left_out).push_back(metric);
    }
    return chosen.empty() ? CallFailure{} : build(chosen, passes);
  }

  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<std::uint8_t>& image() const { return image_; }
  const char** names() { return names_.data(); }
  void* host() const { return host_->get(); }

 private:
  // With these metrics and no others. `passes` is 0 where the chip does not have one of them.
  CallFailure build(const std::vector<std::string>& metrics, std::size_t& passes) {
    host_.reset();
    metrics_ = metrics;
    names_.clear();
    for (const std::string& metric : metrics_) names_.push_back(metric.c_str());
    passes = 0;
    if (metrics_.empty()) return {};
    host_ = std::make_unique<ChipHost>(library_.host, chip_, cupti::ProfilerType::kPmSampling);
    if (host_->failure()) return host_->failure();
    const int code = host_->add(names_);
    if (code == cupti::kInvalidMetricName) return {};
    if (code != cupti::kSuccess) return {"cuptiProfilerHostConfigAddMetrics", code};
    return host_->read_image(image_, passes);
  }

  const PmLibrary& library_;
  std::string chip_;
  std::unique_ptr<ChipHost> host_;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  // of metrics_
  std::vector<std::uint8_t> image_;
};

class CuptiPmDevice final : public PmDevice {
 public:
  CuptiPmDevice(const PmLibrary& library, std::unique_ptr<PmConfig> config, const std::string& chip,
                std::chrono::nanoseconds period)
      : library_(library), config_(std::move(config)), period_(period), by_time_(samples_by_time(chip)) {}

  ~CuptiPmDevice() override {
    if (object_ == nullptr) return;
    (void)stop();
    cupti::PmObject params{.object = object_};
    (void)library_.disable(&params);
  }

  CallFailure open(std::size_t device) {  // until sampling has begun
    cupti::PmEnable enable{.device = device};
    if (const int code = library_.enable(&enable)) return {"cuptiPmSamplingEnable", code};
    object_ = enable.object;
    if (const CallFailure failure = set_config()) return failure;
    if (const CallFailure failure = make_image()) return failure;
    return begin();
  }

  Result<void> start() override {
    if (running_) return {};
    if (!begin()) return {};
    // Perhaps it must be told anew what to sample.
    if (const CallFailure failure = set_config()) return error_of(failure);
    if (const CallFailure failure = begin()) return error_of(failure);
    return {};
  }

  Result<void> stop() override {
    if (!std::exchange(running_, false)) return {};
    cupti::PmObject params{.object = object_};
    if (const int code = library_.stop(&params)) return error_of({"cuptiPmSamplingStop", code});
    return {};
  }

  Result<Batch> decode() override {
    cupti::PmDataInitialize fresh{.object = object_, .bytes = data_.size(), .image = data_.data()};
    if (const int code = library_.data_initialize(&fresh)) {
      return error_of({"cuptiPmSamplingCounterDataImageInitialize", code});
    }
    cupti::PmDecode params{.object = object_, .image = data_.data(), .bytes = data_.size()};
    const int code = library_.decode(&params);
    Batch batch;
    batch.overflow = code == cupti::kOutOfMemory || params.overflow != 0;
    batch.more = params.stop == cupti::DecodeStop::kImageFull;
    if (code == cupti::kOutOfMemory) return batch;
    if (code != cupti::kSuccess) return error_of({"cuptiPmSamplingDecodeData", code});
    if (const CallFailure failure = read_samples(batch)) return error_of(failure);
    return batch;
  }

  std::size_t most_samples() const override {
    const std::size_t metrics = std::max(kMetricsOfThat, config_->metrics().size());
    return hardware_bytes_ / 4 * 3 / (kBytesPerSample * metrics / kMetricsOfThat);
  }

 private:
  // With a buffer as large as is granted.
  CallFailure set_config() {
    while (true) {
      const auto period_ns = static_cast<double>(period_.count());
      cupti::PmSetConfig set{
          .object = object_,
          .config_bytes = config_->image().size(),
          .config = config_->image().data(),
          .hardware_bytes = hardware_bytes_,
          .interval = static_cast<std::uint64_t>(by_time_ ? period_ns : period_ns * kSysclkGhz),
          .trigger = by_time_ ? cupti::Trigger::kTimeInterval : cupti::Trigger::kSysclkInterval,
          .append = cupti::Append::kKeepOldest,
      };
      const CallFailure failure{"cuptiPmSamplingSetConfig", library_.set_config(&set)};
      if (failure.code == cupti::kSuccess) return {};
      const bool final = refusal_of(failure) != PmRefusal::kFailed;
      if (final || hardware_bytes_ / 2 < kLeastHardwareBytes) return failure;
      hardware_bytes_ /= 2;
    }
  }

  // For as many samples as come between two readings; what does not fit is read in several turns.
  CallFailure make_image() {
    const std::int64_t expected = kLongestApart / std::max(period_, std::chrono::nanoseconds(1));
    cupti::PmDataSize size{
        .object = object_,
        .metrics = config_->names(),
        .count = config_->metrics().size(),
        .most_samples = static_cast<std::uint32_t>(std::clamp<std::int64_t>(expected + expected / 8, 256, 32768))};
    while (true) {
      if (const int code = library_.data_size(&size)) return {"cuptiPmSamplingGetCounterDataSize", code};
      if (size.bytes <= kMostImageBytes || size.most_samples <= 256) break;
      size.most_samples /= 2;
    }
    data_.assign(size.bytes, 0);
    return {};
  }

  CallFailure begin() {
    cupti::PmObject params{.object = object_};
    if (const int code = library_.start(&params)) return {"cuptiPmSamplingStart", code};
    running_ = true;
    return {};
  }

  CallFailure read_samples(Batch& batch) {
    cupti::PmDataInfo info{.image = data_.data(), .bytes = data_.size()};
    if (const int code = library_.data_info(&info)) return {"cuptiPmSamplingGetCounterDataInfo", code};
    batch.samples.resize(info.completed);
    for (std::size_t i = 0; i < info.completed; ++i) {
      PmSample& sample = batch.samples[i];
      cupti::PmSampleInfo times{.object = object_, .image = data_.data(), .bytes = data_.size(), .sample = i};
      if (const int code = library_.sample_info(&times)) return {"cuptiPmSamplingCounterDataGetSampleInfo", code};
      sample.begin_ns = times.begin_ns;
      sample.end_ns = times.end_ns;
      sample.values.assign(config_->metrics().size(), std::numeric_limits<double>::quiet_NaN());
      cupti::HostEvaluate values{.host = config_->host(),
                                 .image = data_.data(),
                                 .image_bytes = data_.size(),
                                 .range = i,
                                 .metrics = config_->names(),
                                 .count = sample.values.size(),
                                 .values = sample.values.data()};
      if (const int code = library_.evaluate(&values)) return {"cuptiProfilerHostEvaluateToGpuValues", code};
    }
    return {};
  }

  Error error_of(const CallFailure& failure) const { return {ErrorCode::kUnsupported, library_.text_of(failure), ""}; }

  const PmLibrary& library_;
  std::unique_ptr<PmConfig> config_;
  std::chrono::nanoseconds period_;
  bool by_time_;  // else by cycles of the system clock
  void* object_ = nullptr;
  std::size_t hardware_bytes_ = std::size_t{256} << 20;
  std::vector<std::uint8_t> data_;
  bool running_ = false;
};

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
    cupti::DeviceChipName chip{.device = index};
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
    std::string text = fmt::format("GPU {}: {}", index, library_.text_of(failure));
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
  cupti::ProfilerInitialize initialize;
  if (const int code = library->initialize(&initialize)) {
    const CallFailure failure{"cuptiProfilerInitialize", code};
    return nothing(refusal_of(failure), library->text_of(failure));
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

}  // namespace llmprof::hw::counters

#include "hw/counters/pm_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/dynlib.h"
#include "hw/cupti_paths.h"

namespace llmprof::hw::counters {

namespace {

constexpr std::size_t kLeastHardwareBytes = std::size_t{1} << 20;
// 3.3 KiB were seen with 6 metrics of GH100; reckoned with more.
constexpr std::size_t kBytesPerSample = 4096, kMetricsOfThat = 6;
constexpr double kSysclkGhz = 1.2;  // about: the clock of the system varies, and samples tell their own times
constexpr std::chrono::nanoseconds kLongestApart = std::chrono::seconds(2);
constexpr std::size_t kMostImageBytes = std::size_t{128} << 20;

// Turing and GA100 count cycles of the system clock only.
bool samples_by_time(const std::string& chip) { return !chip.starts_with("TU") && chip != "GA100"; }

}  // namespace

CuptiPmDevice::CuptiPmDevice(const PmLibrary& library, std::unique_ptr<PmConfig> config, const std::string& chip,
                             std::chrono::nanoseconds period)
    : library_(library), config_(std::move(config)), period_(period), by_time_(samples_by_time(chip)) {}

CuptiPmDevice::~CuptiPmDevice() {
  if (object_ == nullptr) return;
  (void)stop();
  auto params = cupti::make<cupti::PmObject>();
  params.object = object_;
  (void)library_.disable(&params);
}

CallFailure CuptiPmDevice::open(std::size_t device) {
  auto enable = cupti::make<cupti::PmEnable>();
  enable.device = device;
  if (const int code = library_.enable(&enable)) return {"cuptiPmSamplingEnable", code};
  object_ = enable.object;
  if (const CallFailure failure = set_config()) return failure;
  if (const CallFailure failure = make_image()) return failure;
  return begin();
}

// With a buffer as large as is granted.
CallFailure CuptiPmDevice::set_config() {
  while (true) {
    auto set = cupti::make<cupti::PmSetConfig>();
    set.object = object_;
    set.config_bytes = config_->image().size();
    set.config = config_->image().data();
    set.hardware_bytes = hardware_bytes_;
    const auto period_ns = static_cast<double>(period_.count());
    set.interval = static_cast<std::uint64_t>(by_time_ ? period_ns : period_ns * kSysclkGhz);
    set.trigger = by_time_ ? cupti::Trigger::kTimeInterval : cupti::Trigger::kSysclkInterval;
    set.append = cupti::Append::kKeepOldest;
    const CallFailure failure{"cuptiPmSamplingSetConfig", library_.set_config(&set)};
    if (failure.code == cupti::kSuccess) return {};
    const bool final = refusal_of(failure) != PmRefusal::kFailed;
    if (final || hardware_bytes_ / 2 < kLeastHardwareBytes) return failure;
    hardware_bytes_ /= 2;
  }
}

// For as many samples as come between two readings; what does not fit is read in several turns.
CallFailure CuptiPmDevice::make_image() {
  auto size = cupti::make<cupti::PmDataSize>();
  size.object = object_;
  size.metrics = config_->names();
  size.count = config_->metrics().size();
  const std::int64_t expected = kLongestApart / std::max(period_, std::chrono::nanoseconds(1));
  size.most_samples = static_cast<std::uint32_t>(std::clamp<std::int64_t>(expected + expected / 8, 256, 32768));
  while (true) {
    if (const int code = library_.data_size(&size)) return {"cuptiPmSamplingGetCounterDataSize", code};
    if (size.bytes <= kMostImageBytes || size.most_samples <= 256) break;
    size.most_samples /= 2;
  }
  data_.assign(size.bytes, 0);
  return {};
}

CallFailure CuptiPmDevice::begin() {
  auto params = cupti::make<cupti::PmObject>();
  params.object = object_;
  if (const int code = library_.start(&params)) return {"cuptiPmSamplingStart", code};
  running_ = true;
  return {};
}

Result<void> CuptiPmDevice::start() {
  if (running_) return {};
  if (!begin()) return {};
  // Perhaps it must be told anew what to sample.
  if (const CallFailure failure = set_config()) return error_of(failure);
  if (const CallFailure failure = begin()) return error_of(failure);
  return {};
}

Result<void> CuptiPmDevice::stop() {
  if (!std::exchange(running_, false)) return {};
  auto params = cupti::make<cupti::PmObject>();
  params.object = object_;
  if (const int code = library_.stop(&params)) return error_of({"cuptiPmSamplingStop", code});
  return {};
}

Result<PmDevice::Batch> CuptiPmDevice::decode() {
  auto fresh = cupti::make<cupti::PmDataInitialize>();
  fresh.object = object_;
  fresh.bytes = data_.size();
  fresh.image = data_.data();
  if (const int code = library_.data_initialize(&fresh)) {
    return error_of({"cuptiPmSamplingCounterDataImageInitialize", code});
  }
  auto params = cupti::make<cupti::PmDecode>();
  params.object = object_;
  params.image = data_.data();
  params.bytes = data_.size();
  const int code = library_.decode(&params);
  Batch batch;
  batch.overflow = code == cupti::kOutOfMemory || params.overflow != 0;
  batch.more = params.stop == cupti::DecodeStop::kImageFull;
  if (code == cupti::kOutOfMemory) return batch;
  if (code != cupti::kSuccess) return error_of({"cuptiPmSamplingDecodeData", code});
  if (const CallFailure failure = read_samples(batch)) return error_of(failure);
  return batch;
}

CallFailure CuptiPmDevice::read_samples(Batch& batch) {
  auto info = cupti::make<cupti::PmDataInfo>();
  info.image = data_.data();
  info.bytes = data_.size();
  if (const int code = library_.data_info(&info)) return {"cuptiPmSamplingGetCounterDataInfo", code};
  batch.samples.resize(info.completed);
  for (std::size_t i = 0; i < info.completed; ++i) {
    PmSample& sample = batch.samples[i];
    auto times = cupti::make<cupti::PmSampleInfo>();
    times.object = object_;
    times.image = data_.data();
    times.bytes = data_.size();
    times.sample = i;
    if (const int code = library_.sample_info(&times)) return {"cuptiPmSamplingCounterDataGetSampleInfo", code};
    sample.begin_ns = times.begin_ns;
    sample.end_ns = times.end_ns;
    sample.values.assign(config_->metrics().size(), std::numeric_limits<double>::quiet_NaN());
    auto values = cupti::make<cupti::HostEvaluate>();
    values.host = config_->host();
    values.image = data_.data();
    values.image_bytes = data_.size();
    values.range = i;
    values.metrics = config_->names();
    values.count = sample.values.size();
    values.values = sample.values.data();
    if (const int code = library_.evaluate(&values)) return {"cuptiProfilerHostEvaluateToGpuValues", code};
  }
  return {};
}

std::size_t CuptiPmDevice::most_samples() const {
  const std::size_t metrics = std::max(kMetricsOfThat, config_->metrics().size());
  return hardware_bytes_ / 4 * 3 / (kBytesPerSample * metrics / kMetricsOfThat);
}

Error CuptiPmDevice::error_of(const CallFailure& failure) const {
  return {ErrorCode::kUnsupported, text_of(library_, failure), ""};
}

namespace {

using base::bind;

constexpr base::Binding<PmLibrary> kSymbols[] = {
    bind<&PmLibrary::initialize>("cuptiProfilerInitialize"),
    bind<&PmLibrary::chip_name>("cuptiDeviceGetChipName"),
    bind<&PmLibrary::host_initialize>("cuptiProfilerHostInitialize"),
    bind<&PmLibrary::host_deinitialize>("cuptiProfilerHostDeinitialize"),
    bind<&PmLibrary::add_metrics>("cuptiProfilerHostConfigAddMetrics"),
    bind<&PmLibrary::config_size>("cuptiProfilerHostGetConfigImageSize"),
    bind<&PmLibrary::config>("cuptiProfilerHostGetConfigImage"),
    bind<&PmLibrary::passes>("cuptiProfilerHostGetNumOfPasses"),
    bind<&PmLibrary::evaluate>("cuptiProfilerHostEvaluateToGpuValues"),
    bind<&PmLibrary::enable>("cuptiPmSamplingEnable"),
    bind<&PmLibrary::disable>("cuptiPmSamplingDisable"),
    bind<&PmLibrary::set_config>("cuptiPmSamplingSetConfig"),
    bind<&PmLibrary::start>("cuptiPmSamplingStart"),
    bind<&PmLibrary::stop>("cuptiPmSamplingStop"),
    bind<&PmLibrary::data_size>("cuptiPmSamplingGetCounterDataSize"),
    bind<&PmLibrary::data_initialize>("cuptiPmSamplingCounterDataImageInitialize"),
    bind<&PmLibrary::decode>("cuptiPmSamplingDecodeData"),
    bind<&PmLibrary::data_info>("cuptiPmSamplingGetCounterDataInfo"),
    bind<&PmLibrary::sample_info>("cuptiPmSamplingCounterDataGetSampleInfo"),
    bind<&PmLibrary::result_string>("cuptiGetResultString", base::Need::kOptional)};

}  // namespace

Result<PmLibrary> load_pm_library() {
  auto library = base::load_api<PmLibrary>(cupti_paths(SystemFiles()), kSymbols);
  if (!library && library.error().code == ErrorCode::kUnsupported) {
    library.error().message += ": samples need CUPTI of CUDA 12.6 or later";
  }
  return library;
}

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

std::string text_of(const PmLibrary& library, const CallFailure& failure) {
  const char* name = nullptr;
  if (library.result_string == nullptr || library.result_string(failure.code, &name) != cupti::kSuccess) name = nullptr;
  return fmt::format("{}: {} ({})", failure.call, name != nullptr ? name : "error", failure.code);
}

PmConfig::~PmConfig() { close(); }

void PmConfig::close() {
  if (host_ == nullptr) return;
  auto params = cupti::make<cupti::HostDeinitialize>();
  params.host = host_;
  (void)library_.host_deinitialize(&params);
  host_ = nullptr;
}

CallFailure PmConfig::choose(const std::vector<std::string>& wanted, PmDevices& devices) {
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

CallFailure PmConfig::build(const std::vector<std::string>& metrics, std::size_t& passes) {
  close();
  metrics_ = metrics;
  names_.clear();
  for (const std::string& metric : metrics_) names_.push_back(metric.c_str());
  passes = 0;
  if (metrics_.empty()) return {};
  auto host = cupti::make<cupti::HostInitialize>();
  host.profiler = cupti::ProfilerType::kPmSampling;
  host.chip = chip_.c_str();
  if (const int code = library_.host_initialize(&host)) return {"cuptiProfilerHostInitialize", code};
  host_ = host.host;
  auto add = cupti::make<cupti::HostAddMetrics>();
  add.host = host_;
  add.metrics = names_.data();
  add.count = names_.size();
  const int code = library_.add_metrics(&add);
  if (code == cupti::kInvalidMetricName) return {};
  if (code != cupti::kSuccess) return {"cuptiProfilerHostConfigAddMetrics", code};
  return read_image(passes);
}

CallFailure PmConfig::read_image(std::size_t& passes) {
  auto size = cupti::make<cupti::HostConfigSize>();
  size.host = host_;
  if (const int code = library_.config_size(&size)) return {"cuptiProfilerHostGetConfigImageSize", code};
  image_.assign(size.bytes, 0);
  auto config = cupti::make<cupti::HostConfig>();
  config.host = host_;
  config.bytes = image_.size();
  config.image = image_.data();
  if (const int code = library_.config(&config)) return {"cuptiProfilerHostGetConfigImage", code};
  auto count = cupti::make<cupti::HostPasses>();
  count.bytes = image_.size();
  count.image = image_.data();
  if (const int code = library_.passes(&count)) return {"cuptiProfilerHostGetNumOfPasses", code};
  passes = count.passes;
  return {};
}

}  // namespace llmprof::hw::counters

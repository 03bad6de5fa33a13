#include <fmt/format.h>

#include <algorithm>

#include "base/dynlib.h"
#include "hw/counters/pm_device.h"
#include "hw/cupti_paths.h"

namespace llmprof::hw::counters {
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

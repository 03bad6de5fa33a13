#include "hw/counters/host_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/dynlib.h"
#include "hw/cupti_paths.h"
#include "wire/cupti_host_abi.h"

namespace llmprof::hw::counters {
namespace {

namespace cupti = wire::cupti;

using base::bind;
using cupti::make;

struct HostApi {
  int (*version)(std::uint32_t*) = nullptr;
  cupti::Function<cupti::HostChips> chips = nullptr;
  cupti::Function<cupti::HostInitialize> initialize = nullptr;
  cupti::Function<cupti::HostDeinitialize> deinitialize = nullptr;
  cupti::Function<cupti::HostBaseMetrics> base_metrics = nullptr;
  cupti::Function<cupti::HostMetricProperties> properties = nullptr;
  cupti::Function<cupti::HostAddMetrics> add_metrics = nullptr;
  cupti::Function<cupti::HostConfigSize> config_size = nullptr;
  cupti::Function<cupti::HostConfig> config = nullptr;
  cupti::Function<cupti::HostPasses> passes = nullptr;
};

constexpr base::Binding<HostApi> kSymbols[] = {bind<&HostApi::version>("cuptiGetVersion"),
                                               bind<&HostApi::chips>("cuptiProfilerHostGetSupportedChips"),
                                               bind<&HostApi::initialize>("cuptiProfilerHostInitialize"),
                                               bind<&HostApi::deinitialize>("cuptiProfilerHostDeinitialize"),
                                               bind<&HostApi::base_metrics>("cuptiProfilerHostGetBaseMetrics"),
                                               bind<&HostApi::properties>("cuptiProfilerHostGetMetricProperties"),
                                               bind<&HostApi::add_metrics>("cuptiProfilerHostConfigAddMetrics"),
                                               bind<&HostApi::config_size>("cuptiProfilerHostGetConfigImageSize"),
                                               bind<&HostApi::config>("cuptiProfilerHostGetConfigImage"),
                                               bind<&HostApi::passes>("cuptiProfilerHostGetNumOfPasses")};

Error failed(const char* call, const std::string& chip, int code) {
  return {ErrorCode::kUnsupported, fmt::format("{} answers {} for {}", call, code, chip), ""};
}

// One chip seen by one of CUPTI's profilers.
class Host {
 public:
  Host(const HostApi& api, std::string chip, Method method) : api_(api), chip_(std::move(chip)) {
    auto params = make<cupti::HostInitialize>();
    params.profiler = method == Method::kSampled ? cupti::ProfilerType::kPmSampling : cupti::ProfilerType::kRange;
    params.chip = chip_.c_str();
    code_ = api_.initialize(&params);
    if (code_ == cupti::kSuccess) host_ = params.host;
  }
  ~Host() {
    if (host_ == nullptr) return;
    auto params = make<cupti::HostDeinitialize>();
    params.host = host_;
    (void)api_.deinitialize(&params);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Result<void> check() const {
    if (host_ == nullptr) return failed("cuptiProfilerHostInitialize", chip_, code_);
    return {};
  }

  Result<std::vector<std::string>> metrics() const {
    LLMPROF_TRY(check());
    std::vector<std::string> names;
    for (const auto type : {cupti::MetricType::kCounter, cupti::MetricType::kRatio, cupti::MetricType::kThroughput}) {
      auto params = make<cupti::HostBaseMetrics>();
      params.host = host_;
      params.type = type;
      const int code = api_.base_metrics(&params);
      if (code != cupti::kSuccess) return failed("cuptiProfilerHostGetBaseMetrics", chip_, code);
      names.insert(names.end(), params.names, params.names + params.count);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  int add(const std::vector<std::string>& metrics) const {
    std::vector<const char*> names;
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    auto params = make<cupti::HostAddMetrics>();
    params.host = host_;
    params.metrics = names.data();
    params.count = names.size();
    return api_.add_metrics(&params);
  }

  Result<int> passes() const {
    auto size = make<cupti::HostConfigSize>();
    size.host = host_;
    if (const int code = api_.config_size(&size); code != cupti::kSuccess) {
      return failed("cuptiProfilerHostGetConfigImageSize", chip_, code);
    }
    std::vector<std::uint8_t> image(size.bytes);
    auto config = make<cupti::HostConfig>();
    config.host = host_;
    config.bytes = image.size();
    config.image = image.data();
    if (const int code = api_.config(&config); code != cupti::kSuccess) {
      return failed("cuptiProfilerHostGetConfigImage", chip_, code);
    }
    auto count = make<cupti::HostPasses>();
    count.bytes = image.size();
    count.image = image.data();
    if (const int code = api_.passes(&count); code != cupti::kSuccess) {
      return failed("cuptiProfilerHostGetNumOfPasses", chip_, code);
    }
    return static_cast<int>(count.passes);
  }

  Result<HostLibrary::Description> describe(const std::string& metric) const {
    LLMPROF_TRY(check());
    auto params = make<cupti::HostMetricProperties>();
    params.host = host_;
    params.metric = metric.c_str();
    if (api_.properties(&params) != cupti::kSuccess) {
      return Error{ErrorCode::kNotFound, fmt::format("{} has no metric {}", chip_, metric), ""};
    }
    const auto text = [](const char* chars) { return std::string(chars != nullptr ? chars : ""); };
    return HostLibrary::Description{text(params.description), text(params.dim_unit)};
  }

 private:
  const HostApi& api_;
  std::string chip_;
  void* host_ = nullptr;
  int code_ = cupti::kSuccess;
};

class CuptiHost final : public HostLibrary {
 public:
  explicit CuptiHost(const HostApi& api) : api_(api) {}

  std::string path() const override {
    Dl_info info{};
    const auto address = reinterpret_cast<void*>(api_.chips);
    return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  }

  std::uint32_t version() const override {
    std::uint32_t version = 0;
    return api_.version(&version) == cupti::kSuccess ? version : 0;
  }

  std::vector<std::string> chips() const override {
    auto params = make<cupti::HostChips>();
    if (api_.chips(&params) != cupti::kSuccess || params.names == nullptr) return {};
    return {params.names, params.names + params.count};
  }

  Result<std::vector<std::string>> metrics(const std::string& chip, Method method) const override {
    return Host(api_, chip, method).metrics();
  }

  Result<int> passes(const std::string& chip, Method method, const std::vector<std::string>& metrics) const override {
    if (metrics.empty()) return 0;
    const Host host(api_, chip, method);
    LLMPROF_TRY(host.check());
    const int code = host.add(metrics);
    return code == cupti::kSuccess ? host.passes() : refused(chip, method, metrics, code);
  }

  Result<Description> describe(const std::string& chip, Method method, const std::string& metric) const override {
    return Host(api_, chip, method).describe(metric);
  }

 private:
  // Which of them it was: each is tried alone.
  Error refused(const std::string& chip, Method method, const std::vector<std::string>& metrics, int code) const {
    for (const std::string& metric : metrics) {
      const Host alone(api_, chip, method);
      if (alone.check() && alone.add({metric}) != cupti::kSuccess) {
        return {ErrorCode::kNotFound, fmt::format("{} has no metric {} ({})", chip, metric, name_of(method)),
                fmt::format("`llmprof counters --chip {} --raw PATTERN` lists what it has.", chip)};
      }
    }
    if (code != cupti::kNotSupported) return failed("cuptiProfilerHostConfigAddMetrics", chip, code);
    return {ErrorCode::kUnsupported, fmt::format("{} cannot count these metrics together ({})", chip, name_of(method)),
            "In ranges, metrics of NVLink and PCIe go together with each other and with gpu__time_duration only."};
  }

  HostApi api_;
};

}  // namespace

Result<std::unique_ptr<HostLibrary>> HostLibrary::open() {
  Result<HostApi> api = base::load_api<HostApi>(cupti_paths(SystemFiles()), kSymbols);
  if (!api) {
    api.error().hint =
        "CUPTI of CUDA 12.6 or later is needed (libcupti.so with libnvperf_host.so beside it); LLMPROF_CUPTI names "
        "one.";
    return std::move(api.error());
  }
  auto library = std::make_unique<CuptiHost>(*api);
  if (library->chips().empty()) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} tells no chips", library->path()),
                 "libnvperf_host.so has to lie beside it."};
  }
  return std::unique_ptr<HostLibrary>(std::move(library));
}

}  // namespace llmprof::hw::counters

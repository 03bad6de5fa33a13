#include "hw/counters/host_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/dynlib.h"
#include "hw/counters/chip_host.h"
#include "hw/doctor.h"

namespace llmprof::hw::counters {
namespace {

// clang-format off
#define LLMPROF_LIBRARY_CALLS(X) \
  X(chips, cuptiProfilerHostGetSupportedChips, HostChips) \
  X(base_metrics, cuptiProfilerHostGetBaseMetrics, HostBaseMetrics) \
  X(properties, cuptiProfilerHostGetMetricProperties, HostMetricProperties)
// clang-format on
LLMPROF_CUPTI_API(LibraryApi, LLMPROF_LIBRARY_CALLS)

struct VersionApi {
  int (*version)(std::uint32_t*) = nullptr;
};
constexpr base::Binding<VersionApi> kVersion[] = {base::bind<&VersionApi::version>("cuptiGetVersion")};

Error failed(const CallFailure& failure, const std::string& chip) {
  return {ErrorCode::kUnsupported, fmt::format("{} answers {} for {}", failure.call, failure.code, chip), ""};
}

cupti::ProfilerType profiler_of(Method method) {
  return method == Method::kSampled ? cupti::ProfilerType::kPmSampling : cupti::ProfilerType::kRange;
}

class CuptiHost final : public HostLibrary {
 public:
  static Result<std::unique_ptr<CuptiHost>> load() {
    const std::vector<std::string> paths = cupti_paths(SystemFiles());
    auto library = std::make_unique<CuptiHost>();
    LLMPROF_LET(library->host_, base::load_api<HostApi>(paths, HostApi::symbols()));
    LLMPROF_LET(library->library_, base::load_api<LibraryApi>(paths, LibraryApi::symbols()));
    LLMPROF_LET(library->version_, base::load_api<VersionApi>(paths, kVersion));
    return library;
  }

  std::string path() const override {
    Dl_info info{};
    const auto address = reinterpret_cast<void*>(library_.chips);
    return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  }

  std::uint32_t version() const override {
    std::uint32_t version = 0;
    return version_.version(&version) == cupti::kSuccess ? version : 0;
  }

  std::vector<std::string> chips() const override {
    cupti::HostChips params;
    if (library_.chips(&params) != cupti::kSuccess || params.names == nullptr) return {};
    return {params.names, params.names + params.count};
  }

  Result<std::vector<std::string>> metrics(const std::string& chip, Method method) const override {
    const ChipHost host(host_, chip, profiler_of(method));
    if (host.failure()) return failed(host.failure(), chip);
    std::vector<std::string> names;
    for (const auto type : {cupti::MetricType::kCounter, cupti::MetricType::kRatio, cupti::MetricType::kThroughput}) {
      cupti::HostBaseMetrics params{.host = host.get(), .type = type};
      if (const int code = library_.base_metrics(&params)) {
        return failed({"cuptiProfilerHostGetBaseMetrics", code}, chip);
      }
      names.insert(names.end(), params.names, params.names + params.count);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<int> passes(const std::string& chip, Method method, const std::vector<std::string>& metrics) const override {
    if (metrics.empty()) return 0;
    const ChipHost host(host_, chip, profiler_of(method));
    if (host.failure()) return failed(host.failure(), chip);
    std::vector<const char*> names;
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    if (const int code = host.add(names)) return refused(chip, method, names, code);
    std::vector<std::uint8_t> image;
    std::size_t passes = 0;
    if (const CallFailure failure = host.read_image(image, passes)) return failed(failure, chip);
    return static_cast<int>(passes);
  }

  Result<Description> describe(const std::string& chip, Method method, const std::string& metric) const override {
    const ChipHost host(host_, chip, profiler_of(method));
    if (host.failure()) return failed(host.failure(), chip);
    cupti::HostMetricProperties params{.host = host.get(), .metric = metric.c_str()};
    if (library_.properties(&params) != cupti::kSuccess) {
      return Error{ErrorCode::kNotFound, fmt::format("{} has no metric {}", chip, metric), ""};
    }
    const auto text = [](const char* chars) { return std::string(chars != nullptr ? chars : ""); };
    return Description{text(params.description), text(params.dim_unit)};
  }

 private:
  // Which of them it was: each is tried alone.
  Error refused(const std::string& chip, Method method, const std::vector<const char*>& metrics, int code) const {
    for (const char* metric : metrics) {
      const ChipHost alone(host_, chip, profiler_of(method));
      if (!alone.failure() && alone.add({metric}) != cupti::kSuccess) {
        return {ErrorCode::kNotFound, fmt::format("{} has no metric {} ({})", chip, metric, name_of(method)),
                fmt::format("`llmprof counters --chip {} --raw PATTERN` lists what it has.", chip)};
      }
    }
    if (code != cupti::kNotSupported) return failed({"cuptiProfilerHostConfigAddMetrics", code}, chip);
    return {ErrorCode::kUnsupported, fmt::format("{} cannot count these metrics together ({})", chip, name_of(method)),
            "In ranges, metrics of NVLink and PCIe go together with each other and with gpu__time_duration only."};
  }

  HostApi host_;
  LibraryApi library_;
  VersionApi version_;
};

}  // namespace

ChipHost::ChipHost(const HostApi& api, const std::string& chip, cupti::ProfilerType profiler) : api_(api) {
  cupti::HostInitialize params{.profiler = profiler, .chip = chip.c_str()};
  if (const int code = api_.initialize(&params)) {
    failure_ = {"cuptiProfilerHostInitialize", code};
  } else {
    host_ = params.host;
  }
}

ChipHost::~ChipHost() {
  cupti::HostDeinitialize params{.host = host_};
  if (host_ != nullptr) (void)api_.deinitialize(&params);
}

int ChipHost::add(const std::vector<const char*>& metrics) const {
  std::vector<const char*> names = metrics;
  cupti::HostAddMetrics params{.host = host_, .metrics = names.data(), .count = names.size()};
  return api_.add_metrics(&params);
}

CallFailure ChipHost::read_image(std::vector<std::uint8_t>& image, std::size_t& passes) const {
  cupti::HostConfigSize size{.host = host_};
  if (const int code = api_.config_size(&size)) return {"cuptiProfilerHostGetConfigImageSize", code};
  image.assign(size.bytes, 0);
  cupti::HostConfig config{.host = host_, .bytes = image.size(), .image = image.data()};
  if (const int code = api_.config(&config)) return {"cuptiProfilerHostGetConfigImage", code};
  cupti::HostPasses count{.bytes = image.size(), .image = image.data()};
  if (const int code = api_.passes(&count)) return {"cuptiProfilerHostGetNumOfPasses", code};
  passes = count.passes;
  return {};
}

Result<std::unique_ptr<HostLibrary>> HostLibrary::open() {
  Result<std::unique_ptr<CuptiHost>> library = CuptiHost::load();
  if (!library) {
    library.error().hint =
        "CUPTI of CUDA 12.6 or later is needed (libcupti.so with libnvperf_host.so beside it); LLMPROF_CUPTI names "
        "one.";
    return std::move(library.error());
  }
  if ((*library)->chips().empty()) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} tells no chips", (*library)->path()),
                 "libnvperf_host.so has to lie beside it."};
  }
  return std::unique_ptr<HostLibrary>(std::move(*library));
}

}  // namespace llmprof::hw::counters

// The fake CUPTI's profilers: initialisation, chips, and the host API, which knows metrics and images.
#include "cupti_profiler.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fake {
namespace {

constexpr const char* kChips[] = {"TU102", "GA100", "AD102", "GH100", "GB100"};
constexpr const char* kBaseMetrics[] = {"gpu__time_duration",  "dram__bytes_read",   "dram__bytes_write",
                                        "lts__t_bytes",        "sm__warps_active",   "sm__pipe_tensor_cycles_active",
                                        "sm__cycles_active",   "sm__inst_executed",  "gr__cycles_active",
                                        "gpc__cycles_elapsed", "smsp__inst_executed"};
constexpr const char* kSubMetrics[] = {".sum", ".avg", ".min", ".max", ".avg.pct_of_peak_sustained_elapsed"};

struct Host {
  ProfilerType type;
  std::vector<std::string> metrics;
  bool spoiled = false;  // it has refused a metric: it takes no other
};

pid_t initialised_in = 0;

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::size_t config_bytes(std::size_t metrics) { return sizeof(Image) + metrics * sizeof(ImageMetric); }

ImageMetric* metrics_of(Image* image) { return reinterpret_cast<ImageMetric*>(image + 1); }

std::size_t row_bytes(const Image* data) { return sizeof(ImageRow) + data->metrics * sizeof(double); }

std::uint8_t* rows_of(Image* data) {
  return reinterpret_cast<std::uint8_t*>(data) + config_bytes(data->metrics + data->metrics % 2);
}

}  // namespace

Totals totals_of(const Work& work) {
  const std::uint64_t ns = work.end_ns - work.begin_ns;
  if (work.kind == kGraphTrace) return {work.kernels, work.kernel_ns, 0, 1};
  if (work.kind != kConcurrentKernel) return {};
  return {1, ns, work.graph == 0 ? ns : 0, work.graph == 0 ? 0u : 1u};
}

bool is_metric(const std::string& name, ProfilerType type) {
  if (name.rfind("no_such", 0) == 0 || !contains(name, "__") || !contains(name, ".")) return false;
  return type == kRangeProfiler || !(contains(name, "__sass_") || contains(name, "sm__ops_path"));
}

double weight_of(const std::string& name) {
  unsigned sum = 0;
  for (const char c : name) sum += static_cast<unsigned char>(c);
  return 1 + sum % 97;
}

double value_of(const std::string& name, const Totals& totals) {
  if (name.rfind("gpu__time_duration.", 0) == 0) return static_cast<double>(totals.kernel_ns);
  if (contains(name, "pct") || contains(name, ".ratio")) return totals.kernels > 0 ? weight_of(name) : 0;
  return weight_of(name) * static_cast<double>(contains(name, "__sass_") ? totals.eager_ns : totals.kernel_ns);
}

double value_of_period(const std::string& name, std::uint64_t period_ns) {
  if (contains(name, "pct") || contains(name, ".ratio")) return weight_of(name);
  return weight_of(name) * static_cast<double>(period_ns) / 1000;
}

std::uint32_t Metrics::count_passes() const {
  return passes.empty() ? 0 : *std::max_element(passes.begin(), passes.end()) + 1;
}

Metrics schedule(std::vector<std::string> names) {
  Metrics metrics{std::move(names), {}};
  const auto sass = [](const std::string& name) { return contains(name, "__sass_"); };
  const auto instrumented = static_cast<std::size_t>(std::count_if(metrics.names.begin(), metrics.names.end(), sass));
  const std::size_t of_hardware = (metrics.names.size() - instrumented + kMetricsPerPass - 1) / kMetricsPerPass;
  std::size_t seen[2] = {};
  for (const std::string& name : metrics.names) {
    const std::size_t at = seen[sass(name)]++ / kMetricsPerPass;
    metrics.passes.push_back(static_cast<std::uint32_t>(at + (sass(name) ? of_hardware : 0)));
  }
  return metrics;
}

void set_metrics(Image* image, const Metrics& metrics) {
  for (std::size_t i = 0; i < image->metrics; ++i) {
    ImageMetric& entry = metrics_of(image)[i];
    std::memset(&entry, 0, sizeof(entry));
    if (i >= metrics.names.size()) continue;
    std::strncpy(entry.name, metrics.names[i].c_str(), kMetricBytes - 1);
    entry.pass = metrics.passes[i];
  }
}

bool read_config(const std::uint8_t* bytes, std::size_t size, Metrics* metrics) {
  auto* image = reinterpret_cast<Image*>(const_cast<std::uint8_t*>(bytes));
  if (image == nullptr || size < sizeof(Image) || image->magic != kConfigMagic || size < config_bytes(image->metrics)) {
    return false;
  }
  *metrics = {};
  for (std::size_t i = 0; i < image->metrics; ++i) {
    metrics->names.emplace_back(metrics_of(image)[i].name);
    metrics->passes.push_back(metrics_of(image)[i].pass);
  }
  return !metrics->names.empty();
}

std::size_t data_bytes(std::size_t metrics, std::size_t most_rows) {
  return config_bytes(metrics + metrics % 2) + most_rows * (sizeof(ImageRow) + metrics * sizeof(double));
}

bool make_data(std::uint8_t* bytes, std::size_t size, const Metrics& metrics, std::size_t most_rows) {
  if (bytes == nullptr || metrics.names.empty() || size < data_bytes(metrics.names.size(), most_rows)) return false;
  std::memset(bytes, 0, size);
  auto* image = reinterpret_cast<Image*>(bytes);
  *image = {kDataMagic, static_cast<std::uint32_t>(metrics.names.size()), metrics.count_passes(),
            static_cast<std::uint32_t>(most_rows), 0};
  set_metrics(image, metrics);
  return true;
}

Image* data_of(const std::uint8_t* bytes, std::size_t size) {
  auto* image = reinterpret_cast<Image*>(const_cast<std::uint8_t*>(bytes));
  if (image == nullptr || size < sizeof(Image) || image->magic != kDataMagic) return nullptr;
  return size >= data_bytes(image->metrics, image->most_rows) ? image : nullptr;
}

ImageRow* row_of(Image* data, std::size_t index) {
  return reinterpret_cast<ImageRow*>(rows_of(data) + index * row_bytes(data));
}

ImageRow* add_row(Image* data, const std::vector<double>& values) {
  if (data->rows >= data->most_rows) return nullptr;
  ImageRow* row = row_of(data, data->rows++);
  auto* numbers = reinterpret_cast<double*>(row + 1);
  for (std::size_t i = 0; i < data->metrics; ++i) numbers[i] = i < values.size() ? values[i] : std::nan("");
  return row;
}

int begin_on_device(const Context* context) {
  const CuptiState& state = cupti();
  if (state.driver == nullptr) return kNotInitialized;
  if (initialised_in != 0 && initialised_in != getpid()) return note(k_bad_in_child), kUnknownError;
  if (state.driver->initialising->load()) return kUnknownError;
  const bool capture = state.driver->captures->load() > 0;
  if (script().slow_ms != 0) usleep(static_cast<useconds_t>(script().slow_ms * 1000));
  // One that began while this call was at work is broken as well.
  if (capture || state.driver->captures->load() > 0) {
    note(k_bad_in_capture);
    state.driver->break_captures();
    return kUnknownError;
  }
  if (context != nullptr && context->dead.load()) return note(k_bad_dead_context), kInvalidContext;
  return state.driver->lost->load() ? kUnknownError : kSuccess;
}

}  // namespace fake

using namespace fake;

static int initialise(const Params* given) {
  if (given == nullptr || given->struct_size != sizeof(Params)) return kInvalidParameter;
  return begin_on_device();
}

FAKE_EXPORT int cuptiProfilerInitialize(Params* given) {
  if (const int error = begin_call(__func__); error != kSuccess) return error;
  const std::lock_guard hold(cupti().lock);
  note(k_profiler_calls);
  const int result = initialise(given);
  if (result == kSuccess) initialised_in = getpid();
  return result;
}

FAKE_EXPORT int cuptiProfilerDeInitialize(Params* given) {
  if (const int error = begin_call(__func__); error != kSuccess) return error;
  const std::lock_guard hold(cupti().lock);
  note(k_profiler_calls);
  return initialise(given);
}

FAKE_EXPORT int cuptiDeviceGetChipName(ChipNameParams* given) {
  BEGIN_HOST(ChipNameParams, chip);
  if (given->device > 1) return kInvalidDevice;
  return given->chip = "GH100", kSuccess;
}

FAKE_EXPORT int cuptiProfilerGetCounterAvailability(AvailabilityParams* given) {
  BEGIN_ON_DEVICE(AvailabilityParams, image, static_cast<Context*>(given->context));
  if (script().forbidden != 0) return kInsufficientPrivileges;
  given->image_bytes = 64;
  if (given->image != nullptr) std::memset(given->image, 1, given->image_bytes);
  return kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostInitialize(HostInitializeParams* given) {
  BEGIN_HOST(HostInitializeParams, host);
  if (given->chip == nullptr || (given->type != kRangeProfiler && given->type != kPmSampling)) return kInvalidParameter;
  const bool known = std::any_of(std::begin(kChips), std::end(kChips),
                                 [&](const char* chip) { return std::strcmp(chip, given->chip) == 0; });
  if (!known) return kInvalidChipName;
  return given->host = new Host{given->type, {}, false}, kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostDeinitialize(HostParams* given) {
  BEGIN_HOST(HostParams, host);
  if (given->host == nullptr) return kInvalidParameter;
  delete static_cast<Host*>(given->host);
  return kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetSupportedChips(SupportedChipsParams* given) {
  BEGIN_HOST(SupportedChipsParams, names);
  given->count = std::size(kChips);
  return given->names = kChips, kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetBaseMetrics(BaseMetricsParams* given) {
  BEGIN_HOST(BaseMetricsParams, count);
  given->names = const_cast<const char**>(kBaseMetrics);
  return given->count = given->metric_type == 0 ? std::size(kBaseMetrics) : 0, kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetSubMetrics(SubMetricsParams* given) {
  BEGIN_HOST(SubMetricsParams, names);
  if (given->metric == nullptr || !contains(given->metric, "__")) return kInvalidMetricName;
  given->names = const_cast<const char**>(kSubMetrics);
  return given->count = std::size(kSubMetrics), kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetMetricProperties(MetricPropertiesParams* given) {
  BEGIN_HOST(MetricPropertiesParams, metric_type);
  if (given->metric == nullptr || !contains(given->metric, "__")) return kInvalidMetricName;
  given->description = "a counter of the fake";
  given->hardware_unit = "fake";
  given->unit = contains(given->metric, "bytes") ? "byte" : "count";
  return given->metric_type = 0, kSuccess;
}

// All or none.
FAKE_EXPORT int cuptiProfilerHostConfigAddMetrics(AddMetricsParams* given) {
  BEGIN_HOST(AddMetricsParams, metric_count);
  auto* host = static_cast<Host*>(given->host);
  if (host == nullptr || given->metrics == nullptr || given->metric_count == 0) return kInvalidParameter;
  for (std::size_t i = 0; i < given->metric_count; ++i) {
    if (given->metrics[i] == nullptr || !is_metric(given->metrics[i], host->type)) host->spoiled = true;
  }
  if (host->spoiled) return kInvalidMetricName;
  host->metrics.insert(host->metrics.end(), given->metrics, given->metrics + given->metric_count);
  return kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetConfigImageSize(ConfigSizeParams* given) {
  BEGIN_HOST(ConfigSizeParams, bytes);
  const auto* host = static_cast<Host*>(given->host);
  if (host == nullptr || host->metrics.empty()) return kInvalidParameter;
  return given->bytes = config_bytes(host->metrics.size()), kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetConfigImage(ConfigImageParams* given) {
  BEGIN_HOST(ConfigImageParams, image);
  const auto* host = static_cast<Host*>(given->host);
  if (host == nullptr || given->image == nullptr || given->bytes < config_bytes(host->metrics.size())) {
    return kInvalidParameter;
  }
  const Metrics metrics = schedule(host->metrics);
  auto* image = reinterpret_cast<Image*>(given->image);
  *image = {kConfigMagic, static_cast<std::uint32_t>(metrics.names.size()), metrics.count_passes(), 0, 0};
  set_metrics(image, metrics);
  return kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetNumOfPasses(PassesParams* given) {
  BEGIN_HOST(PassesParams, passes);
  Metrics metrics;
  if (!read_config(given->image, given->bytes, &metrics)) return kInvalidParameter;
  return given->passes = metrics.count_passes(), kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetMaxNumHardwareMetricsPerPass(MostPerPassParams* given) {
  BEGIN_HOST(MostPerPassParams, metrics);
  return given->metrics = kMetricsPerPass, kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetRangeName(HostRangeNameParams* given) {
  BEGIN_HOST(HostRangeNameParams, name);
  Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr || given->range >= data->rows) return kInvalidParameter;
  return given->name = strdup(row_of(data, given->range)->name), kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostEvaluateToGpuValues(EvaluateParams* given) {
  BEGIN_HOST(EvaluateParams, values);
  Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr || given->range >= data->rows || given->host == nullptr) return kInvalidParameter;
  const auto* numbers = reinterpret_cast<const double*>(row_of(data, given->range) + 1);
  for (std::size_t i = 0; i < given->metric_count; ++i) {
    if (!is_metric(given->metrics[i], kRangeProfiler)) return kInvalidMetricName;
    given->values[i] = std::nan("");  // of a metric that was not read
    for (std::size_t k = 0; k < data->metrics; ++k) {
      if (std::strcmp(metrics_of(data)[k].name, given->metrics[i]) == 0) given->values[i] = numbers[k];
    }
  }
  return kSuccess;
}

#include "collect/cuda/counters/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/profiler_library.h"
#include "collect/cuda/gpu.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {
namespace {

using cupti::params;
using cupti::succeeded;
using cupti::ProfilerCall;
using wire::LossKind;

struct Image {
  std::uint8_t* bytes;
  std::size_t size;
};

// The functions, and whether the interface as a whole was initialised: once in a process.
struct Profilers {
  cupti::ProfilerLibrary calls{};
  bool found = false, initialized = false;
};
constinit Profilers profilers;

bool map_image(std::size_t size, Image* image) {
  *image = {static_cast<std::uint8_t*>(map_memory(size)), size};
  return image->bytes != nullptr || succeeded(ProfilerCall::kMemory, static_cast<std::uint32_t>(errno));
}

void unmap(Image* image) {
  if (image->bytes != nullptr) munmap(image->bytes, image->size);
  *image = {};
}

bool not_counted(const char* why) {
  skip(why);
  note("counters", "nothing is counted: %s.", why);
  return false;
}

// A capture waits for who is in a profiler, but not for ever. Once it has gone on, the profilers are left alone.
bool may_call() {
  if (!capture_has_begun()) return true;
  return not_counted("a stream was captured while the counters were being read, which took too long to wait for");
}

bool prepare() {
  if (!profilers.found) {
    if (const char* missing = cupti::find_profilers(gpu.library, &profilers.calls)) {
      char why[128];
      snprintf(why, sizeof(why), "this CUPTI has no %s (CUDA 12.6 and later have it)", missing);
      return not_counted(why);
    }
    profilers.found = true;
  }
  if (profilers.initialized) return true;
  if (!may_call()) return false;
  auto start = params<cupti::ProfilerInitialize>();
  profilers.initialized = succeeded(ProfilerCall::kInitialize, profilers.calls.initialize(&start));
  return profilers.initialized;
}

void* make_host(const char* chip) {
  auto make = params<cupti::HostInitialize>();
  make.kind = cupti::kRangeProfiler;
  make.chip = chip;
  if (!succeeded(ProfilerCall::kHostInitialize, profilers.calls.host_initialize(&make))) return nullptr;
  return make.host;
}

void end_host(void* host) {
  auto end = params<cupti::HostDeinitialize>();
  end.host = host;
  if (host != nullptr) profilers.calls.host_deinitialize(&end);
}

std::uint32_t add_metrics(void* host, const char** metrics, std::size_t count) {
  auto add = params<cupti::HostAddMetrics>();
  add.host = host;
  add.metrics = metrics;
  add.count = count;
  return profilers.calls.host_add_metrics(&add);
}

}  // namespace

// What lives from open() to close().
struct Session::State {
  SessionOptions options;
  void* host;
  void* profiler;
  Image config, data;
  // Chip, then everything that the host's side knows without the device.
  bool configure(List* metrics, const char* chip, std::uint32_t* passes);
  bool make_config(std::uint32_t* passes);
  bool add_known(List* metrics, const char* chip);
  bool enable(List* metrics);
  bool set_config();
};

namespace {

bool chip_of(std::uint32_t device, char (&chip)[32]) {
  auto name = params<cupti::DeviceChipName>();
  name.device = device;
  if (!succeeded(ProfilerCall::kChipName, profilers.calls.chip_name(&name))) return false;
  snprintf(chip, sizeof(chip), "%s", name.chip != nullptr ? name.chip : "");
  return true;
}

// CUPTI 13.0 calls an unknown name an invalid parameter.
bool is_refused(std::uint32_t result) {
  return result == cupti::kInvalidParameter || result == cupti::kInvalidMetricName;
}

// A host object that has refused a metric takes no other: each is tried with one of its own.
bool is_known(const char* chip, const char* metric, bool* failed) {
  void* host = make_host(chip);
  const std::uint32_t result = host != nullptr ? add_metrics(host, &metric, 1) : cupti::kSuccess;
  end_host(host);
  const bool refused = is_refused(result);
  *failed = host == nullptr || (!refused && !succeeded(ProfilerCall::kHostAddMetrics, result));
  if (!refused || *failed) return !*failed;
  count_loss_about(LossKind::kCounterUnknown, 1, intern(metric));
  note("counters", "%s has no metric %s: it is not counted.", chip, metric);
  return false;
}

}  // namespace

bool Session::State::add_known(List* metrics, const char* chip) {
  List known{};
  for (std::size_t i = 0; i < metrics->count; ++i) {
    bool failed = false;
    if (is_known(chip, metrics->words[i], &failed)) known.words[known.count++] = metrics->words[i];
    if (failed) return false;
  }
  *metrics = known;
  if (known.count == 0) return not_counted("no metric of the plan is known to this chip");
  end_host(host);
  host = make_host(chip);
  return host != nullptr &&
         succeeded(ProfilerCall::kHostAddMetrics, add_metrics(host, metrics->words, metrics->count));
}

bool Session::State::configure(List* metrics, const char* chip, std::uint32_t* passes) {
  host = make_host(chip);
  if (host == nullptr) return false;
  const std::uint32_t result = add_metrics(host, metrics->words, metrics->count);
  const bool added =
      is_refused(result) ? add_known(metrics, chip) : succeeded(ProfilerCall::kHostAddMetrics, result);
  return added && make_config(passes);
}

bool Session::State::make_config(std::uint32_t* passes) {
  auto size = params<cupti::HostImageSize>();
  size.host = host;
  if (!succeeded(ProfilerCall::kHostImageSize, profilers.calls.host_image_size(&size))) return false;
  if (!map_image(size.image_bytes, &config)) return false;
  auto image = params<cupti::HostImage>();
  image.host = host;
  image.image_bytes = config.size;
  image.image = config.bytes;
  if (!succeeded(ProfilerCall::kHostImage, profilers.calls.host_image(&image))) return false;
  auto count = params<cupti::HostPasses>();
  count.image_bytes = config.size;
  count.image = config.bytes;
  if (!succeeded(ProfilerCall::kHostPasses, profilers.calls.host_passes(&count))) return false;
  *passes = static_cast<std::uint32_t>(count.passes);
  return true;
}

bool Session::State::enable(List* metrics) {
  if (!may_call()) return false;
  auto on = params<cupti::RangeEnable>();
  on.context = options.context;
  if (!succeeded(ProfilerCall::kRangeEnable, profilers.calls.enable(&on))) return false;
  profiler = on.profiler;
  auto size = params<cupti::RangeDataSize>();
  size.profiler = profiler;
  size.metrics = metrics->words;
  size.count = metrics->count;
  size.most_ranges = options.most_ranges;
  size.most_nodes = options.most_ranges;
  if (!succeeded(ProfilerCall::kRangeDataSize, profilers.calls.data_size(&size))) return false;
  return map_image(size.data_bytes, &data) && set_config();
}

bool Session::State::set_config() {
  if (!may_call()) return false;
  auto clear = params<cupti::RangeDataInitialize>();
  clear.profiler = profiler;
  clear.data_bytes = data.size;
  clear.data = data.bytes;
  if (!succeeded(ProfilerCall::kRangeDataInitialize, profilers.calls.data_initialize(&clear))) return false;
  const bool automatic = options.ranges == Ranges::kAutomatic;
  auto set = params<cupti::RangeConfig>();
  set.profiler = profiler;
  set.image_bytes = config.size;
  set.image = config.bytes;
  set.data_bytes = data.size;
  set.data = data.bytes;
  set.range = automatic ? cupti::kAutomaticRanges : cupti::kUserRanges;
  set.replay = options.replay ? cupti::kKernelReplay : cupti::kUserReplay;
  set.most_ranges = options.most_ranges;
  set.nesting_levels = 1;
  set.first_level = 1;
  set.target_level = automatic ? 0 : 1;
  return succeeded(ProfilerCall::kRangeSetConfig, profilers.calls.set_config(&set));
}

bool Session::open(const Plan& plan, const SessionOptions& options) {
  char chip[32];
  if (open_ || !prepare() || !chip_of(options.device, chip)) return false;
  metrics_for(plan, chip, &metrics_);
  if (metrics_.count == 0) {
    char why[96];
    snprintf(why, sizeof(why), "the plan has no metric for the chip %s", chip);
    return not_counted(why);
  }
  Image image{};
  if (!map_image(sizeof(State), &image)) return false;
  state_ = new (image.bytes) State{};
  state_->options = options;
  open_ = state_->configure(&metrics_, chip, &passes_);
  if (passes_ > 1 && options.most_ranges_of_several != 0) state_->options.most_ranges = options.most_ranges_of_several;
  open_ = open_ && state_->enable(&metrics_);
  if (!open_) close();
  return open_;
}

void Session::close() {
  open_ = false;
  if (state_ == nullptr) return;
  auto end = params<cupti::RangeCall>();
  end.profiler = state_->profiler;
  if (capture_has_begun()) return abandon();
  if (state_->profiler != nullptr) profilers.calls.disable(&end);
  end_host(state_->host);
  unmap(&state_->config);
  unmap(&state_->data);
  Image self = {reinterpret_cast<std::uint8_t*>(state_), sizeof(State)};
  state_ = nullptr;
  unmap(&self);
}

void Session::abandon() {
  open_ = false;
  state_ = nullptr;
}

bool Session::start() {
  if (!open_ || !may_call()) return false;
  auto call = params<cupti::RangeCall>();
  call.profiler = state_->profiler;
  return succeeded(ProfilerCall::kRangeStart, profilers.calls.start(&call));
}

bool Session::push(const char* name) {
  if (!open_ || !may_call()) return false;
  auto call = params<cupti::RangePush>();
  call.profiler = state_->profiler;
  call.name = name;
  return succeeded(ProfilerCall::kRangePush, profilers.calls.push(&call));
}

bool Session::pop() {
  if (!open_ || !may_call()) return false;
  auto call = params<cupti::RangeCall>();
  call.profiler = state_->profiler;
  return succeeded(ProfilerCall::kRangePop, profilers.calls.pop(&call));
}

bool Session::stop(bool* all) {
  *all = false;
  if (!open_ || !may_call()) return false;
  auto call = params<cupti::RangeStop>();
  call.profiler = state_->profiler;
  if (!succeeded(ProfilerCall::kRangeStop, profilers.calls.stop(&call))) return false;
  *all = call.all_passes != 0;
  return true;
}

bool Session::read(std::uint32_t* found) {
  *found = 0;
  if (!open_ || !may_call()) return false;
  auto decode = params<cupti::RangeDecode>();
  decode.profiler = state_->profiler;
  if (!succeeded(ProfilerCall::kRangeDecode, profilers.calls.decode(&decode))) return false;
  if (decode.dropped != 0) skip("CUPTI dropped ranges", decode.dropped);
  auto info = params<cupti::RangeDataInfo>();
  info.data = state_->data.bytes;
  info.data_bytes = state_->data.size;
  if (!succeeded(ProfilerCall::kRangeDataInfo, profilers.calls.data_info(&info))) return false;
  *found = static_cast<std::uint32_t>(info.ranges);
  return true;
}

bool Session::values(std::uint32_t index, double* values) {
  if (!open_) return false;
  for (std::size_t i = 0; i < metrics_.count; ++i) values[i] = __builtin_nan("");
  auto call = params<cupti::HostEvaluate>();
  call.host = state_->host;
  call.data = state_->data.bytes;
  call.data_bytes = state_->data.size;
  call.range = index;
  call.metrics = metrics_.words;
  call.count = metrics_.count;
  call.values = values;
  return succeeded(ProfilerCall::kHostEvaluate, profilers.calls.host_evaluate(&call));
}

bool Session::number_of(std::uint32_t index, std::uint32_t* number) {
  if (!open_) return false;
  auto call = params<cupti::RangeInfo>();
  call.data = state_->data.bytes;
  call.data_bytes = state_->data.size;
  call.range = index;
  call.delimiter = "/";
  if (!succeeded(ProfilerCall::kRangeInfo, profilers.calls.range_info(&call))) return false;
  char* end = nullptr;
  const unsigned long value = call.name != nullptr ? strtoul(call.name, &end, 10) : 0;
  const bool is_number = end != nullptr && end != call.name && *end == '\0' && value < kNoNumber;
  *number = is_number ? static_cast<std::uint32_t>(value) : kNoNumber;
  return true;
}

bool Session::renew() { return open_ && state_->set_config(); }

}  // namespace llmprof::collect::counters

#include "collect/cuda/counters/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <atomic>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/profiler_library.h"
#include "collect/cuda/gpu.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {

namespace {

using cupti::ProfilerCall;
using cupti::succeeded;
using wire::LossKind;

// The functions, and whether the interface as a whole was initialised: once in a process.
constinit cupti::ProfilerLibrary profilers{};
constinit bool are_found = false, are_initialized = false;

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
  if (!are_found) {
    if (const char* missing = cupti::find_profilers(gpu.library, &profilers)) {
      char why[128];
      snprintf(why, sizeof(why), "this CUPTI has no %s (CUDA 12.6 and later have it)", missing);
      return not_counted(why);
    }
    are_found = true;
  }
  cupti::ProfilerInitialize start{};
  if (!are_initialized) are_initialized = may_call() && profilers.initialize(start);
  return are_initialized;
}

void* make_host(const char* chip) {
  cupti::HostInitialize make{.profiler = cupti::ProfilerType::kRange, .chip = chip};
  return profilers.host_initialize(make) ? make.host : nullptr;
}

void end_host(void* host) {
  cupti::HostDeinitialize end{.size = sizeof(end), .host = host};
  if (host != nullptr) profilers.host_deinitialize_found(&end);
}

std::uint32_t add_metrics(void* host, const char** metrics, std::size_t count) {
  cupti::HostAddMetrics add{.size = sizeof(add), .host = host, .metrics = metrics, .count = count};
  return profilers.host_add_metrics_found(&add);
}

bool chip_of(std::uint32_t device, char (&chip)[32]) {
  cupti::DeviceChipName name{.device = device};
  if (!profilers.chip_name(name)) return false;
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

bool Session::map(std::size_t size, Image* image) {
  *image = {static_cast<std::uint8_t*>(map_memory(size)), size};
  return image->bytes != nullptr || succeeded(ProfilerCall::kMemory, static_cast<std::uint32_t>(errno));
}

void Session::unmap(Image* image) {
  if (image->bytes != nullptr) munmap(image->bytes, image->size);
  *image = {};
}

bool Session::add_known(const char* chip) {
  List known{};
  for (std::size_t i = 0; i < metrics_.count; ++i) {
    bool failed = false;
    if (is_known(chip, metrics_.words[i], &failed)) known.words[known.count++] = metrics_.words[i];
    if (failed) return false;
  }
  metrics_ = known;
  if (known.count == 0) return not_counted("no metric of the plan is known to this chip");
  end_host(host_);
  host_ = make_host(chip);
  return host_ != nullptr &&
         succeeded(ProfilerCall::kHostAddMetrics, add_metrics(host_, metrics_.words, metrics_.count));
}

bool Session::configure(const char* chip) {
  host_ = make_host(chip);
  if (host_ == nullptr) return false;
  const std::uint32_t result = add_metrics(host_, metrics_.words, metrics_.count);
  if (is_refused(result) ? !add_known(chip) : !succeeded(ProfilerCall::kHostAddMetrics, result)) return false;
  cupti::HostConfigSize size{.host = host_};
  if (!profilers.host_image_size(size) || !map(size.bytes, &config_)) return false;
  cupti::HostConfig image{.host = host_, .bytes = config_.size, .image = config_.bytes};
  cupti::HostPasses count{.bytes = config_.size, .image = config_.bytes};
  if (!profilers.host_image(image) || !profilers.host_passes(count)) return false;
  passes_ = static_cast<std::uint32_t>(count.passes);
  return true;
}

bool Session::enable() {
  cupti::RangeEnable on{.context = options_.context};
  if (!may_call() || !profilers.enable(on)) return false;
  profiler_ = on.profiler;
  cupti::RangeDataSize size{.profiler = profiler_,
                            .metrics = metrics_.words,
                            .count = metrics_.count,
                            .most_ranges = options_.most_ranges,
                            .most_nodes = options_.most_ranges};
  if (!profilers.data_size(size) || !map(size.data_bytes, &data_)) return false;
  open_ = true;
  return renew();
}

bool Session::renew() {
  if (!open_ || !may_call()) return false;
  cupti::RangeDataInitialize clear{.profiler = profiler_, .data_bytes = data_.size, .data = data_.bytes};
  const bool automatic = options_.ranges == Ranges::kAutomatic;
  cupti::RangeConfig set{
      .profiler = profiler_,
      .image_bytes = config_.size,
      .image = config_.bytes,
      .data_bytes = data_.size,
      .data = data_.bytes,
      .range = automatic ? cupti::kAutomaticRanges : cupti::kUserRanges,
      .replay = options_.replay ? cupti::kKernelReplay : cupti::kUserReplay,
      .most_ranges = options_.most_ranges,
      .nesting_levels = 1,
      .first_level = 1,
      .target_level = static_cast<std::uint16_t>(automatic ? 0 : 1),
  };
  return profilers.data_initialize(clear) && profilers.set_config(set);
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
  options_ = options;
  bool good = configure(chip);
  if (passes_ > 1 && options.most_ranges_of_several != 0) options_.most_ranges = options.most_ranges_of_several;
  good = good && enable();
  if (!good) close();
  return good;
}

void Session::close() {
  if (capture_has_begun()) return abandon();
  cupti::RangeCall end{.size = sizeof(end), .profiler = profiler_};
  if (profiler_ != nullptr) profilers.disable_found(&end);
  end_host(host_);
  unmap(&config_);
  unmap(&data_);
  abandon();
}

void Session::abandon() {
  open_ = false;
  host_ = profiler_ = nullptr;
  config_ = data_ = {};
}

bool Session::start() {
  cupti::RangeCall call{.profiler = profiler_};
  return open_ && may_call() && profilers.start(call);
}

bool Session::push(const char* name) {
  cupti::RangePush call{.profiler = profiler_, .name = name};
  return open_ && may_call() && profilers.push(call);
}

bool Session::pop() {
  cupti::RangeCall call{.profiler = profiler_};
  return open_ && may_call() && profilers.pop(call);
}

bool Session::stop(bool* all) {
  cupti::RangeStop call{.profiler = profiler_};
  const bool stopped = open_ && may_call() && profilers.stop(call);
  *all = stopped && call.all_passes != 0;
  return stopped;
}

bool Session::read(std::uint32_t* found) {
  *found = 0;
  cupti::RangeDecode decode{.profiler = profiler_};
  if (!open_ || !may_call() || !profilers.decode(decode)) return false;
  if (decode.dropped != 0) skip("CUPTI dropped ranges", decode.dropped);
  cupti::RangeDataInfo info{.data = data_.bytes, .data_bytes = data_.size};
  if (!profilers.data_info(info)) return false;
  *found = static_cast<std::uint32_t>(info.ranges);
  return true;
}

bool Session::values(std::uint32_t index, double* values) {
  for (std::size_t i = 0; i < metrics_.count; ++i) values[i] = __builtin_nan("");
  cupti::HostEvaluate call{.host = host_,
                           .image = data_.bytes,
                           .image_bytes = data_.size,
                           .range = index,
                           .metrics = metrics_.words,
                           .count = metrics_.count,
                           .values = values};
  return open_ && profilers.host_evaluate(call);
}

bool Session::number_of(std::uint32_t index, std::uint32_t* number) {
  cupti::RangeInfo call{.data = data_.bytes, .data_bytes = data_.size, .range = index, .delimiter = "/"};
  if (!open_ || !profilers.range_info(call)) return false;
  char* end = nullptr;
  const unsigned long value = call.name != nullptr ? strtoul(call.name, &end, 10) : 0;
  const bool is_number = end != nullptr && end != call.name && *end == '\0' && value < kNoNumber;
  *number = is_number ? static_cast<std::uint32_t>(value) : kNoNumber;
  return true;
}

}  // namespace llmprof::collect::counters

namespace llmprof::collect::cupti {

namespace {

using wire::LossKind;

// One word a way to fail: what was said is not said again.
bool first_time(LossKind kind) {
  static constinit std::atomic<std::uint64_t> said;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<std::uint32_t>(kind);
  return (said.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void state_forbidden(const char* name, std::uint32_t result) {
  const char* setting = result == kForbiddenOnVirtualDevice
                            ? "profiling is not enabled for this virtual GPU"
                            : "NVreg_RestrictProfilingToAdminUsers of the NVIDIA driver (RmProfilingAdminOnly)";
  count_loss_about(LossKind::kCountersForbidden, 1, intern(setting));
  if (!first_time(LossKind::kCountersForbidden)) return;
  note("counters", "hardware counters may not be read: %s. %s answered %u.", setting, name, result);
}

void state_held(const char* name, std::uint32_t result) {
  const char* who = result == kOldProfilerInUse ? "a client of CUPTI's older profilers in this process"
                                                : "another profiler, which CUPTI does not name";
  count_loss_about(LossKind::kCountersHeld, 1, intern(who));
  if (!first_time(LossKind::kCountersHeld)) return;
  note("counters", "hardware counters are held by %s. %s answered %u.", who, name, result);
}

void state_failed(ProfilerCall call, const char* name, std::uint32_t result) {
  count_loss_about(LossKind::kCountersFailed, 1, std::uint64_t{result} | static_cast<std::uint64_t>(call) << 32);
  if (!first_time(LossKind::kCountersFailed)) return;
  note("counters", "%s answered %u: what it was to measure is missing.", name, result);
}

}  // namespace

const char* find_profilers(const Library& library, ProfilerLibrary* profilers) {
  const char* missing = nullptr;
#define LLMPROF_PROFILER_LOAD(member, call, Params)                                                    \
  profilers->member##_found =                                                                          \
      reinterpret_cast<Result (*)(Params*)>(dlsym(library.handle, wire::name_of(ProfilerCall::call))); \
  if (profilers->member##_found == nullptr) missing = wire::name_of(ProfilerCall::call);
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_LOAD)
#undef LLMPROF_PROFILER_LOAD
  return missing;
}

bool succeeded(ProfilerCall call, std::uint32_t result) {
  const char* const name = wire::name_of(call);
  switch (result) {
    case kSuccess:
      return true;
    case kForbidden:
    case kForbiddenOnVirtualDevice:
      state_forbidden(name, result);
      return false;
    case kHardwareBusy:
    case kOldProfilerInUse:
    case kHeldByAnother:
      state_held(name, result);
      return false;
    default:
      state_failed(call, name, result);
      return false;
  }
}

}  // namespace llmprof::collect::cupti

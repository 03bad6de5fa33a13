// The fake CUPTI's range profiler, as the real one was seen to behave on an H200
// (libs/collect/cuda/counters/session.h).
#include "cupti_profiler.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace fake {
namespace {

struct Range {
  std::string name;
  Totals totals;
};

struct RangeProfiler {
  Context* context = nullptr;
  Metrics asked;  // of the last GetCounterDataSize: what an image is made for
  std::size_t asked_ranges = 0;
  Metrics metrics;  // of the FIRST SetConfig: later ones keep them
  Image* data = nullptr;
  RangeMode range_mode = kUserRange;
  ReplayMode replay_mode = kUserReplay;
  std::size_t most_ranges = 0, nesting_levels = 1, dropped = 0;
  bool configured = false, started = false, all_passes = false, graph_in_auto = false, ever_started = false;
  std::size_t pass = 0, depth = 0;
  std::uint64_t auto_base = 0;  // automatic names count on over the session
  std::vector<std::vector<Range>> passes;
  std::vector<Range*> open;
};

std::vector<RangeProfiler*>& profilers() {
  static auto* all = new std::vector<RangeProfiler*>;
  return *all;
}

RangeProfiler* find(void* object) {
  for (RangeProfiler* profiler : profilers()) {
    if (profiler == object) return profiler;
  }
  return nullptr;
}

Context* context_of(void* object) {
  const RangeProfiler* profiler = find(object);
  return profiler != nullptr ? profiler->context : nullptr;
}

void wait_for_device() {
  while (timestamp_ns() < cupti().driver->idle_at_ns()) usleep(50);
}

Range* range_named(RangeProfiler* profiler, const std::string& name) {
  std::vector<Range>& ranges = profiler->passes[profiler->pass];
  for (Range& range : ranges) {
    if (range.name == name) return &range;
  }
  if (ranges.size() >= profiler->most_ranges) return ++profiler->dropped, nullptr;
  ranges.reserve(profiler->most_ranges);  // open ranges are pointed to
  ranges.push_back({name, {}});
  return &ranges.back();
}

void add(Totals* sum, const Totals& more) {
  sum->kernels += more.kernels;
  sum->kernel_ns += more.kernel_ns;
  sum->eager_ns += more.eager_ns;
  sum->graphs += more.graphs;
}

void see(RangeProfiler* profiler, const Work& work) {
  const Totals totals = totals_of(work);
  if (profiler->range_mode == kUserRange) {
    for (Range* range : profiler->open) add(&range->totals, totals);
    return;
  }
  if (totals.graphs > 0) profiler->graph_in_auto = true;
  if (work.kind != kConcurrentKernel || work.graph != 0) return;
  const std::uint64_t number = profiler->auto_base + profiler->passes[profiler->pass].size();
  Range* range = range_named(profiler, std::to_string(number));
  if (range == nullptr) return;
  note(k_auto_ranges);
  range->totals = totals;
}

// Ranges of the passes belong together by their names; what a pass lacks is unknown.
std::vector<double> values_of(const RangeProfiler& profiler, const std::string& name) {
  std::vector<double> values;
  for (std::size_t i = 0; i < profiler.metrics.names.size(); ++i) {
    const std::size_t pass = profiler.replay_mode == kKernelReplay ? 0 : profiler.metrics.passes[i];
    double value = std::nan("");
    for (const Range& range : pass < profiler.passes.size() ? profiler.passes[pass] : std::vector<Range>{}) {
      if (range.name == name) value = value_of(profiler.metrics.names[i], range.totals);
    }
    values.push_back(value);
  }
  return values;
}

bool valid_modes(const RangeConfigParams& given) {
  if (given.range_mode == kUserRange) return given.replay_mode == kUserReplay && given.nesting_levels >= 1;
  return given.range_mode == kAutoRange && (given.replay_mode == kUserReplay || given.replay_mode == kKernelReplay);
}

void configure(RangeProfiler* profiler, const RangeConfigParams& given, const Metrics& metrics, Image* data) {
  if (profiler->metrics.names.empty()) profiler->metrics = metrics;
  if (!profiler->passes.empty()) profiler->auto_base += profiler->passes[0].size();
  set_metrics(data, profiler->metrics);
  profiler->data = data;
  profiler->range_mode = given.range_mode;
  profiler->replay_mode = given.replay_mode;
  profiler->most_ranges = given.most_ranges;
  profiler->nesting_levels = given.nesting_levels;
  profiler->pass = profiler->depth = profiler->dropped = 0;
  profiler->passes.assign(profiler->metrics.count_passes(), {});
  profiler->configured = true;
  profiler->all_passes = profiler->graph_in_auto = false;
}

}  // namespace

bool ranges_see(const Work& work) {
  const std::lock_guard hold(cupti().lock);
  bool replayed = false;
  for (RangeProfiler* profiler : profilers()) {
    if (!profiler->started || profiler->context->id != work.context) continue;
    see(profiler, work);
    replayed = replayed || (profiler->replay_mode == kKernelReplay && work.kind == kConcurrentKernel);
  }
  return replayed;
}

}  // namespace fake

using namespace fake;

FAKE_EXPORT int cuptiRangeProfilerEnable(RangeEnableParams* given) {
  BEGIN_ON_DEVICE(RangeEnableParams, object, static_cast<Context*>(given->context));
  if (given->context == nullptr) return kInvalidParameter;
  for (const RangeProfiler* profiler : profilers()) {
    if (profiler->context == given->context) return kInvalidOperation;
  }
  auto* made = new RangeProfiler;
  made->context = static_cast<Context*>(given->context);
  profilers().push_back(made);
  return given->object = made, kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerDisable(RangeParams* given) {
  BEGIN_ON_DEVICE(RangeParams, object, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr) return kInvalidParameter;
  std::erase(profilers(), profiler);
  delete profiler;
  return kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerGetCounterDataSize(RangeDataSizeParams* given) {
  BEGIN_HOST(RangeDataSizeParams, bytes);
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr || given->metrics == nullptr || given->metric_count == 0 || given->most_ranges == 0 ||
      given->most_nodes < given->most_ranges) {
    return kInvalidParameter;
  }
  std::vector<std::string> names(given->metrics, given->metrics + given->metric_count);
  for (const std::string& name : names) {
    if (!is_metric(name, kRangeProfiler)) return kInvalidMetricName;
  }
  profiler->asked = schedule(std::move(names));
  profiler->asked_ranges = given->most_ranges;
  return given->bytes = data_bytes(given->metric_count, given->most_ranges), kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerCounterDataImageInitialize(DataInitializeParams* given) {
  BEGIN_HOST(DataInitializeParams, image);
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr || profiler->asked.names.empty()) return kInvalidParameter;
  return make_data(given->image, given->bytes, profiler->asked, profiler->asked_ranges) ? kSuccess : kInvalidParameter;
}

FAKE_EXPORT int cuptiRangeProfilerSetConfig(RangeConfigParams* given) {
  BEGIN_ON_DEVICE(RangeConfigParams, target_nesting_level, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  Image* data = data_of(given->image, given->image_bytes);
  Metrics metrics;
  if (profiler == nullptr || data == nullptr || given->most_ranges == 0) return kInvalidParameter;
  if (!read_config(given->config, given->config_bytes, &metrics)) return kInvalidParameter;
  if (profiler->started || !valid_modes(*given)) return kInvalidOperation;
  configure(profiler, *given, metrics, data);
  return kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerStart(RangeParams* given) {
  BEGIN_ON_DEVICE(RangeParams, object, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr) return kInvalidParameter;
  if (!profiler->configured || profiler->started || profiler->all_passes) return kInvalidOperation;
  if (script().forbidden != 0) return kInsufficientPrivileges;
  if (script().busy != 0) return kHardwareBusy;
  if (!std::exchange(profiler->ever_started, true)) usleep(static_cast<useconds_t>(script().first_ms * 1000));
  note(k_profiler_starts);
  return profiler->started = true, kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerStop(RangeStopParams* given) {
  BEGIN_ON_DEVICE(RangeStopParams, all_passes_submitted, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr) return kInvalidParameter;
  if (!profiler->started || profiler->depth > 0) return kInvalidOperation;
  profiler->started = false;
  if (profiler->graph_in_auto) return kUnknownError;
  const bool at_once = profiler->replay_mode == kKernelReplay;
  profiler->pass = at_once ? profiler->passes.size() : profiler->pass + 1;
  profiler->all_passes = profiler->pass >= profiler->passes.size();
  if (profiler->all_passes) profiler->pass = 0;
  given->pass = profiler->pass;
  given->target_nesting_level = 1;
  return given->all_passes_submitted = profiler->all_passes ? 1 : 0, kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerPushRange(RangePushParams* given) {
  BEGIN_ON_DEVICE(RangePushParams, name, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr || given->name == nullptr) return kInvalidParameter;
  if (!profiler->started || profiler->range_mode != kUserRange) return kInvalidOperation;
  wait_for_device();
  note(k_ranges_pushed);
  if (profiler->depth++ >= profiler->nesting_levels) return kSuccess;
  if (Range* range = range_named(profiler, given->name)) profiler->open.push_back(range);
  return kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerPopRange(RangeParams* given) {
  BEGIN_ON_DEVICE(RangeParams, object, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr) return kInvalidParameter;
  if (!profiler->started || profiler->depth == 0) return kInvalidOperation;
  wait_for_device();
  note(k_ranges_popped);
  if (--profiler->depth < profiler->open.size()) profiler->open.pop_back();
  return kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerDecodeData(RangeDecodeParams* given) {
  BEGIN_ON_DEVICE(RangeDecodeParams, dropped, context_of(given->object));
  RangeProfiler* profiler = find(given->object);
  if (profiler == nullptr) return kInvalidParameter;
  if (!profiler->configured || profiler->started) return kInvalidOperation;
  profiler->data->rows = 0;
  given->dropped = profiler->dropped;
  for (const Range& range : profiler->passes.empty() ? std::vector<Range>{} : profiler->passes[0]) {
    ImageRow* row = add_row(profiler->data, values_of(*profiler, range.name));
    if (row == nullptr) {
      ++given->dropped;
    } else {
      std::strncpy(row->name, range.name.c_str(), kRangeNameBytes - 1);
    }
  }
  return kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerGetCounterDataInfo(RangeDataInfoParams* given) {
  BEGIN_HOST(RangeDataInfoParams, ranges);
  const Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr) return kInvalidParameter;
  return given->ranges = data->rows, kSuccess;
}

FAKE_EXPORT int cuptiRangeProfilerCounterDataGetRangeInfo(RangeInfoParams* given) {
  BEGIN_HOST(RangeInfoParams, name);
  Image* data = data_of(given->image, given->image_bytes);
  if (data == nullptr || given->range >= data->rows) return kInvalidParameter;
  return given->name = strdup(row_of(data, given->range)->name), kSuccess;
}

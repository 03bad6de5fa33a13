#include "collect/cuda/recording.h"

#include <stdio.h>

#include "collect/clock.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/kernel_choice.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/facts.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/gpu_thread.h"
#include "collect/cuda/graphs.h"
#include "collect/cuda/kernel_sampling.h"
#include "collect/cuda/session.h"
#include "collect/futex.h"
#include "collect/switches.h"

namespace llmprof::collect {
namespace {

using cupti::Call;

struct Recording {
  std::atomic<std::uint32_t> wanted{0};
  std::atomic<std::uint32_t> switching{0};
  std::atomic<std::uint32_t> applied{0};
  bool without_kernels = false;  // nor graphs
  bool calls_enabled = false;    // of who switches
};
constinit Recording recording;
constinit KernelSampling sampled_kernels;

// Only where everything is recorded, always: an estimate needs what was recorded before. Counters of kernels choose
// among recorded ones.
bool may_sample_kernels() {
  const Settings& settings = g.settings;
  const bool everything = settings.window_range[0] == '\0' && settings.window_from_ns == 0 &&
                          settings.window_until_ns == ~0ull && settings.first_step == ~0ull &&
                          settings.end_step == ~0ull && settings.keep_ms == 0;
  return settings.kernels == kKernelsSampled && everything && settings.profiler_api == 0 && settings.control == 0 &&
         settings.counters == 0 && !recording.without_kernels;
}

bool wants(std::uint64_t bit) { return (g.settings.gpu & bit) != 0; }

void switch_kind(std::uint32_t kind, bool on) {
  if (recording.without_kernels && (kind == cupti::kConcurrentKernel || kind == cupti::kGraphTrace)) return;
  if (on) succeeded(Call::kActivityEnable, gpu.library.activity_enable(kind));
  if (!on) succeeded(Call::kActivityDisable, gpu.library.activity_disable(kind));
}

// Ids that the library does not know yet are refused; the launch of a kernel is known to all.
void enable_call(std::uint32_t id) {
  const std::uint32_t result = gpu.library.enable_callback(1, gpu.subscriber, cupti::kDriverApi, id);
  if (id == cupti::kLaunchKernel) succeeded(Call::kEnableCallback, result);
}

// Once, and never off again. Switched off while a thread is inside such a call, CUPTI (13.0) now and then takes all
// later calls of that thread for calls inside of it: their begins are not told, and they have its correlation. A
// callback that returns at once cannot be told from none.
void enable_calls() {
  if (recording.calls_enabled) return;
  recording.calls_enabled = true;
  for (const std::uint32_t id : cupti::kKernelLaunches) enable_call(id);
  for (const std::uint32_t id : cupti::kGraphLaunches) enable_call(id);
  for (const std::uint32_t id : cupti::kCopies) enable_call(id);
  for (const std::uint32_t id : cupti::kMemsets) enable_call(id);
  if (wants(kGpuWaits)) {
    for (const cupti::OtherCall& call : cupti::kWaitCalls) enable_call(call.id);
  }
  if (wants(kGpuApi) && gpu.library.enable_domain != nullptr) {
    succeeded(Call::kEnableDomain, gpu.library.enable_domain(1, gpu.subscriber, cupti::kRuntimeApi));
  }
}

void switch_all(bool on) {
  for (const std::uint32_t kind : kDeviceWork) {
    const bool noted_only = kind == cupti::kConcurrentKernel && on && notes_kernels();
    if (!noted_only && !graphs_need_kinds()) switch_kind(kind, on);
  }
  if (wants(kGpuOverhead)) switch_kind(cupti::kOverhead, on);
  if (on) enable_calls();
}

void enable_for_counters() {
  for (const std::uint32_t id : {cupti::kContextDestroyStarting, cupti::kModuleLoaded}) {
    if (id == cupti::kModuleLoaded && !counters::is_armed(counters::kStalls)) continue;
    succeeded(Call::kEnableCallback, gpu.library.enable_callback(1, gpu.subscriber, cupti::kResource, id));
  }
}

void enable_always() {
  constexpr std::uint32_t kResources[] = {cupti::kContextCreated,          cupti::kGraphNodeCreateStarting,
                                          cupti::kGraphNodeCreated,        cupti::kGraphNodeCloned,
                                          cupti::kGraphExecCreateStarting, cupti::kGraphExecCreated};
  for (const std::uint32_t id : kResources) {
    succeeded(Call::kEnableCallback, gpu.library.enable_callback(1, gpu.subscriber, cupti::kResource, id));
  }
  for (const cupti::NodeCall& call : cupti::kNodeCalls) enable_call(call.id);
  for (const cupti::NodeCall& call : cupti::kSetKernelCalls) enable_call(call.id);
  for (const std::uint32_t id : cupti::kUpdates) enable_call(id);
  if (g.settings.graphs == kGraphsSampled) {
    for (const std::uint32_t id : cupti::kGraphLaunches) enable_call(id);
    for (const std::uint32_t id : cupti::kGraphUploads) enable_call(id);
    for (const std::uint32_t id : cupti::kInstantiations) enable_call(id);
    for (const std::uint32_t id : {cupti::kStreamDestroyStarting, cupti::kContextDestroyStarting}) {
      succeeded(Call::kEnableCallback, gpu.library.enable_callback(1, gpu.subscriber, cupti::kResource, id));
    }
  }
  if (counters::is_armed(counters::kAnything)) enable_for_counters();
  if (may_sample_kernels()) {  // it ends with the first graph
    for (const std::uint32_t id : cupti::kInstantiations) enable_call(id);
  }
  if (counters::is_armed(counters::kAnything) || g.settings.graphs == kGraphsSampled || may_sample_kernels()) {
    for (const cupti::OtherCall& call : cupti::kCaptureCalls) enable_call(call.id);
  }
  gpu.library.enable_callback(1, gpu.subscriber, cupti::kState, cupti::kFatalError);  // not in older versions
  if (g.settings.profiler_api != 0) {
    for (const cupti::OtherCall& call : cupti::kProfilerCalls) enable_call(call.id);
  }
  if (!wants(kGpuMemory)) return;
  for (const cupti::MemoryCall& call : cupti::kMemoryCalls) enable_call(call.id);  // always: sums need all of them
}

void fulfil() {
  while (recording.wanted.load(std::memory_order_acquire) != recording.applied.load(std::memory_order_acquire)) {
    if (recording.switching.exchange(1, std::memory_order_acq_rel) != 0) return;  // who switches looks again
    const std::uint32_t on = recording.wanted.load(std::memory_order_acquire);
    const bool held = hold_graphs();
    if (held && on != recording.applied.load(std::memory_order_relaxed)) {
      switch_all(on != 0);
      recording.applied.store(on, std::memory_order_release);
    }
    if (held) release_graphs();
    recording.switching.store(0, std::memory_order_release);
    if (held) continue;
    if (!tl.is_ours) wake_gpu_thread();  // which tries again
    return;
  }
}

}  // namespace

// Graphs are recorded as a whole from the very beginning: switched on later, CUPTI crashes the program. So this kind
// stays on when nothing is recorded; the selection sorts out what it brings then.
void start_recording(bool kernels) {
  recording.without_kernels = !kernels;
  if (!kernels) g.settings.graphs = kGraphsLaunch;  // none is sampled
  if (g.settings.graphs != kGraphsAll) switch_kind(cupti::kGraphTrace, true);
  enable_always();
  if (g.settings.profiler_api != 0 || g.settings.control != 0) return;  // they say when
  recording.wanted.store(1, std::memory_order_relaxed);
  if (g.settings.kernels_after_ms == 0 && may_sample_kernels()) sampled_kernels.begin(now_ns(), 0);
  switch_all(true);
  recording.applied.store(1, std::memory_order_release);
}

void apply_recording(bool on) {
  recording.wanted.store(on ? 1 : 0, std::memory_order_release);
  if (gpu_is_ours()) fulfil();
}

bool fulfil_wish() {
  fulfil();
  return recording.wanted.load(std::memory_order_acquire) == recording.applied.load(std::memory_order_acquire);
}
bool is_recording() { return recording.applied.load(std::memory_order_relaxed) != 0; }
bool records_kernels() { return is_recording() && !recording.without_kernels; }

void resume_recording() {
  if (!register_buffers() || recording.applied.load(std::memory_order_acquire) == 0) return;
  for (const std::uint32_t kind : kDeviceWork) switch_kind(kind, true);
}

// ---- kernels -----------------------------------------------------------------------------------------------------

namespace {

void switch_kernels(KernelSampling::Action action) {
  switch_kind(cupti::kConcurrentKernel, action == KernelSampling::Action::kRecord);
  if (sampled_kernels.switched(action)) switch_kind(cupti::kConcurrentKernel, true);
}

}  // namespace

std::uint16_t kernel_launch_begins(const cupti::CallbackData& data, std::uint64_t now_ns) {
  if (!sampled_kernels.is_in_force()) return 0;
  const counters::LaunchShape shape = counters::shape_of(data.function, data.arguments);
  const KernelSampling::Decision decision =
      sampled_kernels.launch_begins(tl.launched.next(data.symbol, {shape.grid, shape.block}), now_ns);
  if (decision.action != KernelSampling::Action::kNone) switch_kernels(decision.action);
  return decision.number;
}

bool notes_kernels() { return sampled_kernels.is_in_force() && !sampled_kernels.is_recording(); }

// Below that rate what recording costs is lost in the time between launches.
void look_at_kernels(std::uint32_t launches, std::uint64_t period_ms) {
  constexpr std::uint64_t kManyPerSecond = 10000;
  static constinit std::uint64_t busy_ms = 0;  // our thread only
  if (sampled_kernels.is_in_force() || sampled_kernels.why_not() != nullptr || !may_sample_kernels()) return;
  busy_ms = launches * 1000 >= kManyPerSecond * period_ms ? busy_ms + period_ms : 0;
  if (busy_ms >= g.settings.kernels_after_ms) sampled_kernels.begin(now_ns());
}

void record_all_kernels(const char* why) {
  if (sampled_kernels.give_up(why)) switch_kind(cupti::kConcurrentKernel, true);
}

void finish_kernels() {
  if (sampled_kernels.why_not() == nullptr || !may_sample_kernels()) return;
  char text[160];
  snprintf(text, sizeof(text), "kernels outside of graphs were all recorded: %s.", sampled_kernels.why_not());
  note("kernels", text);
}

// -------------------------------------------------------------------------------------------------------------------

void set_gpu_recording(bool on) {
  recording.wanted.store(on ? 1 : 0, std::memory_order_release);
  wake_gpu_thread();
}

void profiler_called(bool started) {
  if (g.settings.profiler_api == 0) return;
  note_switch(started);
  apply_recording(started);
}

}  // namespace llmprof::collect

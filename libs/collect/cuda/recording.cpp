#include "collect/cuda/gpu.h"

#include <initializer_list>

#include "collect/cuda/counters/choice.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/graphs.h"
#include "collect/cuda/kernel_sampling.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/writer/switches.h"

namespace llmprof::collect {
namespace {

using cupti::Call;
using cupti::CallClass;

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

void enable_calls_of(std::initializer_list<CallClass> classes) {
  for (std::uint32_t id = 0; id < cupti::kDriverCallIds; ++id) {
    for (const CallClass what : classes) {
      if (cupti::kDriverCalls[id].what == what) enable_call(id);
    }
  }
}

void enable_resources(std::initializer_list<cupti::ResourceId> ids) {
  for (const std::uint32_t id : ids)
    succeeded(Call::kEnableCallback, gpu.library.enable_callback(1, gpu.subscriber, cupti::kResource, id));
}

// Once, and never off again. Switched off while a thread is inside such a call, CUPTI (13.0) now and then takes all
// later calls of that thread for calls inside of it: their begins are not told, and they have its correlation. A
// callback that returns at once cannot be told from none.
void enable_calls() {
  if (recording.calls_enabled) return;
  recording.calls_enabled = true;
  enable_calls_of({CallClass::kLaunch, CallClass::kGraphLaunch});
  if (wants(kGpuWaits)) enable_calls_of({CallClass::kWaitForAll, CallClass::kWaitForStream, CallClass::kWaitForEvent});
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

void enable_always() {
  const bool samples_graphs = g.settings.graphs == kGraphsSampled, counts = counters::is_armed(counters::kAnything);
  enable_resources({cupti::kContextCreated, cupti::kGraphNodeCreateStarting, cupti::kGraphNodeCreated,
                    cupti::kGraphNodeCloned, cupti::kGraphExecCreateStarting, cupti::kGraphExecCreated});
  enable_calls_of({CallClass::kAddNode, CallClass::kSetKernel, CallClass::kUpdate});
  if (samples_graphs) {
    enable_calls_of({CallClass::kGraphLaunch, CallClass::kUpload});
    enable_resources({cupti::kStreamDestroyStarting});
  }
  if (samples_graphs || counts) enable_resources({cupti::kContextDestroyStarting});
  if (counters::is_armed(counters::kStalls)) enable_resources({cupti::kModuleLoaded});
  if (samples_graphs || may_sample_kernels()) enable_calls_of({CallClass::kInstantiate});  // sampling ends with a graph
  if (samples_graphs || may_sample_kernels() || counts)
    enable_calls_of({CallClass::kCaptureBegin, CallClass::kCaptureEnd});
  gpu.library.enable_callback(1, gpu.subscriber, cupti::kState, cupti::kFatalError);  // not in older versions
  if (g.settings.profiler_api != 0) enable_calls_of({CallClass::kProfilerStart, CallClass::kProfilerStop});
  if (wants(kGpuMemory))  // always: sums need all of them
    enable_calls_of(
        {CallClass::kAllocate, CallClass::kAllocatePitch, CallClass::kAdopt, CallClass::kFree, CallClass::kRelease});
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
  note("kernels", "kernels outside of graphs were all recorded: %s.", sampled_kernels.why_not());
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

#include "collect/cuda/recording.h"

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/gpu.h"
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
};
constinit Recording recording;

bool wants(std::uint64_t bit) { return (g.settings.gpu & bit) != 0; }

void switch_kind(std::uint32_t kind, bool on) {
  if (recording.without_kernels && (kind == cupti::kConcurrentKernel || kind == cupti::kGraphTrace)) return;
  if (on) succeeded(Call::kActivityEnable, gpu.library.activity_enable(kind));
  if (!on) succeeded(Call::kActivityDisable, gpu.library.activity_disable(kind));
}

// Ids that the library does not know yet are refused; the launch of a kernel is known to all.
void switch_call(std::uint32_t id, bool on) {
  const std::uint32_t result = gpu.library.enable_callback(on ? 1 : 0, gpu.subscriber, cupti::kDriverApi, id);
  if (id == cupti::kLaunchKernel) succeeded(Call::kEnableCallback, result);
}

void switch_launches(bool on) {
  for (const std::uint32_t id : cupti::kKernelLaunches) switch_call(id, on);
  if (g.settings.graphs != kGraphsSampled) {  // else they are always on: which graphs are in flight must be known
    for (const std::uint32_t id : cupti::kGraphLaunches) switch_call(id, on);
  }
  for (const std::uint32_t id : cupti::kCopies) switch_call(id, on);
  for (const std::uint32_t id : cupti::kMemsets) switch_call(id, on);
}

void switch_all(bool on) {
  for (const std::uint32_t kind : kDeviceWork) switch_kind(kind, on);
  if (wants(kGpuOverhead)) switch_kind(cupti::kOverhead, on);
  switch_launches(on);
  if (wants(kGpuWaits)) {
    for (const cupti::OtherCall& call : cupti::kWaitCalls) switch_call(call.id, on);
  }
  if (wants(kGpuApi) && gpu.library.enable_domain != nullptr) {
    succeeded(Call::kEnableDomain, gpu.library.enable_domain(on ? 1 : 0, gpu.subscriber, cupti::kRuntimeApi));
  }
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
  for (const cupti::NodeCall& call : cupti::kNodeCalls) switch_call(call.id, true);
  for (const cupti::NodeCall& call : cupti::kSetKernelCalls) switch_call(call.id, true);
  for (const std::uint32_t id : cupti::kUpdates) switch_call(id, true);
  if (g.settings.graphs == kGraphsSampled) {
    for (const std::uint32_t id : cupti::kGraphLaunches) switch_call(id, true);
    for (const std::uint32_t id : cupti::kGraphUploads) switch_call(id, true);
    for (const std::uint32_t id : cupti::kInstantiations) switch_call(id, true);
    for (const std::uint32_t id : {cupti::kStreamDestroyStarting, cupti::kContextDestroyStarting}) {
      succeeded(Call::kEnableCallback, gpu.library.enable_callback(1, gpu.subscriber, cupti::kResource, id));
    }
  }
  if (counters::is_armed(counters::kAnything)) enable_for_counters();
  if (counters::is_armed(counters::kAnything) || g.settings.graphs == kGraphsSampled) {
    for (const cupti::OtherCall& call : cupti::kCaptureCalls) switch_call(call.id, true);
  }
  gpu.library.enable_callback(1, gpu.subscriber, cupti::kState, cupti::kFatalError);  // not in older versions
  for (const cupti::OtherCall& call : cupti::kProfilerCalls) switch_call(call.id, g.settings.profiler_api != 0);
  if (!wants(kGpuMemory)) return;
  for (const cupti::MemoryCall& call : cupti::kMemoryCalls)
    switch_call(call.id, true);  // always: sums need all of them
}

void fulfil() {
  while (recording.wanted.load(std::memory_order_acquire) != recording.applied.load(std::memory_order_acquire)) {
    if (recording.switching.exchange(1, std::memory_order_acq_rel) != 0) return;  // who switches looks again
    const std::uint32_t on = recording.wanted.load(std::memory_order_acquire);
    if (on != recording.applied.load(std::memory_order_relaxed)) {
      switch_all(on != 0);
      recording.applied.store(on, std::memory_order_release);
    }
    recording.switching.store(0, std::memory_order_release);
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
  switch_all(true);
  recording.applied.store(1, std::memory_order_release);
}

void apply_recording(bool on) {
  recording.wanted.store(on ? 1 : 0, std::memory_order_release);
  if (gpu_is_ours()) fulfil();
}

void fulfil_wish() { fulfil(); }
bool is_recording() { return recording.applied.load(std::memory_order_relaxed) != 0; }
bool records_kernels() { return is_recording() && !recording.without_kernels; }

void resume_recording() {
  if (!register_buffers() || recording.applied.load(std::memory_order_acquire) == 0) return;
  for (const std::uint32_t kind : kDeviceWork) switch_kind(kind, true);
}

void set_gpu_recording(bool on) {
  recording.wanted.store(on ? 1 : 0, std::memory_order_release);
  gpu.wake.store(1, std::memory_order_release);
  futex_wake(gpu.wake);
}

void profiler_called(bool started) {
  if (g.settings.profiler_api == 0) return;
  note_switch(started);
  apply_recording(started);
}

}  // namespace llmprof::collect

#include <string.h>
#include <initializer_list>

#include "collect/cuda/counters/choice.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/graphs.h"
#include "collect/cuda/kernel_sampling.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stacks/launch_stack.h"
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

namespace {

using cupti::CallbackData;
using cupti::CallClass;
using cupti::DriverCall;
using wire::Record;
using wire::RecordKind;

// Kinds are switched only while no graph can be in flight.
constexpr char kGraphs[] = "the program makes CUDA graphs";

std::uint32_t result_of(const CallbackData& data) {
  std::uint32_t result = 0;
  if (data.result != nullptr) memcpy(&result, data.result, sizeof(result));
  return result;
}
bool failed(const CallbackData& data) { return result_of(data) != 0; }

// Arguments of driver calls are a structure of them in order; those we read are all 8 bytes wide.
std::uint64_t argument(const CallbackData& data, std::size_t index) {
  std::uint64_t value = 0;
  if (data.arguments != nullptr) memcpy(&value, static_cast<const char*>(data.arguments) + 8 * index, sizeof(value));
  return value;
}

GraphCall graph_call(const DriverCall& call, const CallbackData& data) {
  const bool own_default = call.id == cupti::kGraphLaunchOwnDefault || call.id == cupti::kGraphUploadOwnDefault;
  return {argument(data, 0), argument(data, 1), data.context, own_default};
}

// A node that is added by hand is made as one of a capture is: inside a call that knows the kernel.
void on_add_node(const DriverCall& call, const CallbackData& data) {
  if (data.site == cupti::kExit) {
    if (tl.launch.inside) tl.launch = {};
    return;
  }
  const char* name = data.symbol != nullptr
                         ? data.symbol
                         : kernel_of_node({reinterpret_cast<const void*>(argument(data, call.parameters)), call.node});
  if (name != nullptr) tl.launch = {name, 0, wire::LaunchOp::kKernel, stack_here(), 0, true};
}

// Programs set arguments before every launch, so this is one of the calls that must be cheap.
void on_set_kernel(const DriverCall& call, const CallbackData& data) {
  if (data.site != cupti::kExit || failed(data)) return;
  const bool of_executable = call.parameters == 2;
  kernel_is_set(of_executable ? argument(data, 0) : 0, argument(data, of_executable ? 1 : 0),
                {reinterpret_cast<const void*>(argument(data, call.parameters)), call.node});
}

void begin_launch(const DriverCall& call, const CallbackData& data, std::uint32_t graph) {
  tl.launch = {data.symbol, graph, call.op, stack_here(), 0, true};
  counters::launch_begins(data, call.op);
  *data.shared = now_ns();
  if (call.op != wire::LaunchOp::kKernel) return;
  tl.launch.number = kernel_launch_begins(data, *data.shared);
  tl.launch.noted = tl.launch.number != 0 && notes_kernels();
}

void record_launch(const DriverCall& call, const CallbackData& data, const CurrentLaunch& launch,
                   std::uint64_t end_ns) {
  record_event([&](Record* record, Thread*) {
    record->kind = RecordKind::kLaunch;
    record->launch = {*data.shared,
                      end_ns,
                      data.correlation,
                      launch.stack,
                      launch.graph,
                      call.op,
                      static_cast<std::uint8_t>(launch.nodes != 0 ? 1 : 0),
                      launch.number};
  });
}

void end_launch(const DriverCall& call, const CallbackData& data) {
  CurrentLaunch launch = tl.launch;
  tl.launch = {};
  if (launch.number != 0 && failed(data)) launch.number = 0;  // no kernel will come of it
  // Its end is not looked at: half the cost. Another thread may have switched in between.
  const bool noted = launch.number != 0 && (launch.noted || notes_kernels());
  const std::uint64_t end_ns = noted ? 0 : now_ns();
  if (launch.nodes == 0)  // two threads at a time may count as one
    gpu.launching.store(gpu.launching.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (launch.nodes == 0 && gpu.suspected.load(std::memory_order_relaxed) != 0)
    gpu.launches_without.fetch_add(1, std::memory_order_relaxed);
  record_launch(call, data, launch, end_ns);
  counters::launch_ended(data, call.op);
}

// What runs while nothing is recorded is known too: kinds are switched only while no graph is in flight. Whether this
// one is recorded is known after they may have been.
void begin_graph_launch(const DriverCall& call, const CallbackData& data) {
  const std::uint32_t graph = graph_launch_begins(graph_call(call, data));
  if (records_graphs()) begin_launch(call, data, graph);
}

void end_graph_launch(const DriverCall& call, const CallbackData& data) {
  graph_launch_ended(graph_call(call, data));
  if (tl.launch.inside) end_launch(call, data);
}

// A capture counts from before the driver begins it until after it has ended it, for better or worse.
void on_capture(const DriverCall& call, const CallbackData& data) {
  constexpr std::uint32_t kInvalidated = 901, kUnjoined = 904;  // it has failed, and is over
  const bool begins = call.what == CallClass::kCaptureBegin;
  if (data.site == cupti::kEnter) {
    if (!begins) return;
    record_all_kernels(kGraphs);
    graphs_capture_begins();
    return counters::capture_begins();
  }
  const std::uint32_t result = result_of(data);
  const bool ended = begins ? result != 0 : result == 0 || result == kInvalidated || result == kUnjoined;
  if (!ended) return;
  counters::capture_ended();
  graphs_capture_ended();
}

void on_memory_call(const DriverCall& call, const CallbackData& data) {
  if (data.site != cupti::kExit || failed(data)) return;
  wire::DeviceMemoryRecord memory{};
  memory.ts_ns = now_ns();
  memory.kind = call.memory;
  memory.op = wire::MemoryOp::kAllocate;
  memory.address = argument(data, 0);
  switch (call.what) {
    case CallClass::kAllocate:
    case CallClass::kAllocatePitch:
      if (memory.address == 0) return;
      memcpy(&memory.address, reinterpret_cast<const void*>(memory.address), sizeof(memory.address));
      memory.bytes = argument(data, 1);
      if (call.what == CallClass::kAllocatePitch && memory.bytes != 0) {
        memcpy(&memory.bytes, reinterpret_cast<const void*>(memory.bytes), sizeof(memory.bytes));
        memory.bytes *= argument(data, 3);
      }
      break;
    case CallClass::kAdopt:
      memory.bytes = argument(data, 1);
      break;
    default:
      if (memory.address == 0) return;  // freeing nothing
      memory.op = wire::MemoryOp::kFree;
      memory.bytes = call.what == CallClass::kRelease ? argument(data, 1) : 0;
  }
  memory.device = static_cast<std::uint16_t>(device_of(data.context));
  memory.stack = stack_here();
  record_event(RecordKind::kDeviceMemory, [&](Record* record, Thread*) { record->device_memory = memory; });
}

void record_api(const CallbackData& data, bool waits) {
  if (data.site == cupti::kEnter) {
    *data.shared = is_recording() ? now_ns() : 0;
    return;
  }
  if (*data.shared == 0) return;
  const std::uint64_t end_ns = now_ns();
  record_event(RecordKind::kApi, [&](Record* record, Thread* thread) {
    record->api.begin_ns = *data.shared;
    record->api.end_ns = end_ns;
    record->api.name = intern_cached(thread, data.function);
    record->api.correlation = data.correlation;
    record->api.waits = waits ? 1 : 0;
  });
}

void on_wait(const CallbackData& data) {
  if (!tl.in_runtime || data.site == cupti::kEnter) record_api(data, true);  // else the runtime's call is recorded
}

bool waits_for_device(const char* function) {
  return function != nullptr && strstr(function, "Synchronize") != nullptr;
}

}  // namespace

std::uint32_t device_of(void* context) {
  std::uint32_t device = 0;
  if (gpu.library.get_device_id == nullptr || gpu.library.get_device_id(context, &device) != cupti::kSuccess) return 0;
  return device;
}

void on_driver_call(std::uint32_t id, const CallbackData& data) {
  if (data.shared == nullptr || tl.measuring) return;
  const DriverCall& call = cupti::kDriverCalls[id];
  const bool enters = data.site == cupti::kEnter;
  switch (call.what) {
    case CallClass::kGraphLaunch:
      return enters ? begin_graph_launch(call, data) : end_graph_launch(call, data);
    case CallClass::kLaunch:
      if (enters && is_recording()) begin_launch(call, data, 0);
      if (!enters && tl.launch.inside) end_launch(call, data);
      return;
    case CallClass::kWaitForAll:
    case CallClass::kWaitForStream:
    case CallClass::kWaitForEvent:
      return on_wait(data);
    case CallClass::kProfilerStart:
    case CallClass::kProfilerStop:
      if (!enters) profiler_called(call.what == CallClass::kProfilerStart);
      return;
    case CallClass::kCaptureBegin:
    case CallClass::kCaptureEnd:
      return on_capture(call, data);
    case CallClass::kAddNode:
      return on_add_node(call, data);
    case CallClass::kSetKernel:
      return on_set_kernel(call, data);
    case CallClass::kUpdate:
      if (!enters && !failed(data)) graph_is_updated(argument(data, 0), argument(data, 1));
      return;
    case CallClass::kUpload:
      return enters ? graph_upload_begins(graph_call(call, data)) : graph_launch_ended(graph_call(call, data));
    case CallClass::kInstantiate:
      if (enters) record_all_kernels(kGraphs);
      if (g.settings.graphs != kGraphsSampled) return;
      return enters ? instantiation_begins() : instantiation_ended();
    case CallClass::kNone:
      return;
    default:
      return on_memory_call(call, data);
  }
}

void on_runtime_call(const CallbackData& data) {
  if (data.shared == nullptr) return;
  tl.in_runtime = data.site == cupti::kEnter;
  record_api(data, waits_for_device(data.function));
}

}  // namespace llmprof::collect

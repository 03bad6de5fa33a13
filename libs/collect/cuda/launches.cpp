#include "collect/cuda/gpu.h"

#include <string.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/graphs.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stacks/launch_stack.h"

namespace llmprof::collect {
namespace {

using cupti::CallbackData;
using cupti::CallClass;
using cupti::DriverCall;
using wire::Record;
using wire::RecordKind;

// Kinds are switched only while no graph can be in flight.
constexpr char kGraphs[] = "the program makes CUDA graphs";

wire::DefinitionId stack_if_wanted() {
  if (g.settings.stacks == 0 || enter() == nullptr) return 0;
  const wire::DefinitionId stack = launch_stack();
  leave();
  return stack;
}

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
  if (name != nullptr) tl.launch = {name, 0, wire::LaunchOp::kKernel, stack_if_wanted(), 0, true};
}

// Programs set arguments before every launch, so this is one of the calls that must be cheap.
void on_set_kernel(const DriverCall& call, const CallbackData& data) {
  if (data.site != cupti::kExit || failed(data)) return;
  const bool of_executable = call.parameters == 2;
  kernel_is_set(of_executable ? argument(data, 0) : 0, argument(data, of_executable ? 1 : 0),
                {reinterpret_cast<const void*>(argument(data, call.parameters)), call.node});
}

void begin_launch(const DriverCall& call, const CallbackData& data, std::uint32_t graph) {
  tl.launch = {data.symbol, graph, call.op, stack_if_wanted(), 0, true};
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

std::uint32_t device_of(void* context) {
  std::uint32_t device = 0;
  if (gpu.library.get_device_id == nullptr || gpu.library.get_device_id(context, &device) != cupti::kSuccess) return 0;
  return device;
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
  memory.stack = stack_if_wanted();
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

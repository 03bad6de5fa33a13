#include "collect/cuda/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/graphs.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect {

constinit Gpu gpu;

namespace {

using cupti::Call;
using wire::LossKind;

constexpr std::uint64_t kExitFlushLimitMs = 1500;

void flush_at_exit() { finish_gpu(kExitFlushLimitMs); }

// ---- what CUPTI calls ---------------------------------------------------------------------------------------------

// Registered as late as can be, so that it runs before what the driver and CUPTI registered for the exit.
void on_context_created() {
  gpu.contexts.fetch_add(1, std::memory_order_relaxed);
  if (gpu.exit_handler.exchange(1, std::memory_order_relaxed) == 0) atexit(flush_at_exit);
  wake_gpu_thread();
}

void on_resource(std::uint32_t id, const cupti::ResourceData& data) {
  switch (id) {
    case cupti::kContextCreated:
      on_context_created();
      return counters::context_created(data.context);
    case cupti::kStreamDestroyStarting:
      return stream_is_destroyed(data.handle);
    case cupti::kContextDestroyStarting:
      graphs_context_ends(data.context);
      return counters::context_ends(data.context);
    case cupti::kModuleLoaded:
      if (data.descriptor != nullptr) counters::module_loaded(*static_cast<const pc::Module*>(data.descriptor));
      return;
    default:
      break;
  }
  if (data.descriptor != nullptr) on_graph_resource(id, *static_cast<const cupti::GraphData*>(data.descriptor));
}

void on_callback(void*, std::uint32_t domain, std::uint32_t id, const void* data) {
  if (data == nullptr) return;
  const KeepErrno keep;
  switch (domain) {
    case cupti::kDriverApi:
      return on_driver_call(id, *static_cast<const cupti::CallbackData*>(data));
    case cupti::kRuntimeApi:
      return on_runtime_call(*static_cast<const cupti::CallbackData*>(data));
    case cupti::kResource:
      return on_resource(id, *static_cast<const cupti::ResourceData*>(data));
    case cupti::kState:
      succeeded(Call::kFatal, static_cast<const cupti::StateData*>(data)->result);
      return;
    default:
      return;
  }
}

void on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *most_records = 0;
  gpu.requested.fetch_add(1, std::memory_order_relaxed);
  *buffer = gpu.pool.lend();
  *size = *buffer != nullptr ? gpu.pool.buffer_bytes() : 0;
  if (*buffer != nullptr) return;
  count_loss(LossKind::kCuptiRefused);
  if (gpu.library.version >= cupti::kMayRefuseBuffer) return;
  *buffer = gpu.pool.scrap();  // versions before crash without one
  *size = cupti::kSmallestBuffer;
}

void on_buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  gpu.completed.fetch_add(1, std::memory_order_relaxed);
  gpu.completed_ns.store(now_ns(), std::memory_order_relaxed);
  const cupti::Returned returned = gpu.pool.give_back(buffer, valid);
  if (returned == cupti::Returned::kUnknown) count_loss(LossKind::kUnknownActivity);
  if (gpu.pool.waiting() == gpu.pool.buffers() / 4 + 1) wake_writer();
}

std::uint64_t our_clock() { return now_ns(); }

// ---- start --------------------------------------------------------------------------------------------------------

void state_holder(const char* holder) {
  note("cupti", "another profiler holds CUPTI: %s. GPU activity is not recorded.",
       *holder != '\0' ? holder : "it does not say its name");
  const wire::StringId who = intern(*holder != '\0' ? holder : "unknown");
  count_loss_about(LossKind::kCuptiHeld, 1, who);
  if (g.settings.counters != 0) count_loss_about(LossKind::kCountersHeld, 1, who);
}

bool subscribe() {
  char holder[cupti::kHolderNameBytes] = {};
  std::uint32_t result;
  if (gpu.library.subscribe_named != nullptr) {
    cupti::SubscriberParams params = {sizeof(params), "llmprof", holder, sizeof(holder)};
    result = gpu.library.subscribe_named(&gpu.subscriber, on_callback, nullptr, &params);
  } else {
    result = gpu.library.subscribe(&gpu.subscriber, on_callback, nullptr);
  }
  holder[sizeof(holder) - 1] = '\0';
  if (result == cupti::kHeldByAnother) {
    state_holder(holder);
    return false;
  }
  return succeeded(Call::kSubscribe, result);
}

void set_clock_and_buffers() {
  gpu.wall_clock = gpu.library.register_timestamp == nullptr ||
                   !succeeded(Call::kRegisterTimestamp, gpu.library.register_timestamp(our_clock));
  if (gpu.wall_clock)
    note("cupti", "CUPTI was not given our clock: times of the device were converted from wall time.");
  if (gpu.library.set_attribute != nullptr) {
    std::uint8_t zeroed = 1;
    std::size_t bytes = sizeof(zeroed);
    succeeded(Call::kSetAttribute, gpu.library.set_attribute(cupti::kZeroedBuffers, &bytes, &zeroed));
  }
}

bool find_and_subscribe() {
  char tried[cupti::kTriedBytes];
  if (!cupti::find_library(&gpu.library, tried)) {
    count_loss_about(LossKind::kCuptiMissing, 1, intern(tried));
    if (g.settings.counters != 0) counters::skip(tried);
    return false;
  }
  if (!gpu.pool.reserve(g.settings.gpu_pool_bytes)) {
    succeeded(Call::kBufferPool, static_cast<std::uint32_t>(errno));
    return false;
  }
  return subscribe();
}

}  // namespace

bool register_buffers() {
  return succeeded(Call::kRegisterCallbacks, gpu.library.register_callbacks(on_buffer_requested, on_buffer_completed));
}

void start_gpu() {
  const KeepErrno keep;
  if ((g.settings.gpu & kGpuKernels) == 0) return count_loss(LossKind::kCudaNotTraced);
  if (!find_and_subscribe()) return;
  set_clock_and_buffers();
  if (!register_buffers()) return;
  gpu.completed_ns.store(now_ns(), std::memory_order_relaxed);
  gpu.pid.store(getpid(), std::memory_order_release);
  const bool records_kernels = counters::start();  // it may have a say in how graphs are recorded
  start_graphs();
  start_recording(records_kernels);
  if (!start_gpu_thread()) note("cupti", "no thread could be started: GPU activity comes late, and may be incomplete.");
}

bool gpu_is_ours() {
  const std::int32_t pid = gpu.pid.load(std::memory_order_acquire);
  return pid != 0 && pid == getpid();
}

bool succeeded(Call call, std::uint32_t result) {
  if (result == cupti::kSuccess) return true;
  count_loss_about(LossKind::kCuptiError, 1, std::uint64_t{result} | static_cast<std::uint64_t>(call) << 32);
  static constinit std::atomic<std::uint32_t> said[32];  // the last result of each call: a new one is worth a note
  if (said[static_cast<std::uint32_t>(call) % 32].exchange(result, std::memory_order_relaxed) == result) return false;
  note("cupti", "%s answered %u.", name_of(call), result);
  return false;
}

void finish_gpu(std::uint64_t limit_ms) {
  const KeepErrno keep;
  if (!gpu_is_ours() || gpu.finish.exchange(1, std::memory_order_acq_rel) != 0) return;
  wake_gpu_thread();
  const std::uint64_t begin_ns = now_ns();
  const std::uint64_t give_up_ns = begin_ns + limit_ms * 1000000;
  while (gpu.finished.load(std::memory_order_acquire) == 0 && now_ns() < give_up_ns) futex_wait(gpu.finished, 0, 50);
  g.exit_waited_ns.store(now_ns() - begin_ns, std::memory_order_relaxed);
  if (gpu.finished.load(std::memory_order_acquire) == 0)
    state_gap(gpu.completed_ns.load(std::memory_order_relaxed), now_ns(), "CUPTI took too long to return its buffers");
}

}  // namespace llmprof::collect

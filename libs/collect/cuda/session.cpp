#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver.h"
#include "collect/cuda/driver_calls.h"
#include "collect/cuda/gpu.h"
#include "collect/cuda/graphs.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "wire/clock.h"

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

namespace {

using cupti::Call;
using wire::LossKind;

constexpr std::uint64_t kPeriodMs = 250;
constexpr std::size_t kStackBytes = 1u << 20;  // CUPTI's own frames are on it
constexpr std::uint64_t kLateLimitMs = 100;
constexpr std::uint64_t kRetryMs = 2;          // what could not be switched at once
constexpr std::uint64_t kPatienceMs = 50;      // with a sample of graphs: one that is cut short leaves its graph slower
constexpr std::uint32_t kPeriodsPerLook = 20;  // for another copy of CUPTI
constexpr std::uint32_t kFlushesAfter = 4;     // periods without a launch in which work may still end

// Who is told when to record has no rests.
wire::Rests planned_rests() {
  const Settings& settings = g.settings;
  if (settings.profiler_api != 0 || settings.control != 0 || settings.counters != 0) return {};
  return {settings.rest_from_ns, settings.rest_every_ms * 1000000, settings.rest_ms * 1000000};
}

class GpuThread {
 public:
  void run() {
    while (gpu.finish.load(std::memory_order_acquire) == 0) {
      if (gpu.wake.exchange(0, std::memory_order_acquire) == 0) futex_wait(gpu.wake, 0, wait_ms());
      const std::uint64_t before_ns = now_ns();
      wish_for_rests();
      fulfil();
      note_rests(before_ns);
      look_for_devices();
      if (now_ns() >= next_ns_ && gpu.finish.load(std::memory_order_acquire) == 0) period();
    }
    if (rest_begin_ns_ != 0) state_gap(rest_begin_ns_, now_ns(), "rest");
    look_for_devices();  // a short life
    counters::finish();
    finish_graphs();
    finish_kernels();
    flush(cupti::kFlushForced);
    await_buffers();
    // Everything that is ours has come.
    if (look_at_buffers(false) == BufferWatch::Verdict::kTaken || buffer_watch_.suspects()) state_lost_buffers();
    counters::finish_last();
    gpu.finished.store(1, std::memory_order_release);
    futex_wake(gpu.finished);
  }

 private:
  void look_for_devices() {
    if (devices_stated_ || gpu.contexts.load(std::memory_order_relaxed) == 0) return;
    devices_stated_ = true;
    state_devices();
  }

  std::uint64_t wait_ms() const {
    const std::uint64_t now = now_ns();
    if (unfulfilled_since_ns_ != 0) return kRetryMs;
    const std::uint64_t left_ms = (rests_.next_change(now) - now) / 1000000 + 1;
    return left_ms < kPeriodMs ? left_ms : kPeriodMs;
  }

  // So that what recording costs shows. Records that are under way are of what was launched before.
  void wish_for_rests() {
    if (!rests_.any() || !gpu_is_ours() || rests_.at(now_ns()) == wants_rest_) return;
    wants_rest_ = !wants_rest_;
    apply_recording(!wants_rest_);
  }

  // What is recorded of graphs is switched by those that launch them, and other kinds only when it is as it was. Where
  // no graph is launched any more, we do it.
  void fulfil() {
    const std::uint64_t now = now_ns();
    if (fulfil_wish()) {
      unfulfilled_since_ns_ = 0;
    } else if (unfulfilled_since_ns_ == 0) {
      unfulfilled_since_ns_ = now;
    } else if (now - unfulfilled_since_ns_ > kPatienceMs * 1000000) {
      close_graphs();
    }
  }

  void note_rests(std::uint64_t before_ns) {
    if (wants_rest_ && rest_begin_ns_ == 0 && !is_recording()) {
      rest_begin_ns_ = before_ns;
    } else if (!wants_rest_ && rest_begin_ns_ != 0 && is_recording()) {
      state_gap(rest_begin_ns_, now_ns(), "rest");
      rest_begin_ns_ = 0;
    }
  }

  // Everything should be here now. What is not is missing for good.
  static void await_buffers() {
    if (!wait_until(
            kLateLimitMs, [] { return gpu.pool.lent() == 0; }, 2))
      state_gap(gpu.completed_ns.load(std::memory_order_relaxed), now_ns(), "CUPTI kept buffers");
  }

  void period() {
    next_ns_ = now_ns() + kPeriodMs * 1000000;
    const std::uint64_t begin_ns = now_ns();
    const std::uint32_t launches = gpu.launching.exchange(0, std::memory_order_relaxed);
    const bool launched = launches != 0;
    if (last_ns_ != 0) look_at_kernels(launches, (begin_ns - last_ns_) / 1000000 + 1);
    last_ns_ = begin_ns;
    quiet_ = launched ? 0 : quiet_ + 1;
    if (quiet_ <= kFlushesAfter || (gpu.pool.lent() != 0 && quiet_ % kFlushesAfter == 0)) flush(0);
    watch_buffers(launched);
    counters::look(quiet_ >= kFlushesAfter);
    if (++periods_ % kPeriodsPerLook == 1 && !second_copy_) look_for_second_copy();
  }

  // It has a clock and buffers of its own: both may slow each other, and neither sees what the other does.
  void look_for_second_copy() {
    char other[512];
    if (cupti::count_copies(gpu.library, other) < 2) return;
    second_copy_ = true;
    note("cupti", "the program loaded a second copy of CUPTI: %s.", other);
  }

  // Dropped records are asked for when no callback of CUPTI is under way: it would wait for itself.
  void flush(std::uint32_t flag) {
    if (gpu.contexts.load(std::memory_order_relaxed) == 0) return;
    succeeded(Call::kFlushAll, gpu.library.flush_all(flag));
    if (gpu.library.get_dropped != nullptr) {
      std::size_t dropped = 0;
      if (succeeded(Call::kGetDropped, gpu.library.get_dropped(nullptr, 0, &dropped)) && dropped != 0)
        count_loss(LossKind::kCuptiDropped, dropped);
    }
    if (gpu.pool.waiting() != 0) wake_writer();
  }

  BufferWatch::Verdict look_at_buffers(bool launched) {
    return buffer_watch_.look({launched && records_kernels() && !notes_kernels(),
                               gpu.requested.load(std::memory_order_relaxed),
                               gpu.completed.load(std::memory_order_relaxed), now_ns()});
  }

  void watch_buffers(bool launched) {
    switch (look_at_buffers(launched)) {
      case BufferWatch::Verdict::kNone:
        return;
      case BufferWatch::Verdict::kSuspected:
        gpu.launches_without.store(0, std::memory_order_relaxed);
        gpu.suspected.store(1, std::memory_order_relaxed);
        return;
      case BufferWatch::Verdict::kCleared:
        gpu.suspected.store(0, std::memory_order_relaxed);
        return;
      case BufferWatch::Verdict::kTaken:
        state_lost_buffers();
        resume_recording();
        return;
    }
  }

  void state_lost_buffers() {
    gpu.suspected.store(0, std::memory_order_relaxed);
    count_loss(LossKind::kBuffersTaken, gpu.launches_without.load(std::memory_order_relaxed) + 1);
    state_gap(buffer_watch_.since_ns(), now_ns(), "another client had CUPTI's buffers");
    note("cupti", "another client took CUPTI's buffers for a time: GPU activity of that time is missing.");
  }

  std::uint64_t next_ns_ = 0, last_ns_ = 0;
  std::uint32_t quiet_ = ~0u - kFlushesAfter;
  std::uint32_t periods_ = 0;
  bool devices_stated_ = false;
  bool second_copy_ = false;
  BufferWatch buffer_watch_;
  bool wants_rest_ = false;
  std::uint64_t rest_begin_ns_ = 0;         // 0: it does not rest
  std::uint64_t unfulfilled_since_ns_ = 0;  // 0: what is recorded is what is wanted
  const wire::Rests rests_ = planned_rests();
};

void* gpu_main(void*) {
  name_own_thread("llmprof-gpu");
  tl.is_ours = true;
  GpuThread().run();
  return nullptr;
}

}  // namespace

void wake_gpu_thread() {
  gpu.wake.store(1, std::memory_order_release);
  futex_wake(gpu.wake);
}

bool start_gpu_thread() { return start_own_thread(gpu_main, kStackBytes); }

}  // namespace llmprof::collect

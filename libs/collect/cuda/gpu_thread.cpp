#include "collect/cuda/gpu.h"

#include <stdio.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/driver.h"
#include "collect/cuda/graphs.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "wire/clock.h"

namespace llmprof::collect {
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

#include "collect/cuda/counters/windows.h"

#include <stdio.h>
#include <string.h>

#include "collect/cuda/counters/choice.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/session.h"
#include "collect/cuda/gpu.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {
namespace {

using cupti::CallbackData;
using wire::LossKind;

constexpr std::uint64_t kCreditNs = 200000000;
constexpr std::uint64_t kFirstCostNs = 40000000;  // until one was measured
constexpr std::uint32_t kMostRanges = 16;         // found by more than one pass, or launched by other threads meanwhile
constexpr std::uint32_t kMostFailures = 3;        // of stop in a row: a graph launch of another thread breaks a window
constexpr std::uint64_t kPatienceMs = 200;        // for a launch of another thread that is being measured
constexpr std::uint64_t kWindowLimitMs = 5000;    // for somebody in a profiler

// The launch that is being measured.
struct OpenWindow {
  std::size_t number;  // of its signature
  std::uint64_t begin_ns;
  std::uint64_t cost_ns;
};

struct Windows {
  Plan plan{};
  KernelVerdicts verdicts{};
  ProfilerLock lock{};
  // Of the holder of the lock.
  Session session{};
  std::atomic<void*> context{nullptr};  // of the session; read by who destroys one
  std::uint16_t device = 0;
  KernelChoice choice{};
  Budget budget{};
  OpenWindow window{};
  std::uint64_t cost_ns = kFirstCostNs;  // expected of a window
  bool is_cost_known = false;
  // CUPTI sets up much in its first start, stop and reading: the first measurement is a part of the set-up, which the
  // budget does not have to pay for. It would be spent before a program of a few seconds was measured at all.
  bool is_set_up = false;
  std::uint64_t set_up_ns = 0;
  bool is_refused = false;    // the next pass of the measurement under way, by the budget
  std::uint32_t windows = 0;  // made, with those of the set-up
  std::uint32_t measurement = 0;
  std::uint32_t passes_made = 0;  // of the measurement
  bool is_used = false;           // the session: by a measurement that is over
  std::uint32_t failures = 0;
  double values[kMostRanges][List::kMost]{};
  double merged[List::kMost]{};
};
constinit Windows w;

void end_for_good() {
  disarm(kKernels);
  w.lock.retire();
}

// ---- into the log -------------------------------------------------------------------------------------------------

void put_window(Thread* thread, const CallbackData& data, std::uint64_t end_ns) {
  wire::Record* record = reserve(thread, wire::RecordKind::kCounterWindow);
  if (record == nullptr) return;
  const auto narrow = [](std::uint32_t number) { return static_cast<std::uint8_t>(number < 255 ? number : 255); };
  record->counter_window = {.begin_ns = w.window.begin_ns,
                            .end_ns = end_ns,
                            .cost_ns = w.window.cost_ns,
                            .measurement = w.measurement,
                            .correlation = data.correlation,
                            .name = intern_cached(thread, data.symbol),
                            .device = w.device,
                            .scope = wire::CounterScope::kKernel,
                            .pass = narrow(w.passes_made),
                            .passes = narrow(w.plan.replay ? 1 : w.session.passes())};
  commit(thread);
}

void put_values(Thread* thread, std::uint64_t now) {
  for (std::size_t i = 0; i < w.session.metrics(); ++i) {
    if (__builtin_isnan(w.merged[i])) continue;
    const wire::StringId metric = intern(w.session.metric(i));
    wire::Record* record = reserve(thread, wire::RecordKind::kCounter);
    if (record == nullptr) return;
    record->counter = {now, w.merged[i], w.measurement, metric};
    commit(thread);
  }
}

void state(const CallbackData& data, std::uint64_t end_ns, bool with_values) {
  Thread* thread = enter();
  if (thread == nullptr) return;
  put_window(thread, data, end_ns);
  if (with_values) put_values(thread, now_ns());
  leave();
}

// ---- a measurement ------------------------------------------------------------------------------------------------

// False: the session is of no use any more.
bool open_session(void* context) {
  const std::uint64_t begin_ns = now_ns();
  const std::uint32_t device = device_of(context);
  w.device = static_cast<std::uint16_t>(device);
  const bool first = w.context.exchange(context) == nullptr;
  w.is_used = false;
  if (!w.session.open(w.plan, {context, device, Ranges::kAutomatic, w.plan.replay, kMostRanges})) return false;
  const std::uint64_t end_ns = now_ns();
  if (first) {
    w.set_up_ns = end_ns - begin_ns;
    w.budget.begin(end_ns, w.plan.budget_ppm, kCreditNs);
  } else {
    w.budget.spend(end_ns - begin_ns);
  }
  return true;
}

// The first measurement is over, for better or worse: from here on time is earned and spent.
void set_up_ended() {
  w.is_set_up = true;
  w.budget.begin(now_ns(), w.plan.budget_ppm, kCreditNs);
  note("counters",
       "setting up the counters of kernels took %llu ms, with the first measurement; that is no part of "
       "--counters-budget.",
       static_cast<unsigned long long>(w.set_up_ns / 1000000));
}

void spend(std::uint64_t cost_ns) {
  ++w.windows;
  if (!w.is_set_up) {
    w.set_up_ns += cost_ns;
    return;
  }
  w.budget.spend(cost_ns);
  w.cost_ns = w.is_cost_known ? (w.cost_ns * 7 + cost_ns) / 8 : cost_ns;
  w.is_cost_known = true;
}

// What was counted so far is read or forgotten: the session is made ready again before the next window.
void begin_anew() {
  if (!w.is_set_up) set_up_ended();
  w.passes_made = 0;
  w.is_used = true;
  w.is_refused = false;
}

// A measurement ended without values.
void throw_away(const char* why) {
  skip(why);
  w.choice.measured(w.window.number, false);
  w.choice.threw_away();
  begin_anew();
}

// Values of the kernel, from all passes. False in `good`: there are none. False: CUPTI failed.
bool read_values(bool* good) {
  *good = false;
  std::uint32_t found = 0;
  if (!w.session.read(&found)) return false;
  if (found > kMostRanges) found = kMostRanges;
  const std::size_t metrics = w.session.metrics();
  double* at = &w.values[0][0];
  for (std::uint32_t i = 0; i < found; ++i, at += metrics) {
    if (!w.session.values(i, at)) return false;
  }
  *good = (found == 1 || found == w.session.passes()) && merge_ranges(&w.values[0][0], found, metrics, w.merged);
  return true;
}

bool broken_window() {
  w.session.close();
  if (++w.failures < kMostFailures) {
    throw_away("kernels whose window was broken, by a graph perhaps");
    return true;
  }
  note("counters", "kernels are not counted any more: three windows in a row were broken.");
  return false;
}

bool decide(const CallbackData& data) {
  void* const context = w.context.load(std::memory_order_relaxed);
  if (context != nullptr && context != data.context) return false;
  const LaunchShape shape = shape_of(data.function, data.arguments);
  const std::uint64_t now = now_ns();
  bool is_new = false, gave_up = false;
  const std::size_t number = w.choice.saw(signature_of(data.symbol, shape), now, &is_new);
  if (is_new) w.verdicts.was_launched(w.plan.kernels, data.symbol);
  if (number == KernelChoice::kNone) return false;
  if (!w.budget.allows(now, w.cost_ns)) {
    w.is_refused = w.is_refused || w.choice.is_under_way(number);
    return false;
  }
  const bool wanted = w.choice.wants(number, &gave_up);
  if (gave_up) skip("kernels that were not launched often enough for all passes");
  if (gave_up) begin_anew();
  w.window.number = number;
  return wanted;
}

void state_sum() {
  note("counters",
       "%u windows over kernels were measured; that took %.1f ms of the program, and setting up %.0f ms before.",
       w.windows, static_cast<double>(w.budget.spent_ns()) / 1e6, static_cast<double>(w.set_up_ns) / 1e6);
}

// True: the window is open. A profiler that is set up or started while the device works may hang it; so what was
// launched before is waited for, which the device does anyway: only the rest counts as cost.
bool begin(const CallbackData& data) {
  const Measuring measuring;
  await_device();
  if (!w.session.is_open() && !open_session(data.context)) return false;
  const std::uint64_t begin_ns = now_ns();
  if (w.is_used && !w.session.renew()) return false;
  w.is_used = false;
  if (!w.session.start()) return false;
  w.window.begin_ns = now_ns();
  w.window.cost_ns = w.window.begin_ns - begin_ns;
  w.is_refused = false;
  if (w.passes_made == 0) ++w.measurement;
  return true;
}

// False: nothing is to be measured any more.
bool end(const CallbackData& data) {
  const Measuring measuring;
  const std::uint64_t begin_ns = now_ns();
  bool all = false;
  if (!w.session.stop(&all)) return broken_window();
  w.failures = 0;
  const std::uint64_t end_ns = now_ns();
  bool good = false, goes_on = true;
  if (all) goes_on = read_values(&good);
  w.window.cost_ns += now_ns() - begin_ns;
  state(data, end_ns, good);
  spend(w.window.cost_ns);
  if (!goes_on) return false;
  if (all && !good) {
    throw_away("kernels that were counted together with others, or not at all");
    return true;
  }
  w.choice.measured(w.window.number, all);
  ++w.passes_made;
  if (all) begin_anew();
  return true;
}

// Of another thread, whose launch goes on without it. False: nothing is to be measured any more.
bool drop_window() {
  const Measuring measuring;
  bool all = false;
  if (!w.session.stop(&all)) return broken_window();
  throw_away("kernels whose launch did not end while a capture began or their context ended");
  return true;
}

// Afterwards nobody is in a profiler and no window is open. A launch that does not end may be waiting for a lock of
// CUPTI's that our caller holds: its window is ended here.
void end_windows() {
  const std::uint64_t begin_ns = now_ns();
  while (w.lock.is_busy()) {
    const std::uint64_t waited_ms = (now_ns() - begin_ns) / 1000000;
    std::uint32_t number = 0;
    if (waited_ms >= kPatienceMs && w.lock.try_acquire_any_window(&number)) {
      if (drop_window()) return w.lock.release();
      w.session.close();
      return end_for_good();
    }
    if (waited_ms >= kWindowLimitMs) return;
    pause_ms(1);
  }
}

}  // namespace

void start_kernel_windows(const Plan& plan) { w.plan = plan; }

void kernel_window_begins(const CallbackData& data) {
  if (data.symbol == nullptr || !w.verdicts.is_asked_for(w.plan.kernels, data.symbol)) return;
  if (!w.lock.try_acquire()) return;
  if (capture_is_open() || !decide(data)) return w.lock.release();
  if (!begin(data)) {
    w.session.close();
    return end_for_good();
  }
  tl.counted = {w.lock.open_window(), data.correlation, 0};
}

void kernel_window_ended(const CallbackData& data) {
  const std::uint32_t number = tl.counted.number;
  if (number == 0 || tl.counted.domain != data.correlation) return;
  tl.counted = {};
  if (!w.lock.try_acquire_window(number)) return;  // somebody had to end it
  if (end(data)) return w.lock.release();
  w.session.close();
  end_for_good();
}

void kernel_capture_begins() { end_windows(); }

void kernel_context_ends(void* context) {
  if (context == nullptr || w.context.load() != context) return;
  end_windows();
  if (!w.lock.try_acquire()) return;
  w.session.abandon();
  end_for_good();
}

// Who has a window open now has it for good: CUPTI is not called any more.
void finish_kernel_windows() {
  if (!w.lock.try_acquire()) return;
  w.session.abandon();
  if (w.choice.is_under_way())
    skip(w.is_refused ? "kernels whose passes were not all made: --counters-budget was spent (0: no limit)"
                      : "kernels that were not launched often enough for all passes");
  if (w.windows != 0) state_sum();
  w.verdicts.say_unseen(w.plan.kernels);
  end_for_good();
}

}  // namespace llmprof::collect::counters

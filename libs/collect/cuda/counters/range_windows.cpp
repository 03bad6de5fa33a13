#include "collect/cuda/counters/windows.h"

#include <stdio.h>

#include "collect/cuda/counters/choice.h"
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/measurements.h"
#include "collect/cuda/driver.h"
#include "collect/cuda/gpu.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {
namespace {

using wire::CounterScope;
using wire::LossKind;

constexpr std::uint32_t kGraphDomain = ~0u;  // of a launch, where a range has its domain
constexpr std::uint64_t kQuietNs = 1'000'000'000;
constexpr std::uint64_t kLongestNs = 30'000'000'000;  // its thread may be gone
// For somebody in a profiler: who waits for the device there breaks a capture that does not wait. The end of a process
// waits longer only for somebody who sets one up.
constexpr std::uint64_t kPatienceMs = 5000, kEndPatienceMs = 200, kEndSetUpPatienceMs = 2000;

// What a name is to us. Written more than once by threads that meet it at the same time, with the same value.
enum Verdict : std::uint8_t { kUnknown = 0, kOther = 1, kWanted = 2, kMeasured = 3 };

struct State {
  const Plan* plan = nullptr;
  ProfilerLock lock;
  std::atomic<std::uint8_t> verdicts[StringTable::kMaxNames]{};
  std::atomic<bool> ranges_seen{false};
  std::atomic<bool> setting_up{false};
  // Who gave the device work first, and whether another thread did in another context.
  std::atomic<const void*> first_thread{nullptr}, first_context{nullptr};
  std::atomic<bool> several{false};
  // Of the window that is open.
  std::atomic<std::uint32_t> launches{0};
  std::atomic<bool> graphs{false}, foreign{false};
  std::atomic<std::uint64_t> last_ns{0};  // when it was opened or closed
  // Of the holder of the lock.
  Measurements measurements;
  WindowChoice choice;
  std::uint64_t set_up_ns = 0;
};
constinit State state;

bool is_wanted(wire::StringId name) {
  const Shared* shared = g.shared.load(std::memory_order_acquire);
  if (name == 0 || name >= StringTable::kMaxNames || shared == nullptr || !shared->strings.valid(name)) return false;
  std::uint8_t verdict = state.verdicts[name].load(std::memory_order_relaxed);
  if (verdict == kUnknown) {
    verdict = matches(state.plan->ranges, shared->strings.text(name)) ? kWanted : kOther;
    state.verdicts[name].store(verdict, std::memory_order_relaxed);
  }
  return verdict >= kWanted;
}

// ---- with the lock ------------------------------------------------------------------------------------------------

// Something failed, and was said. Nobody gets the lock any more. Disarmed last: until then a capture waits for us.
void die() {
  state.measurements.close(!capture_is_open());
  state.lock.retire();
  disarm(kRanges);
}

void settle_cost() { state.choice.spent(state.measurements.take_other_cost_ns()); }

bool set_up(void* context) {
  const std::uint64_t begin_ns = now_ns();
  state.setting_up.store(true, std::memory_order_relaxed);
  const bool open = state.measurements.open(*state.plan, context);
  state.setting_up.store(false, std::memory_order_relaxed);
  if (!open) return false;
  state.measurements.take_other_cost_ns();  // a part of it
  const std::uint64_t end_ns = now_ns();
  state.set_up_ns = end_ns - begin_ns;
  state.choice.begin(end_ns, state.plan->budget_ppm, state.measurements.passes());
  note("counters", "counters of ranges: %zu metric%s in %u pass%s, set up in %.0f ms.", state.measurements.metrics(),
       state.measurements.metrics() == 1 ? "" : "s", state.measurements.passes(),
       state.measurements.passes() == 1 ? "" : "es", static_cast<double>(state.set_up_ns) / 1e6);
  return true;
}

// Whether this context's work is counted; the first one's is. Said once.
bool is_ours(void* context) {
  if (context == state.measurements.context()) return true;
  skip("it is in another CUDA context than the one that is measured");
  static constinit std::atomic<bool> said;
  if (!said.exchange(true, std::memory_order_relaxed))
    note("counters", "the program uses several CUDA contexts: only the first that was met is measured.");
  return false;
}

// Whether a window may be opened, leaving the budget aside. A window waits for the device, with every lock that its
// thread holds: where another thread has to feed another device for that to end, the program would hang.
bool may_measure(void* context) {
  if (state.several.load(std::memory_order_relaxed)) {
    skip("several threads give work to several devices");
    return false;
  }
  if (capture_is_open()) {
    skip("a stream was being captured");
    return false;
  }
  return !state.measurements.is_open() || is_ours(context);
}

enum class Begun : std::uint8_t { kNo, kYes, kFailed };

// The common case is that it is not due: a few comparisons.
bool is_due(const Window& window) { return !state.measurements.is_open() || state.choice.wants(window.key, now_ns()); }

Begun begin(const Window& window, void* context) {
  const bool fresh = !state.measurements.is_open();
  if (fresh && !set_up(context)) return Begun::kFailed;
  if (fresh && !state.choice.wants(window.key, now_ns())) return Begun::kNo;
  state.launches.store(0, std::memory_order_relaxed);
  state.graphs.store(false, std::memory_order_relaxed);
  state.foreign.store(false, std::memory_order_relaxed);
  const bool first = state.choice.is_first(window.key);
  state.choice.chose(window.key);
  return state.measurements.begin(window, first) ? Begun::kYes : Begun::kFailed;
}

// Several passes: the name that was chosen does not come any more. False: that failed.
bool drop_if_stuck() {
  if (!state.choice.is_stuck() || capture_is_open()) return true;
  state.choice.give_up();
  const Measuring measuring;
  const bool dropped = state.measurements.drop();
  settle_cost();
  return dropped;
}

// Closes the window that is open. False: that failed.
bool close_window(bool good) {
  const std::uint32_t launches = state.launches.load(std::memory_order_relaxed);
  const Window window = state.measurements.window();
  if (state.foreign.load(std::memory_order_relaxed)) {
    skip("work of another CUDA context was in it");
    good = false;
  }
  if (!state.measurements.end(good && launches != 0, state.graphs.load(std::memory_order_relaxed))) return false;
  state.choice.measured(window.key, state.measurements.window_cost_ns(), launches != 0);
  settle_cost();
  if (state.measurements.is_between()) state.choice.completed();
  state.last_ns.store(now_ns(), std::memory_order_relaxed);
  return true;
}

bool close_and_drop() {
  if (!close_window(false)) return false;
  skip("a capture began, or its context or process ended, inside of it");
  return true;
}

// ---- windows ------------------------------------------------------------------------------------------------------

void open_window(const Window& window, void* context, std::uint32_t domain, int level) {
  if (!state.lock.try_acquire()) {
    const bool due = window.scope == CounterScope::kRange && state.verdicts[window.name] != kMeasured;
    if (due && state.lock.has_window()) skip("another thread was being measured");
    return;
  }
  if (!is_recording() || !is_due(window)) return drop_if_stuck() ? state.lock.release() : die();
  if (!gpu_is_ours() || !may_measure(context)) return state.lock.release();
  const Measuring measuring;
  const Begun begun = begin(window, context);
  if (begun == Begun::kFailed) return die();
  if (begun == Begun::kNo) return state.lock.release();
  if (window.scope == CounterScope::kRange) state.verdicts[window.name].store(kMeasured, std::memory_order_relaxed);
  state.last_ns.store(now_ns(), std::memory_order_relaxed);
  tl.counted = {state.lock.open_window(), domain, level};
}

// `outer`: another range that matches is opened inside the one that is being measured.
void end_own_window(bool outer) {
  const std::uint32_t number = tl.counted.number;
  tl.counted = {};
  if (!state.lock.try_acquire_window(number)) return;  // somebody had to end it
  const Measuring measuring;
  if (outer) state.choice.is_outer(state.measurements.window().key);
  if (!close_window(!outer)) return die();
  state.lock.release();
}

// Takes the lock from whoever has a window open; who is in a profiler is waited for, not for ever: it may wait for a
// lock of CUPTI's that our caller holds.
bool take_over(std::uint32_t* window, std::uint64_t patience_ms, std::uint64_t set_up_patience_ms) {
  const std::uint64_t begin_ns = now_ns();
  for (;;) {
    if (state.lock.try_acquire_anything(window)) return true;
    const bool longer = state.setting_up.load(std::memory_order_relaxed);
    const std::uint64_t limit_ms = longer ? set_up_patience_ms : patience_ms;
    if (state.lock.is_retired() || now_ns() >= begin_ns + limit_ms * 1000000) return false;
    pause_ms(1);
  }
}

void watch_threads(const void* context) {
  const void* first = state.first_context.load(std::memory_order_relaxed);
  if (first == context || state.several.load(std::memory_order_relaxed)) return;
  if (first == nullptr && state.first_context.compare_exchange_strong(first, context, std::memory_order_relaxed)) {
    state.first_thread.store(&tl, std::memory_order_relaxed);
  } else if (state.first_thread.load(std::memory_order_relaxed) != &tl) {
    state.several.store(true, std::memory_order_relaxed);
    note("counters", "several threads give work to several devices: ranges are not measured, it could make them hang.");
  }
}

void state_sum() {
  note("counters", "%u windows were measured; that took %.1f ms of the program, the set-up %.0f ms before.",
       state.measurements.made(), static_cast<double>(state.choice.spent_ns()) / 1e6,
       static_cast<double>(state.set_up_ns) / 1e6);
}

void end_everything(bool read) {
  bool good = true;
  if (read && !capture_is_open() && state.measurements.is_open()) {
    if (state.measurements.passes() > 1 && !state.measurements.is_between())
      skip("the process or its context ended before all passes were made");
    good = state.measurements.read_now();
    settle_cost();
  }
  if (good && state.measurements.made() != 0) state_sum();
  const bool worked = state.first_context.load(std::memory_order_relaxed) != nullptr;
  if (!worked || state.measurements.made() != 0 || state.measurements.context() != nullptr) return;
  const bool matched = state.ranges_seen.load(std::memory_order_relaxed);
  skip(matched ? "no range of the plan was open where a device was in use" : "no range of the plan's names was opened");
}

}  // namespace

void start_range_windows(const Plan& plan) { state.plan = &plan; }

void range_window_opens(wire::StringId name, std::uint32_t domain, int level) {
  if (level < 0 || !is_wanted(name)) return;
  state.ranges_seen.store(true, std::memory_order_relaxed);
  if (tl.counted.number != 0) end_own_window(true);
  void* context = current_context();
  if (context == nullptr) return;
  const std::uint64_t key = std::uint64_t{1} << 32 | name;
  open_window({key, name, 0, CounterScope::kRange}, context, domain, level);
}

void range_window_closes(std::uint32_t domain, int level) {
  if (tl.counted.number != 0 && tl.counted.domain == domain && tl.counted.level == level) end_own_window(false);
}

void graph_window_begins(const cupti::CallbackData& data) {
  if (tl.counted.number != 0 || tl.launch.graph == 0 || state.ranges_seen.load(std::memory_order_relaxed)) return;
  const std::uint64_t key = std::uint64_t{2} << 32 | tl.launch.graph;
  open_window({key, 0, data.correlation, CounterScope::kGraph}, data.context, kGraphDomain, 0);
  if (tl.counted.number != 0) launch_in_window(data, wire::LaunchOp::kGraph);
}

void graph_window_ended() { range_window_closes(kGraphDomain, 0); }

void launch_in_window(const cupti::CallbackData& data, wire::LaunchOp op) {
  watch_threads(data.context);
  if (!state.lock.has_window()) return;
  state.launches.fetch_add(1, std::memory_order_relaxed);
  if (op == wire::LaunchOp::kGraph) state.graphs.store(true, std::memory_order_relaxed);
  if (tl.counted.number != 0 && data.context != state.measurements.context())
    state.foreign.store(true, std::memory_order_relaxed);
}

void range_capture_begins() {
  std::uint32_t window = 0;
  if (!take_over(&window, kPatienceMs, kPatienceMs)) return;
  const Measuring measuring;
  if (window != 0 && !close_and_drop()) return die();
  state.lock.release();
}

void range_context_ends(void* context) {
  std::uint32_t window = 0;
  if (!take_over(&window, kPatienceMs, kPatienceMs)) return;
  const Measuring measuring;
  if (window != 0 && !close_and_drop()) return die();
  if (context != state.measurements.context()) return state.lock.release();
  end_everything(true);
  note("counters", "the CUDA context that was measured was destroyed: nothing is measured from here on.");
  die();
}

// A quiet moment: what was measured is read. `idle`: nothing was launched for a while.
void look_at_range_windows(bool idle) {
  const std::uint64_t before_ns = now_ns() - state.last_ns.load(std::memory_order_relaxed);
  std::uint32_t window = 0;
  const bool too_long = before_ns > kLongestNs && state.lock.try_acquire_any_window(&window);
  if (!too_long && (!idle || before_ns < kQuietNs || !state.lock.try_acquire())) return;
  const Measuring measuring;
  if (capture_is_open()) return too_long ? die() : state.lock.release();
  if (too_long && !close_and_drop()) return die();
  if (!too_long && !state.measurements.read_now()) return die();
  if (too_long) state.last_ns.store(now_ns(), std::memory_order_relaxed);
  state.lock.release();
}

void finish_range_windows() {
  std::uint32_t window = 0;
  if (!take_over(&window, kEndPatienceMs, kEndSetUpPatienceMs)) return;
  const Measuring measuring;
  if (window != 0 && !capture_is_open() && !close_and_drop()) return die();
  end_everything(window == 0 || !capture_is_open());
  state.measurements.close(false);
  state.lock.retire();
}

}  // namespace llmprof::collect::counters

#pragma once
// User ranges of a session, and what becomes of them: windows in the thread's records, values once all passes were
// made. One holder at a time (windows.h).
//
// A set of one pass: windows of any names follow each other until there is no room for more. A set of several: four
// windows of one name make a pass (one, the first time: values come sooner), and the next passes are made over the next
// windows of that name; the values of window k are put together from the k-th of every pass.
//
// A window's record is made when it closes, by the thread that was measured: `begin_ns` is before the time of the
// range, or launch, that it is of, `end_ns` after its end. Its values come later, maybe from another thread of the
// program or from our own. A window whose values never come was measured in vain, but it did take the program's time.

#include <stdio.h>
#include <string.h>
#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/counters/session.h"
#include "collect/cuda/gpu.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// Metrics that CUPTI counts by changing the code of kernels: in graphs the code stays as it was, and they read 0.
inline bool is_instrumented(const char* metric) { return strncmp(metric, "smsp__sass_", 11) == 0; }

// Adds the time of what follows.
class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t* sum_ns) : sum_ns_(sum_ns), begin_ns_(now_ns()) {}
  ~Stopwatch() { *sum_ns_ += now_ns() - begin_ns_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t* sum_ns_;
  std::uint64_t begin_ns_;
};

struct Window {
  std::uint64_t key;
  wire::StringId name;
  std::uint32_t correlation;
  wire::CounterScope scope;
};

class Measurements {
 public:
  static constexpr std::uint32_t kMostWindows = 64;  // of one pass
  static constexpr std::uint32_t kOfSeveral = 4;     // the same, if a set needs several passes

  // Everything up to the first window. False here and below: it failed, which was said; nothing more can be measured.
  // A profiler that is started while the device works may hang it: everything up to a start is done on a thread of the
  // program, when the device has nothing to do.
  bool open(const Plan& plan, void* context) {
    await_device();
    device_ = device_of(context);
    if (!session_.open(plan, {.context = context,
                              .device = device_,
                              .ranges = Ranges::kUser,
                              .replay = false,
                              .most_ranges = kMostWindows,
                              .most_ranges_of_several = kOfSeveral}))
      return false;
    context_ = context;
    room_ = session_.passes() > 1 ? kOfSeveral : kMostWindows;
    for (std::size_t i = 0; i < session_.metrics(); ++i) names_[i] = intern(session_.metric(i));
    return start();
  }

  // `first`: the name was never measured.
  // Both ends of CUPTI's ranges wait until the device is idle. That is the device's own time, and most programs would
  // wait for it a moment later themselves; so it is waited for first, and only the rest counts as cost.
  bool begin(const Window& window, bool first) {
    if (!started_ && !start()) return false;
    if (session_.passes() > 1 && pass_ == 0 && used_ == 0) room_ = first ? 1 : kOfSeveral;
    window_ = window;
    window_cost_ns_ = 0;
    if (pass_ == 0) slots_[used_] = {++measurements_, false, true};
    char name[16];
    snprintf(name, sizeof(name), "%u", used_);
    await_device();
    const Stopwatch watch(&window_cost_ns_);
    const bool pushed = session_.push(name);
    begin_ns_ = now_ns();
    return pushed;
  }

  // `good`: its values count. What it took of the program is added to cost_ns().
  bool end(bool good, bool graphs) {
    await_device();
    bool popped;
    {
      const Stopwatch watch(&window_cost_ns_);
      popped = session_.pop();
    }
    if (!popped) return false;
    Slot& slot = slots_[used_];
    slot.good = slot.good && good;
    slot.graphs = slot.graphs || graphs;
    if (good) put_window(now_ns());
    ++made_;
    return ++used_ < room_ || end_pass();
  }

  // All that was measured with one pass is read.
  bool read_now() {
    if (!is_open() || session_.passes() > 1 || used_ == 0) return true;
    return end_pass();
  }

  // Several passes: what was begun is given up.
  bool drop() {
    const Stopwatch watch(&other_cost_ns_);
    bool all = false;
    if (started_ && !session_.stop(&all)) return false;
    started_ = false;
    used_ = pass_ = 0;
    is_read_ = true;
    return true;
  }

  void close(bool call_cupti) {
    started_ = false;
    if (call_cupti) session_.close();
    session_.abandon();
  }

  bool is_open() const { return session_.is_open(); }
  void* context() const { return context_; }
  std::uint32_t passes() const { return session_.passes(); }
  std::size_t metrics() const { return session_.metrics(); }
  bool is_between() const { return used_ == 0 && pass_ == 0; }  // nothing is waiting to be read or completed
  const Window& window() const { return window_; }
  std::uint32_t made() const { return made_; }
  // Of the window that ended last; of everything else since it was asked.
  std::uint64_t window_cost_ns() const { return window_cost_ns_; }
  std::uint64_t take_other_cost_ns() {
    const std::uint64_t cost_ns = other_cost_ns_;
    other_cost_ns_ = 0;
    return cost_ns;
  }

 private:
  struct Slot {
    std::uint32_t measurement;
    bool graphs, good;
  };
  bool start() {
    await_device();
    const Stopwatch watch(&other_cost_ns_);
    if (is_read_ && !session_.renew()) return false;
    is_read_ = false;
    started_ = session_.start();
    return started_;
  }

  bool end_pass() {
    const Stopwatch watch(&other_cost_ns_);
    bool all = false;
    started_ = false;
    if (!session_.stop(&all)) return false;
    if (!all) {
      ++pass_;
      used_ = 0;
      return true;
    }
    const bool read = read_values();
    used_ = pass_ = 0;
    is_read_ = true;
    return read;
  }

  // By their names: whether ranges stay in the order of their windows is nowhere promised.
  bool read_values() {
    std::uint32_t found = 0;
    if (!session_.read(&found)) return false;
    for (std::uint32_t i = 0; i < found; ++i) {
      std::uint32_t number = 0;
      if (!session_.number_of(i, &number)) return false;
      if (number >= used_ || !slots_[number].good) continue;
      if (!session_.values(i, values_)) return false;
      put_values(slots_[number]);
    }
    return true;
  }

  void put_values(const Slot& slot) {
    Thread* thread = enter();
    if (thread == nullptr) return;
    const std::uint64_t read_ns = now_ns();
    for (std::size_t i = 0; i < session_.metrics(); ++i) {
      if (__builtin_isnan(values_[i])) continue;
      if (slot.graphs && values_[i] == 0 && is_instrumented(session_.metric(i))) continue;
      wire::Record* record = reserve(thread, wire::RecordKind::kCounter);
      if (record == nullptr) continue;
      record->counter = {read_ns, values_[i], slot.measurement, names_[i]};
      commit(thread);
    }
    leave();
  }

  void put_window(std::uint64_t end_ns) const {
    record_event(wire::RecordKind::kCounterWindow, [&](wire::Record* record, Thread*) {
      record->counter_window = {.begin_ns = begin_ns_,
                                .end_ns = end_ns,
                                .cost_ns = window_cost_ns_,
                                .measurement = slots_[used_].measurement,
                                .correlation = window_.correlation,
                                .name = window_.name,
                                .device = static_cast<std::uint16_t>(device_),
                                .scope = window_.scope,
                                .pass = static_cast<std::uint8_t>(pass_),
                                .passes = static_cast<std::uint8_t>(session_.passes())};
    });
  }

  Session session_;
  void* context_ = nullptr;
  std::uint32_t device_ = 0;
  std::uint32_t room_ = 0;  // windows of a pass
  std::uint32_t used_ = 0;  // of this pass
  std::uint32_t pass_ = 0;
  bool started_ = false;
  bool is_read_ = false;            // or given up: the next start needs fresh data
  std::uint32_t made_ = 0;          // windows
  std::uint32_t measurements_ = 0;  // numbers given
  Window window_{};
  std::uint64_t begin_ns_ = 0, window_cost_ns_ = 0, other_cost_ns_ = 0;
  Slot slots_[kMostWindows]{};
  wire::StringId names_[List::kMost]{};
  double values_[List::kMost]{};
};

}  // namespace llmprof::collect::counters

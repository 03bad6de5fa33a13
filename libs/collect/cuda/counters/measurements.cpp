#include "collect/cuda/counters/measurements.h"

#include <stdio.h>
#include <string.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/gpu.h"
#include "collect/event.h"
#include "collect/names.h"
#include "collect/os.h"

namespace llmprof::collect::counters {
namespace {

// Metrics that CUPTI counts by changing the code of kernels: in graphs the code stays as it was, and they read 0.
bool is_instrumented(const char* metric) { return strncmp(metric, "smsp__sass_", 11) == 0; }

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

}  // namespace

// A profiler that is started while the device works may hang it: everything up to a start is done on a thread of the
// program, when the device has nothing to do.
bool Measurements::open(const Plan& plan, void* context) {
  await_device();
  if (gpu.library.get_device_id == nullptr || gpu.library.get_device_id(context, &device_) != cupti::kSuccess)
    device_ = 0;
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

bool Measurements::start() {
  await_device();
  const Stopwatch watch(&other_cost_ns_);
  if (is_read_ && !session_.renew()) return false;
  is_read_ = false;
  started_ = session_.start();
  return started_;
}

// Both ends of CUPTI's ranges wait until the device is idle. That is the device's own time, and most programs would
// wait for it a moment later themselves; so it is waited for first, and only the rest counts as cost.
bool Measurements::begin(const Window& window, bool first) {
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

bool Measurements::end(bool good, bool graphs) {
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

bool Measurements::end_pass() {
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

bool Measurements::read_now() {
  if (!is_open() || session_.passes() > 1 || used_ == 0) return true;
  return end_pass();
}

bool Measurements::drop() {
  const Stopwatch watch(&other_cost_ns_);
  bool all = false;
  if (started_ && !session_.stop(&all)) return false;
  started_ = false;
  used_ = pass_ = 0;
  is_read_ = true;
  return true;
}

void Measurements::close(bool call_cupti) {
  started_ = false;
  if (call_cupti) session_.close();
  session_.abandon();
}

std::uint64_t Measurements::take_other_cost_ns() {
  const std::uint64_t cost_ns = other_cost_ns_;
  other_cost_ns_ = 0;
  return cost_ns;
}

void Measurements::put_window(std::uint64_t end_ns) const {
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

// By their names: whether ranges stay in the order of their windows is nowhere promised.
bool Measurements::read_values() {
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

void Measurements::put_values(const Slot& slot) {
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

}  // namespace llmprof::collect::counters

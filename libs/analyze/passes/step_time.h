#pragma once
// Who owned every nanosecond of a step, and of the time to the next one where the two make a TPOT sample. The rules, in
// order of priority, are those of docs/format/analysis.md, "Waterfall". One pass over sorted columns: linear time, and
// memory for what has not been dealt with yet.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/graphs.h"
#include "analyze/passes/ranges.h"
#include "analyze/passes/sums.h"
#include "trace/rows.h"
#include "trace/schema.h"

namespace llmprof::analyze {

// Stretches of time that do not overlap, each with the operator that owns it, or the operators of a graph launch. They
// come in order of their begin and are forgotten once the time before some moment was dealt with, so memory does not
// grow with a run.

struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
  trace::Name op;
  const Mix* mix = nullptr;  // of a launch whose nodes were not recorded; then `op` is none
};

class Stretches {
 public:
  // By begin. Where it overlaps earlier ones, those keep the time: what began first owns it until it ends.
  void add(Window window, trace::Name op, const Mix* mix = nullptr) {
    const std::int64_t begin_ns = std::max(window.begin_ns, covered_until_ns_);
    if (window.end_ns <= begin_ns) return;
    stretches_.push_back({begin_ns, window.end_ns, op, mix});
    covered_until_ns_ = window.end_ns;
  }

  // Calls owned(ns, stretch) for the parts of the window inside a stretch and free(window) for those between, by time.
  template <class Owned, class Free>
  void divide(Window window, Owned owned, Free free) {
    std::int64_t at_ns = window.begin_ns;
    for (std::size_t i = first_after(at_ns); i < stretches_.size() && stretches_[i].begin_ns < window.end_ns; ++i) {
      const std::int64_t from = std::max(stretches_[i].begin_ns, at_ns);
      const std::int64_t to = std::min(stretches_[i].end_ns, window.end_ns);
      if (from > at_ns) free(Window{at_ns, from});
      owned(to - from, stretches_[i]);
      at_ns = to;
      cursor_ = i;
    }
    if (window.end_ns > at_ns) free(Window{at_ns, window.end_ns});
  }

  bool empty() const { return stretches_.empty(); }

  // What ends by then is not asked for any more.
  void forget(std::int64_t until_ns) {
    stretches_.erase(stretches_.begin(), stretches_.begin() + static_cast<std::ptrdiff_t>(first_after(until_ns)));
    cursor_ = 0;
  }

 private:
  // The first that ends after this moment. Questions mostly come by time: it is where the last answer was, or next to
  // it.
  std::size_t first_after(std::int64_t ns) const {
    const auto ends_after = [&](std::size_t i) { return i >= stretches_.size() || stretches_[i].end_ns > ns; };
    const auto is_it = [&](std::size_t i) { return ends_after(i) && (i == 0 || stretches_[i - 1].end_ns <= ns); };
    for (const std::size_t i : {cursor_, cursor_ + 1}) {
      if (i <= stretches_.size() && is_it(i)) return i;
    }
    const auto by_end = [](const Stretch& stretch, std::int64_t at) { return stretch.end_ns <= at; };
    return static_cast<std::size_t>(std::lower_bound(stretches_.begin(), stretches_.end(), ns, by_end) -
                                    stretches_.begin());
  }

  std::vector<Stretch> stretches_;
  std::int64_t covered_until_ns_ = INT64_MIN;
  std::size_t cursor_ = 0;  // of the last one that a window met
};

// What the host did while a device had nothing to do: the module or range that was open, and the stack samples of that
// time.

struct IdleStretch {
  Window window;
  std::int64_t thread_id = 0, process_id = 0;  // of the step
  std::int32_t step = kNone;
  bool after = false;   // between the step and the next one
  bool of_gpu = false;  // else the device is a CPU, which then works for the program: only samples are looked at
};

class IdleTime {
 public:
  // The references must outlive it; `warm_up` has one for each step.
  IdleTime(const Ranges& ranges, const Classified& classified, const std::vector<bool>& warm_up,
           trace::Strings& strings);

  void add_sample(std::int64_t process_id, std::int64_t at_ns, std::int64_t id);  // all of them, before the stretches
  void add(const IdleStretch& stretch, Timelines& timelines);

  std::vector<trace::IdlePlaceRow> finish();
  trace::OptionalId step_of(std::int64_t sample_id) const;  // in whose idle time it was taken

 private:
  struct Samples {                                           // of a process
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // time and id, by time once sorted
    bool sorted = false;
    std::size_t next = 0;  // those before it are before the last stretch
  };
  void mark(const IdleStretch& stretch);
  trace::Name place_of(std::int32_t range);

  const Ranges& ranges_;
  const Classified& classified_;
  const std::vector<bool>& warm_up_;
  trace::Strings& strings_;
  OperatorNames operators_;
  trace::Name gap_, between_;
  std::vector<trace::Name> shapes_;  // by code of the range's name
  std::unordered_map<std::int64_t, Samples> samples_;
  std::unordered_map<std::int64_t, std::int32_t> step_of_;                            // by id of the sample
  std::unordered_map<std::array<std::uint64_t, 2>, std::size_t, HashOfKind> places_;  // into rows_
  std::vector<trace::IdlePlaceRow> rows_;
};

enum class Owner : std::uint8_t {
  kKernel,       // a kernel of a step of this thread executes
  kCopy,         // a copy of this process executes
  kOtherKernel,  // another kernel of this process executes, not on a CPU: there cores are not taken from each other
  kQueued,       // a kernel of a step of this thread was launched and has not begun: the device idles
  kWait,         // the thread waits for the device
  kHost,         // the device is a CPU, and the thread is in a module: host code of that operator
  kGap,          // nothing of that, inside the step
  kBetween,      // nothing of that, after it
};
inline constexpr std::size_t kOwners = 8;
std::string_view owner_name(Owner owner);

// Where a host runs ahead of its device, a step waits for those before it on its thread: its turn comes when they end.
// Steps are sorted by begin.
void set_turns(std::vector<Step>& steps);

// For each step whether the program still warms up in it. Steps of one stage, thread and size are compared, in order of
// time: of eight or more, those at the begin that take a quarter more than the median of the later half and more
// than 98 % of it do, until three in a row do not, but no more than a quarter of all. Of fewer, the first prefill
// alone, where it takes over twice the median of the others. Compiling and loading are no steady work, so nothing of
// them.
std::vector<bool> warm_up_steps(const std::vector<Step>& steps, const trace::Strings& strings);

class StepTimes {
 public:
  using Emit = std::function<void(const trace::StepTimeRow&)>;

  struct Devices {
    std::vector<std::int64_t> cpus;  // ids of devices whose kernels are host code
    bool busiest_is_cpu = true;      // then code in a module, between kernels, is work of that module
    bool others_worked = false;      // a device that is no CPU executed something
    bool is_cpu(std::int64_t device_id) const { return std::find(cpus.begin(), cpus.end(), device_id) != cpus.end(); }
  };

  // The references must outlive it. Rows of a step are emitted once its time is over.
  StepTimes(const Ranges& ranges, const Classified& classified, const ProcessOfThread& process_of_thread,
            Devices devices, trace::Strings& strings, Emit emit, IdleTime* idle = nullptr);

  // Each kind comes by begin; `rows` say where the kernels belong. Launches are those whose nodes were not recorded;
  // `mix` (by graph, outlives this) says who owns their time: one without stays a kernel of no known operator.
  void add_kernels(const Kernels& kernels, const std::vector<trace::AttributionRow>& rows);
  void add_work(const Kernels& kernels, const std::vector<trace::AttributionRow>& rows, const GraphLaunches& launches,
                const std::vector<trace::LaunchPlaceRow>& launch_rows,
                const std::unordered_map<std::int64_t, Mix>& mixes);
  void add_copy(std::int64_t thread_id, Window window);
  void add_wait(std::int64_t thread_id, Window window);

  // Everything that begins before this moment has been added: time before it can be dealt with.
  void advance(std::int64_t until_ns);
  void finish() { advance(INT64_MAX); }

 private:
  struct Part {
    Owner owner;
    trace::Name op;
    std::int64_t time_ns = 0, after_ns = 0;
  };
  struct Account {  // of one step whose time is not over
    std::vector<Part> parts;
    std::array<std::size_t, kOwners> next = {};  // after the part that each owner had last: operators come in turn
    int windows = 0;                             // that are still to come
    bool sample = false;                         // a TPOT sample begins with it
  };
  struct Span {  // a window of a step: its own, or from its end to the next step
    Window window;
    std::int32_t step = kNone;
    bool after = false;
  };
  struct Lane {  // a thread that makes steps
    std::int64_t thread_id = 0, process_id = 0;
    bool alone = false;       // no other thread of its process makes steps
    std::vector<Span> spans;  // by begin
    std::size_t next = 0;     // spans before it have begun
    std::vector<Span> open;   // begun, not over; their windows begin where dealt with
    Stretches kernels, copies, others, queued, waits;
  };
  struct Work {  // a kernel, or a launch with the mix of its nodes
    Window window;
    std::int64_t device_id = 0, thread_id = 0, launch_begin_ns = kNull, step_id = 0;
    trace::Name op;
    const Mix* mix = nullptr;
  };

  void make_lanes(trace::Name decode, trace::Name prefill);
  void add(const Work& work);
  std::size_t lane_of_step(std::int64_t step_id);
  void divide(Lane& lane, const Span& span);
  void divide_host(const Lane& lane, Window window, const Span& span, Account& account);
  static void put(Account& account, const Span& span, Owner owner, trace::Name op, std::int64_t ns);
  static void put_mix(Account& account, const Span& span, const Mix& mix, std::int64_t ns);
  void close(std::int32_t step);
  const std::vector<std::size_t>* lanes_beside(std::int64_t thread_id) const;  // of its process; null: it has none

  const Ranges& ranges_;
  const Classified& classified_;
  const ProcessOfThread& process_of_thread_;
  Devices devices_;
  Emit emit_;
  IdleTime* idle_;
  Timelines timelines_;
  OperatorNames operators_;
  std::array<trace::Name, kOwners> owner_names_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::int64_t, std::size_t> lane_of_thread_;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> lanes_of_process_;
  std::unordered_map<std::int32_t, Account> accounts_;
  std::int64_t last_step_id_ = 0;  // of the last kernel: the next one mostly has the same
  std::size_t last_lane_ = 0;
};

}  // namespace llmprof::analyze

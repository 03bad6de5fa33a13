#pragma once
// Who owned every nanosecond of a step, and of the time to the next one where the two make a TPOT sample. The rules, in
// order of priority, are those of docs/format/analysis.md, "Waterfall". One pass over sorted columns: linear time, and
// memory for what has not been dealt with yet.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/idle_time.h"
#include "analyze/passes/operator_names.h"
#include "analyze/passes/stretches.h"
#include "analyze/passes/timeline.h"
#include "trace/rows.h"

namespace llmprof::analyze {

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
  StepTimes(const Ranges& ranges, const Classified& classified,
            const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread, Devices devices,
            trace::Strings& strings, Emit emit, IdleTime* idle = nullptr);

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
  const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread_;
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

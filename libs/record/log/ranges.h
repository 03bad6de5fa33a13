#pragma once
// NVTX events to ranges: push and pop nest per thread and domain and meet by level, start and end meet by correlation
// on any threads, marks stand alone. Push and pop allocate nothing per event.

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "record/log/names.h"
#include "record/log/requests.h"
#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {

class RunWriter;
}

namespace llmprof::record {

// A hash of a sequence, value by value.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  return hash ^ (hash >> 32) ^ 1;
}

struct RangeCounts {
  std::int64_t ranges = 0;
  std::int64_t open = 0;        // closed by us, or with records lost between their push and their pop
  std::int64_t unbalanced = 0;  // pops and ends without their beginning
  std::int64_t bad_times = 0;   // events outside the recording, or an end before its begin
  std::int64_t unknown = 0;     // operations of a newer version
  std::int64_t too_old = 0;     // events of ranges that ended before the part that is kept
};

// Times that events of a log can have; others are counted as bad.
struct TimeWindow {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = INT64_MAX;
  std::int64_t keep_from_ns = INT64_MIN;  // what ended before is not kept
  bool is_too_old(std::uint64_t ts_ns) const {
    return keep_from_ns > 0 && ts_ns < static_cast<std::uint64_t>(keep_from_ns);
  }
  bool holds(std::uint64_t ts_ns) const {
    return ts_ns >= static_cast<std::uint64_t>(begin_ns) && ts_ns <= static_cast<std::uint64_t>(end_ns);
  }
};

// The window, and how many records were outside of it.
struct TimeCheck : TimeWindow {
  std::int64_t bad_times = 0, too_old = 0;

  bool accepts(std::uint64_t first_ns, std::uint64_t last_ns) {
    const bool good = holds(first_ns) && holds(last_ns) && last_ns >= first_ns;
    bad_times += good ? 0 : 1;
    return good;
  }
  bool accepts(std::uint64_t ts_ns) { return accepts(ts_ns, ts_ns); }
  // The same of what is not kept if it ended too early.
  bool keeps(std::uint64_t first_ns, std::uint64_t last_ns) {
    if (!accepts(first_ns, last_ns)) return false;
    const bool old = is_too_old(last_ns);
    too_old += old ? 1 : 0;
    return !old;
  }
};

class RangePairing {
 public:
  RangePairing(trace::RunWriter& writer, LogNames& names, trace::Id process_id, TimeWindow window, trace::Id& next_id,
               RequestMarks& requests);

  // Events of the thread with this number in the log, in the order it raised them.
  void take(std::span<const wire::Record> events, std::uint32_t thread, trace::Id thread_id);
  // The next log of the same process begins. It says again what was open: such pushes and starts are known already.
  void continue_at(std::int64_t ts_ns) { continued_ns_ = ts_ns; }
  void set_window(const TimeWindow& window) { window_ = window; }
  // Events may be missing here: what is open on a thread cannot be told from what comes, so it is closed at the last
  // event of its thread. Starts stay open: their ends name them.
  void gap();
  // The log is at its end; `last_ns` is the last event of the process.
  void finish(std::int64_t last_ns);

  const RangeCounts& counts() const { return counts_; }

  // A number for the names of the ranges that were open on a thread at a moment: equal names, equal number. 0: none was
  // open, or the moment is long past. To be asked when what happened then is read: a thread's events are stored a few
  // at a time, its ranges before the others.
  std::uint64_t path_at(trace::Id thread_id, std::int64_t ts_ns) const;

 private:
  struct Open {
    trace::RangeRow row;        // names resolved when it begins: ids belong to one log, a range to several
    std::uint64_t dropped = 0;  // records of its thread that were lost before it
    std::uint32_t domain = 0;   // number in the log
    std::uint16_t level = 0;
    bool bad_time = false;
    std::uint64_t path = 0;  // of it and those around it
  };
  struct PathChange {
    std::int64_t ts_ns = INT64_MAX;
    std::uint64_t path = 0;
  };
  static constexpr std::size_t kPathsKept = 128;  // collectors store 32 records of a thread at a time
  struct Thread {
    std::vector<Open> stack;
    std::int64_t last_ns = 0;
    std::vector<PathChange> paths;  // a ring of the last ones
    std::size_t next_path = 0;
  };

  bool is_repeated(const wire::RangeRecord& event, const Thread& thread);
  void take_mark(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id);
  void take_note(const wire::RangeRecord& event);
  void take_request(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id);
  void take_one(const wire::RangeRecord& event, Thread& thread, trace::Id thread_id);
  Open open(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id);
  void take_nesting(const wire::RangeRecord& event, Thread& thread, trace::Id thread_id);
  static void note_path(const wire::RangeRecord& event, Thread& thread);
  void pop(const wire::RangeRecord& event, Thread& thread, bool bad_time);
  void drop_deeper(const wire::RangeRecord& event, Thread& thread, int level);
  void start(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id);
  void end(const wire::RangeRecord& event);
  void close_open(Open& range, std::int64_t end_ns, trace::Name kind);
  void close_stacks(std::int64_t last_ns);
  void close(trace::RangeRow& row, std::int64_t end_ns, trace::Name kind, bool closed);

  trace::RunWriter& writer_;
  LogNames& names_;
  trace::Id process_id_;
  TimeWindow window_;
  trace::Id& next_id_;
  RequestMarks& requests_;
  trace::Name push_pop_, start_end_, mark_, source_;
  std::unordered_map<std::uint32_t, Thread> threads_;            // by number
  std::unordered_map<trace::Id, const Thread*> threads_of_ids_;  // the same
  std::unordered_map<std::uint64_t, Open> starts_;
  std::unordered_map<std::uint64_t, std::int64_t> early_ends_;  // the end was stored before the start
  std::int64_t continued_ns_ = 0;
  std::set<std::int64_t> declarations_;  // of the model and of how ranks divide it: their times
  RangeCounts counts_;
};

}  // namespace llmprof::record

#pragma once
// Hardware counters and sampled stalls of a process to rows.

#include <cstdint>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

class Ledger;

struct CounterPlace {
  trace::OptionalId process_id, thread_id;  // none: of the device, whoever worked on it
  trace::Id device_id = 0;
};

// Windows that hardware counters were read over, and their values, to rows. A measurement is its windows (one a pass)
// and the values that come after the last of them; the kernel or graph launch that a window is of is found by its
// correlation id, and may come before or long after it, or never: then the values are the window's. So measurements
// wait, the newest of them, until they are written: numbers that nothing explains, values without windows and windows
// without values are counted.
class CudaCounters {
 public:
  CudaCounters(trace::RunWriter& writer, trace::Id& next_id) : writer_(writer), next_id_(next_id) {}

  void window(const wire::CounterWindowRecord& record, trace::Name name, const CounterPlace& place);
  // A window that is not kept: its values are not missed.
  void dropped(std::uint32_t measurement);
  void value(std::uint32_t measurement, trace::Name metric, double value);

  void kernel_ran(std::uint32_t correlation, trace::Id kernel_id) {
    if (Execution* wanted = find(correlation)) wanted->kernel_id = kernel_id;
  }
  void graph_ran(std::uint32_t correlation, trace::Id graph_launch_id) {
    if (Execution* wanted = find(correlation)) wanted->graph_launch_id = graph_launch_id;
  }

  // Whether the older half must be written before more is taken.
  bool full() const { return open_.size() >= kMostOpen || kept_ >= kMostKept; }
  void write_older_half();
  void write_all();

  std::int64_t unknown() const { return unknown_; }
  std::int64_t written() const { return written_; }  // measurements with values
  void add_losses(Ledger& ledger, trace::OptionalId process_id) const;

 private:
  static constexpr std::size_t kMostOpen = 1u << 16, kMostKept = 1u << 20;
  static constexpr std::size_t kMostValues = 4096;  // of one measurement

  struct Window {
    trace::CounterWindowRow row;
    std::uint32_t correlation;
  };
  struct Value {
    trace::Name metric;
    double value;
  };
  struct Measurement {
    std::vector<Window> windows;
    std::vector<Value> values;
    wire::CounterScope scope{};
    std::uint8_t passes = 0;
    bool dropped = false;
  };
  struct Execution {  // that a window waits for
    trace::OptionalId kernel_id, graph_launch_id;
  };

  Execution* find(std::uint32_t correlation) {
    if (wanted_.empty()) return nullptr;
    const auto found = wanted_.find(correlation);
    return found == wanted_.end() ? nullptr : &found->second;
  }
  Measurement& open(std::uint32_t number);
  void write_oldest();
  void write(Measurement& measurement);
  trace::Id write_windows(Measurement& measurement, trace::OptionalId& kernel_id);
  void write_values(const Measurement& measurement, trace::Id scope_id);
  trace::Name unit_of(trace::Name metric);
  void count(std::map<trace::Id, std::int64_t>& counts, trace::Name name);

  trace::RunWriter& writer_;
  trace::Id& next_id_;
  std::unordered_map<std::uint32_t, Measurement> open_;
  std::deque<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, Execution> wanted_;   // by correlation
  std::unordered_map<std::uint32_t, trace::Name> units_;  // by the metric's name
  // By name: metrics that the device gave no value of, and what was measured without coming to values.
  std::map<trace::Id, std::int64_t> empty_, in_vain_;
  std::size_t kept_ = 0;  // windows and values of all that is open
  std::int64_t unknown_ = 0, written_ = 0, without_window_ = 0;
};

// The unit that the chip's own name of a metric says: "dram__bytes_read.sum" counts bytes; "" where it says none.
std::string_view metric_unit(std::string_view metric);

// Where warps were seen, and why they waited: what a process's log says bit by bit, added up to one row a place and
// reason.
class RunWriter;

class CudaStalls {
 public:
  struct Names {
    trace::Name kernel, reason, file;
  };
  void take(const wire::StallRecord& record, const Names& names, trace::Id device_id);
  void write(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id);
  std::int64_t lost() const { return lost_; }  // samples at more places than are kept

 private:
  static constexpr std::size_t kMostPlaces = 1u << 20;

  struct Place {
    std::uint64_t cubin, pc_offset;
    trace::Id device_id;
    std::uint32_t kernel, reason;
    bool issued;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
  };
  struct Seen {
    std::int64_t samples = 0;
    trace::Name file;
    std::uint32_t line = 0;
  };
  std::unordered_map<Place, Seen, Hash> places_;
  std::int64_t lost_ = 0;
};

}  // namespace llmprof::record

#pragma once
// The one join of what devices did with the calls of the host that launched it, for every source of rows: our own logs,
// Kineto, Nsight. Sources differ in how they find the launch of an execution (by correlation id, in the order their
// records come); what is then known of kernels, copies and launches of graphs is the same, and is said here.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "trace/rows.h"

namespace llmprof::trace {

// A call of the host that makes a device work.
struct Launch {
  Id thread_id = 0;  // 0: unknown
  std::int64_t begin_ns = 0;
  OptionalInt end_ns;  // none: it was not seen
  Id stack_id = 0;     // 0: none
};

inline OptionalId unless_0(Id id) { return id == 0 ? OptionalId() : OptionalId(id); }

// Joins a row of kernel, copy or graph_launch to its launch; nullptr: the launch was not seen.
template <class Row>
void set_launch(Row& row, const Launch* launch) {
  if (launch == nullptr) return;
  row.thread_id = launch->thread_id;
  row.launch_begin_ns = launch->begin_ns;
  row.launch_end_ns = launch->end_ns;
  row.stack_id = unless_0(launch->stack_id);
}

// A launch of an executable graph. One that was recorded as a whole has its own times; one that was recorded node by
// node lasts from the begin of its first node to the end of its last.
struct GraphLaunch {
  GraphLaunchRow row;
  bool whole = false;

  template <class Work>  // the row of a kernel or copy, or a GraphLaunchRow with what is known of the launch
  GraphLaunch(Id id, Id graph, const Work& first, const Launch* launch) {
    row.id = id;
    row.begin_ns = first.begin_ns;
    row.end_ns = first.end_ns;
    row.graph = graph;
    row.device_id = first.device_id;
    row.stream = first.stream;
    set_launch(row, launch);
  }
  void add_node(std::int64_t begin_ns, std::int64_t end_ns) {
    row.nodes_recorded = true;
    if (whole) return;
    row.begin_ns = std::min(row.begin_ns, begin_ns);
    row.end_ns = std::max(row.end_ns, end_ns);
  }
  void set_whole(std::int64_t begin_ns, std::int64_t end_ns) {
    whole = true;
    row.begin_ns = begin_ns;
    row.end_ns = end_ns;
  }
};

// Launches of graphs by a number (correlation id, of a process), the newest of them: their nodes come one by one.
class GraphLaunches {
 public:
  explicit GraphLaunches(std::size_t most) : most_(most) {}

  GraphLaunch* find(std::uint64_t number) {
    const auto found = open_.find(number);
    return found == open_.end() ? nullptr : &found->second;
  }
  bool full() const { return open_.size() >= most_; }
  GraphLaunch& add(std::uint64_t number, const GraphLaunch& launch) {
    order_.push_back(number);
    return open_.emplace(number, launch).first->second;
  }
  template <class Writer>
  void write_oldest(Writer& writer) {
    const auto found = open_.find(order_.front());
    writer.add(found->second.row);
    ++written_;
    open_.erase(found);
    order_.pop_front();
  }
  template <class Writer>
  void write_all(Writer& writer) {
    while (!order_.empty()) write_oldest(writer);
  }
  std::int64_t written() const { return written_; }

 private:
  std::size_t most_;
  std::unordered_map<std::uint64_t, GraphLaunch> open_;
  std::deque<std::uint64_t> order_;  // in which they began
  std::int64_t written_ = 0;
};

}  // namespace llmprof::trace

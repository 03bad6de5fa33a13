#pragma once
// Launches of executable graphs. One that was recorded as a whole has its own times; one that was recorded node by node
// lasts from the begin of its first node to the end of its last. The newest are kept until their nodes are all in.

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "record/cuda_launches.h"
#include "trace/rows.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

class CudaGraphLaunches {
 public:
  explicit CudaGraphLaunches(trace::RunWriter& writer) : writer_(writer) {}

  struct Execution {
    std::uint32_t correlation = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    trace::Id graph = 0, device_id = 0;
    std::int64_t stream = 0;
  };
  // The graph as a whole. Returns the launch's id.
  trace::Id whole(const Execution& execution, const CudaLaunch* launch, trace::Id& next_id);
  // One of its nodes. Returns the launch's id.
  trace::Id node(const Execution& execution, const CudaLaunch* launch, trace::Id& next_id);
  void write_all();

  std::int64_t written() const { return count_; }

 private:
  static constexpr std::size_t kKept = 1u << 12;

  struct Open {
    trace::GraphLaunchRow row;
    bool whole = false;
  };
  Open& find(const Execution& execution, const CudaLaunch* launch, trace::Id& next_id);
  void write_oldest();

  trace::RunWriter& writer_;
  std::unordered_map<std::uint32_t, Open> open_;  // by correlation
  std::deque<std::uint32_t> order_;
  std::int64_t count_ = 0;
};

}  // namespace llmprof::record

#pragma once
// The nodes of a process's CUDA graphs. A node that runs is a clone of one that was captured, perhaps through several
// others; what was known at capture (thread, time, name, stack, matrix product) is the original's.

#include <cstdint>
#include <unordered_map>

#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

// Graphs by the number CUPTI gives them: numbers of the run.
class CudaGraphs {
 public:
  struct Graph {
    trace::Id id = 0;
    bool launched = false;
  };
  // 0: there are too many.
  trace::Id id(std::uint32_t number, trace::Id& next_id) { return find(number, next_id).id; }
  trace::Id launched(std::uint32_t number, trace::Id& next_id);
  bool was_launched(std::uint32_t number) const;

 private:
  static constexpr std::size_t kMost = 1u << 20;
  Graph& find(std::uint32_t number, trace::Id& next_id);
  std::unordered_map<std::uint32_t, Graph> graphs_;
  Graph none_;
};

class CudaGraphNodes {
 public:
  struct Node {
    trace::Id id = 0;
    std::uint64_t number = 0;
    std::uint64_t cloned_from = 0;
    std::int64_t created_ns = 0;
    trace::Id thread_id = 0;
    trace::Id stack_id = 0;  // 0: none
    trace::Id gemm_id = 0;   // 0: none
    trace::Name name;
    std::uint32_t graph = 0;
    wire::GraphNodeKind kind = wire::GraphNodeKind::kUnknown;
    bool announced = false;
    bool ran = false;
  };

  // The node of this number, new if it was not known; nullptr if there are too many.
  Node* take(std::uint64_t number, trace::Id& next_id);
  // Itself if it is no clone; nullptr if the chain is broken, or a circle.
  const Node* original(const Node& node) const;
  void write(trace::RunWriter& writer, CudaGraphs& graphs, trace::Id& next_id) const;

 private:
  static constexpr std::size_t kMost = 1u << 20;
  const Node* find(std::uint64_t number) const;
  std::unordered_map<std::uint64_t, Node> nodes_;
};

}  // namespace llmprof::record

#pragma once
// The nodes of a process's CUDA graphs. A node that runs is a clone of one that was captured, perhaps through several
// others; what was known at capture (thread, time, name, stack, matrix product) is the original's.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {

class RunWriter;
}

namespace llmprof::record {

// Graphs by the number CUPTI gives them: numbers of the run. An executable that is updated so that its nodes run other
// kernels, or were captured elsewhere in the program, is another graph from then on: it has a number of the run for
// each of its versions. A program that goes back to what it ran before goes back to that version.
class CudaGraphs {
 public:
  // 0: there are too many.
  trace::Id id(std::uint32_t number, std::uint32_t version, trace::Id& next_id);
  trace::Id launched(std::uint32_t number, std::uint32_t version, trace::Id& next_id);
  bool was_launched(std::uint32_t number, std::uint32_t version) const;

  // A thread launches it; before the update that was made after it is taken.
  void launch_called(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id);
  std::uint32_t version_at(std::uint32_t number, std::int64_t at_ns) const;
  std::uint32_t newest(std::uint32_t number) const;
  // False: it was taken before.
  bool takes_update(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id);
  // The version that an update at this time changes: a new one, unless nobody launched the newest.
  std::uint32_t version_for_update(std::uint32_t number, std::int64_t at_ns, trace::Id& next_id);
  // One more version, and there are as many as may be. The last is for what is not known.
  bool is_almost_full(std::uint32_t number) const;

  // What tells versions apart (CudaGraphNodes::provenance).
  void set_provenance(std::uint32_t number, std::uint32_t version, std::uint64_t provenance);
  std::optional<std::uint32_t> version_with(std::uint32_t number, std::uint64_t provenance) const;
  std::optional<std::uint64_t> provenance(std::uint32_t number, std::uint32_t version) const;
  // From this time on the executable is this version again.
  void go_back(std::uint32_t number, std::uint32_t version, std::int64_t at_ns);

 private:
  static constexpr std::size_t kMost = 1u << 20, kMostVersions = 256, kMostLaunches = 4096;
  struct Version {
    trace::Id id = 0;
    std::optional<std::uint64_t> provenance;
    std::uint32_t times = 1;  // that the executable became it
    bool launched = false;
  };
  struct Since {
    std::int64_t ns = INT64_MIN;
    std::uint32_t version = 0;
  };
  struct Graph {
    std::vector<Version> versions;
    std::vector<Since> since{Since{}};      // in the order of time
    std::vector<std::int64_t> launches;     // calls, the last ones
    std::int64_t forgotten_ns = INT64_MIN;  // there were calls up to then
    std::int64_t updated_ns = INT64_MIN;
  };
  Graph* find(std::uint32_t number, trace::Id& next_id);
  const Graph* find(std::uint32_t number) const;
  std::unordered_map<std::uint32_t, Graph> graphs_;
};

class CudaGraphNodes {
 public:
  struct Node {
    trace::Id id = 0;
    std::uint64_t number = 0;
    std::uint64_t made_from = 0;    // the node that it was made as a clone of
    std::uint64_t cloned_from = 0;  // the one that it runs the kernel of: another after an update
    std::int64_t created_ns = 0;
    trace::Id thread_id = 0;
    trace::Id stack_id = 0;  // 0: none
    trace::Id gemm_id = 0;   // 0: none
    trace::Name name;
    std::uint64_t path = 0;        // of the ranges that it was captured in (RangePairing::path_at)
    std::uint64_t gemm_shape = 0;  // a number for the function, types and sizes of the product; 0: none
    std::uint32_t graph = 0;
    std::uint32_t version = 0;  // of the graph
    wire::GraphNodeKind kind = wire::GraphNodeKind::kUnknown;
    bool announced = false;
    bool ran = false;
    std::int64_t unknown_runs = 0;  // executions of a node whose original was not known
  };

  // The node of this number, new if it was not known; nullptr if there are too many.
  Node* take(std::uint64_t number, std::uint32_t version, trace::Id& next_id);
  // A node is known to be in a graph.
  void place(Node& node, std::uint32_t graph);
  // A clone keeps the kernel that its original has now.
  void inherit_name(Node& node) const { node.name = name_of(node); }
  // Itself if it is no clone; nullptr if the chain is broken, or a circle.
  const Node* original(const Node& node) const;
  // CUPTI announces no nodes for what is inside of child graphs and branches of an executable, but their kernels run
  // with their names. Those that one graph, which is not launched by itself, has as many of as ran, are that graph's.
  // Returns how many executions are known by that.
  std::int64_t adopt_nested(const CudaGraphs& graphs);
  void write(trace::RunWriter& writer, CudaGraphs& graphs, trace::Id& next_id) const;

  // What a node of an executable runs from an update on: a kernel, or what a node of another graph does; neither:
  // unknown.
  struct Change {
    std::uint64_t number = 0;
    trace::Name name;
    std::uint64_t source = 0;
  };
  // What the parameters of a node's clone change; nothing if they name the kernel that it runs.
  std::vector<Change> set_kernel(std::uint32_t graph, std::uint32_t version, std::uint64_t node,
                                 trace::Name name) const;
  void set_kernel(std::uint64_t node, trace::Name name);  // of a node that is no clone
  std::size_t members_of(std::uint32_t graph) const;      // nodes at most
  // What an executable's nodes become by those of another graph. If they have not as many, nobody knows which becomes
  // which: all are unknown.
  std::vector<Change> update(std::uint32_t graph, std::uint32_t source) const;
  std::vector<Change> forget(std::uint32_t graph) const;  // all nodes are unknown
  // A number for what is known of an executable's nodes after the changes: kernels, ranges, stacks and products of
  // their captures. The time of capture is no part of it: programs capture the same again and again.
  std::uint64_t provenance(std::uint32_t graph, std::uint32_t version, const std::vector<Change>& changes) const;
  struct Time {
    std::int64_t ns = 0;
    trace::Id thread_id = 0, stack_id = 0;
  };
  void apply(const std::vector<Change>& changes, std::uint32_t graph, std::uint32_t from, std::uint32_t to,
             const Time& when, trace::Id& next_id);

 private:
  static constexpr std::size_t kMost = 1u << 20;
  struct Key {
    std::uint64_t number;
    std::uint32_t version;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()(key.number ^ (std::uint64_t{key.version} << 48));
    }
  };
  const Node* find(std::uint64_t number, std::uint32_t version = 0) const;
  trace::Name name_of(const Node& node) const;
  std::vector<std::uint64_t> clones_in(std::uint32_t graph) const;
  std::vector<const Node*> members(std::uint32_t graph, std::uint32_t version, bool only_clones) const;

  std::unordered_map<Key, Node, Hash> nodes_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> members_;  // of graphs, as first made
};

}  // namespace llmprof::record

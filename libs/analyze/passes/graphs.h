#pragma once
// CUDA graphs whose launches were mostly recorded as one interval each: where their nodes execute inside such a launch,
// told from the few launches that were recorded node by node. docs/format/analysis.md, "Graphs".

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyze/passes/kernel_class.h"
#include "analyze/passes/ranges.h"
#include "trace/schema.h"

namespace llmprof::analyze {

enum class NodeKind : std::uint8_t { kKernel, kCopy, kOther };

// One entry per node of every graph of the run, by id.
struct GraphNodes {
  std::vector<std::int64_t> id, graph, captured_node, captured_ns, thread_id, gemm_id;  // kNull if unknown
  std::vector<NodeKind> kind;
  std::vector<KernelClass> is;  // by its name; empty: nobody asked
  std::size_t size() const { return id.size(); }
};

// Launches of executable graphs, by begin.
struct GraphLaunches {
  std::vector<std::int64_t> id, begin_ns, end_ns, thread_id, launch_begin_ns, device_id, graph, nodes_recorded;
  std::size_t size() const { return id.size(); }
};

// When a node executes after the begin of its launch: medians over the launches it was measured in.
struct NodeTimes {
  std::vector<std::int64_t> node_id, graph, begin_ns, end_ns, samples;
  std::size_t size() const { return node_id.size(); }
};

// Where a share is known from: launches of the same graph, of another executable of the same capture, or the same
// kernels launched one by one or in other graphs (eager_times).
enum class ShareBasis : std::uint8_t { kSameGraph, kSameCapture, kKernelsOutside, kOtherGraphs };

struct NodeShare {
  std::int64_t node_id = 0;
  double begin = 0, end = 0;  // of the launch's duration
  std::int64_t samples = 0;   // launches, or runs of the kernels outside, it was measured in
  ShareBasis basis = ShareBasis::kSameGraph;
  double confidence() const;
  double length() const { return end - begin; }
};

// The nodes of one executable graph by begin. The first begins with the launch and the last ends with it.
struct GraphShares {
  std::vector<NodeShare> nodes;
  std::int64_t kernels = 0;  // of the nodes
  double kernel_time = 0;    // their lengths added up, of the launch's duration
  double busy = 0;           // of the launch's duration, with a kernel executing
};

// By executable graph. `typical_ns`: the median duration of its launches without recorded nodes. Recording nodes makes
// the gaps between them longer, not the nodes: so gaps give the difference between a recorded and a typical launch.
using SharesOfGraphs = std::unordered_map<std::int64_t, GraphShares>;
SharesOfGraphs shares_of(const GraphNodes& nodes, const NodeTimes& times,
                         const std::unordered_map<std::int64_t, std::int64_t>& typical_ns);

// Of a graph none of whose launches were recorded node by node: its nodes one after the other, each as long as its
// kernel took elsewhere, filling the launch.
struct NodeSequence {
  std::vector<std::int64_t> node_ids;
  std::vector<double> duration_ns;
  std::int64_t samples = 0;
  ShareBasis basis = ShareBasis::kKernelsOutside;
};
GraphShares shares_of_sequence(const NodeSequence& sequence, const GraphNodes& all);

// Who owns the time of a launch: parts of its duration that add up to 1, as `step_time` wants them.
struct MixPart {
  NodeKind kind = NodeKind::kKernel;  // kOther: no node executes
  trace::Name op;
  double share = 0;
};
using Mix = std::vector<MixPart>;
// `op_of_node` by node id. Of nodes that execute at the same time the one that began first owns it.
Mix mix_of(const GraphShares& shares, const GraphNodes& nodes,
           const std::unordered_map<std::int64_t, trace::Name>& op_of_node);

// How long the kernels of a CUDA graph take, told from the same kernels launched one by one: programs run a step that
// way before they capture it. Without a launch recorded node by node this is what a graph's time is divided by.

// Kernels outside graphs, of one process, in order of their launch. Names as codes.
struct EagerKernels {
  std::vector<std::uint32_t> name;
  std::vector<std::int64_t> duration_ns;
  std::size_t size() const { return name.size(); }
};

struct EagerTimes {
  std::vector<double> duration_ns;  // of each kernel of the graph; 0: unknown
  std::int64_t sequences = 0;       // times that all kernels were seen in the order of the graph
  double known = 0;                 // part of the graph's kernels whose duration is known
};

// `graph`: names of the kernels of a graph, in the order they were captured. Where the whole sequence was seen, each
// kernel has its mean over the last of them; else the mean of all kernels of its name.
EagerTimes eager_times(const std::vector<std::uint32_t>& graph, const EagerKernels& kernels);

}  // namespace llmprof::analyze

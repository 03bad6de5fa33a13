#pragma once
// CUDA graphs: their nodes as they come into being, and which launches are recorded node by node.

#include "collect/cuda/cupti_abi.h"
#include "collect/cuda/driver_calls.h"

namespace llmprof::collect {

void start_graphs();
void finish_graphs();  // says what was not recorded, and why

// On the thread that makes, clones or instantiates a graph.
void on_graph_resource(std::uint32_t id, const cupti::GraphData& data);

// What describes a node in a call.
struct NodeDescription {
  const void* parameters;
  cupti::NodeParameters layout;
};
// The name of the kernel that a node is about to be made for by hand; null: it is none, or unknown.
const char* kernel_of_node(const NodeDescription& description);

// The parameters of a node were set: in an executable, or (0) in the graph that it is in.
void kernel_is_set(std::uint64_t executable, std::uint64_t node, const NodeDescription& description);
// The nodes of an executable took the parameters of another graph's.
void graph_is_updated(std::uint64_t executable, std::uint64_t graph);

struct GraphCall {
  std::uint64_t executable, stream;
  void* context;
  bool own_default;  // stream 0 is the thread's own
};
// Around cuGraphLaunch, on the thread that launches: the id of the executable graph, 0 if it is unknown.
std::uint32_t graph_launch_begins(const GraphCall& call);
void graph_launch_ended(const GraphCall& call);
// Before cuGraphUpload, which is a launch to us but for its records: it ends as one.
void graph_upload_begins(const GraphCall& call);

// Around every call that makes an executable graph.
void instantiation_begins();
void instantiation_ended();

// Around every capture of a stream; the end may be told more than once.
void graphs_capture_begins();
void graphs_capture_ended();

// Around switching of other kinds of activity (recording.h). False: not now, what is recorded of graphs is in between.
bool hold_graphs();
void release_graphs();
// Kinds of device work stay as they are: graphs are recorded by them, for good.
bool graphs_need_kinds();

// By our thread: what is in between ends, if nothing is in flight. The program may never launch a graph again.
void close_graphs();
bool records_graphs();

void stream_is_destroyed(const void* stream);
void graphs_context_ends(const void* context);  // about to be destroyed

}  // namespace llmprof::collect

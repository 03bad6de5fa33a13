#pragma once
// CUDA graphs: their nodes as they come into being, and which launches are recorded node by node.

#include "collect/cuda/cupti_abi.h"

namespace llmprof::collect {

void start_graphs();

// On the thread that makes, clones or instantiates a graph.
void on_graph_resource(std::uint32_t id, const cupti::GraphData& data);

// Around cuGraphLaunch, on the thread that launches: the id of the executable graph, 0 if it is unknown.
std::uint32_t graph_launch_begins(std::uint64_t executable, std::uint64_t stream);
void graph_launch_ended(std::uint64_t now_ns);

// A thread waited for a stream or for all of them, from this time on, and the wait has ended.
void waited_for_graphs(std::uint64_t stream, bool for_all, std::uint64_t begin_ns);

}  // namespace llmprof::collect

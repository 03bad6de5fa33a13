#pragma once
// The graphs of a run, as the passes want them: their nodes, and where those execute in launches that were not recorded
// node by node.

#include <unordered_map>

#include "analyze/passes/attribute.h"
#include "analyze/passes/graphs.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct GraphFacts {
  GraphNodes nodes;
  SharesOfGraphs shares;
  std::unordered_map<std::int64_t, Mix> mixes;  // by graph
};

Result<GraphFacts> read_graphs(const trace::Run& run);
// Needs the places of the nodes.
void make_mixes(const std::vector<trace::NodePlaceRow>& places, GraphFacts& graphs);
// Rows of node_share.
std::vector<trace::NodeShareRow> node_share_rows(const GraphFacts& graphs, trace::Strings& strings);

}  // namespace llmprof::analyze

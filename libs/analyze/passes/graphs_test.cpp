#include "analyze/passes/graphs.h"

#include <gtest/gtest.h>

#include <numeric>

namespace llmprof::analyze {
namespace {

// Three nodes of graph 7, clones of captured nodes 1, 2, 3; graph 8 holds clones of the same.
GraphNodes two_executables() {
  GraphNodes nodes;
  for (const std::int64_t graph : {7, 8}) {
    for (std::int64_t i = 1; i <= 3; ++i) {
      nodes.id.push_back(graph * 10 + i);
      nodes.graph.push_back(graph);
      nodes.captured_node.push_back(i);
      nodes.captured_ns.push_back(1000 + i);
      nodes.thread_id.push_back(1);
      nodes.gemm_id.push_back(kNull);
      nodes.kind.push_back(i == 3 ? NodeKind::kCopy : NodeKind::kKernel);
    }
  }
  return nodes;
}

// 0…40, 50…70 and 80…90 after the begin of the launch: 70 covered, gaps 20.
NodeTimes measured() {
  return {.node_id = {71, 72, 73},
          .graph = {7, 7, 7},
          .begin_ns = {0, 50, 80},
          .end_ns = {40, 70, 90},
          .samples = {4, 4, 4}};
}

TEST(Shares, GapsShrinkToATypicalLaunch) {
  // A typical launch takes 80: gaps of 10 are 5 each.
  const SharesOfGraphs shares = shares_of(two_executables(), measured(), {{7, 80}});
  ASSERT_EQ(shares.size(), 1u);
  const GraphShares& graph = shares.at(7);
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_DOUBLE_EQ(graph.nodes[0].begin, 0);
  EXPECT_DOUBLE_EQ(graph.nodes[0].end, 40.0 / 80);
  EXPECT_DOUBLE_EQ(graph.nodes[1].begin, 45.0 / 80);
  EXPECT_DOUBLE_EQ(graph.nodes[1].end, 65.0 / 80);
  EXPECT_DOUBLE_EQ(graph.nodes[2].begin, 70.0 / 80);
  EXPECT_DOUBLE_EQ(graph.nodes[2].end, 1);
  EXPECT_EQ(graph.kernels, 2);
  EXPECT_DOUBLE_EQ(graph.kernel_time, 60.0 / 80);
  EXPECT_DOUBLE_EQ(graph.busy, 60.0 / 80);
  EXPECT_DOUBLE_EQ(graph.nodes[0].confidence(), 0.9);
}

TEST(Shares, AnUpdatedGraphIsNotOfTheSameCapture) {
  GraphNodes nodes = two_executables();
  EXPECT_EQ(shares_of(nodes, measured(), {{7, 80}, {8, 80}}).size(), 2u);
  nodes.captured_node[3] = kNull;  // the first node of graph 8 runs another kernel now
  EXPECT_EQ(shares_of(nodes, measured(), {{7, 80}, {8, 80}}).size(), 1u);
}

TEST(Shares, AFastLaunchHasNoGaps) {
  const SharesOfGraphs shares = shares_of(two_executables(), measured(), {{7, 35}});
  const GraphShares& graph = shares.at(7);
  EXPECT_DOUBLE_EQ(graph.nodes[0].end, 40.0 / 70);
  EXPECT_DOUBLE_EQ(graph.nodes[1].begin, 40.0 / 70);
  EXPECT_DOUBLE_EQ(graph.nodes[2].end, 1);
}

TEST(Shares, AnotherExecutableOfTheSameCaptureLendsThem) {
  const SharesOfGraphs shares = shares_of(two_executables(), measured(), {{8, 90}});
  ASSERT_TRUE(shares.contains(8));
  EXPECT_FALSE(shares.contains(7));  // all its launches were recorded node by node
  EXPECT_EQ(shares.at(8).nodes[0].node_id, 81);
  EXPECT_DOUBLE_EQ(shares.at(8).nodes[0].end, 40.0 / 90);
  EXPECT_DOUBLE_EQ(shares.at(8).nodes[0].confidence(), 0.7);
}

TEST(Shares, AGraphThatNobodyRecordedHasNone) {
  EXPECT_TRUE(shares_of(two_executables(), {}, {{7, 80}}).empty());
  EXPECT_TRUE(shares_of(two_executables(), measured(), {{9, 80}}).empty());
}

TEST(Mix, AddsUpToTheLaunch) {
  const GraphNodes nodes = two_executables();
  NodeTimes times = measured();
  times.begin_ns[1] = 20;  // beside the first until 40: that owns it
  const SharesOfGraphs shares = shares_of(nodes, times, {{7, 90}});
  const trace::Name up{1}, down{2};
  const Mix mix = mix_of(shares.at(7), nodes, {{71, up}, {72, down}});
  ASSERT_EQ(mix.size(), 4u);
  EXPECT_EQ(mix[0].op, up);
  EXPECT_DOUBLE_EQ(mix[0].share, 40.0 / 90);
  EXPECT_EQ(mix[1].op, down);
  EXPECT_DOUBLE_EQ(mix[1].share, 30.0 / 90);
  EXPECT_EQ(mix[2].kind, NodeKind::kCopy);
  EXPECT_DOUBLE_EQ(mix[2].share, 10.0 / 90);
  EXPECT_EQ(mix[3].kind, NodeKind::kOther);
  EXPECT_DOUBLE_EQ(
      std::accumulate(mix.begin(), mix.end(), 0.0, [](double sum, const MixPart& p) { return sum + p.share; }), 1);
}

}  // namespace
}  // namespace llmprof::analyze

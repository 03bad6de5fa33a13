#include "trace/join.h"

#include <gtest/gtest.h>

#include <vector>

namespace llmprof::trace {
namespace {

struct Rows {
  std::vector<GraphLaunchRow> rows;
  void add(const GraphLaunchRow& row) { rows.push_back(row); }
};

KernelRow kernel(std::int64_t begin_ns, std::int64_t end_ns) {
  KernelRow row;
  row.begin_ns = begin_ns, row.end_ns = end_ns;
  row.device_id = 3;
  row.stream = 7;
  return row;
}

TEST(Join, ARowHasWhatIsKnownOfItsLaunch) {
  KernelRow row;
  set_launch(row, nullptr);
  EXPECT_EQ(row.thread_id, 0);
  EXPECT_FALSE(row.launch_begin_ns || row.stack_id);
  const Launch seen{.thread_id = 5, .begin_ns = 10, .end_ns = std::nullopt, .stack_id = 0};
  set_launch(row, &seen);
  EXPECT_EQ(row.thread_id, 5);
  EXPECT_EQ(row.launch_begin_ns, 10);
  EXPECT_FALSE(row.launch_end_ns || row.stack_id) << "an end that was not seen, no stack";
}

TEST(Join, AGraphLaunchLastsFromItsFirstNodeToItsLast) {
  const Launch launch{.thread_id = 5, .begin_ns = 10, .end_ns = 12, .stack_id = 9};
  GraphLaunch graph(1, 2, kernel(100, 200), &launch);
  graph.add_node(50, 80);
  graph.add_node(150, 300);
  EXPECT_EQ(graph.row.begin_ns, 50);
  EXPECT_EQ(graph.row.end_ns, 300);
  EXPECT_TRUE(graph.row.nodes_recorded);
  EXPECT_EQ(graph.row.stack_id, 9);
  EXPECT_EQ(graph.row.stream, 7);
}

TEST(Join, AGraphRecordedAsAWholeKeepsItsOwnTimes) {
  GraphLaunch graph(1, 2, kernel(100, 200), nullptr);
  graph.set_whole(90, 400);
  graph.add_node(50, 500);
  EXPECT_EQ(graph.row.begin_ns, 90);
  EXPECT_EQ(graph.row.end_ns, 400);
}

TEST(Join, TheOldestLaunchGivesWay) {
  GraphLaunches launches(2);
  Rows out;
  for (const std::uint64_t number : {7u, 8u}) launches.add(number, {static_cast<Id>(number), 1, kernel(0, 1), nullptr});
  ASSERT_TRUE(launches.full());
  launches.write_oldest(out);
  EXPECT_EQ(launches.find(7), nullptr);
  ASSERT_NE(launches.find(8), nullptr);
  launches.write_all(out);
  EXPECT_EQ(launches.written(), 2);
  ASSERT_EQ(out.rows.size(), 2u);
  EXPECT_EQ(out.rows[0].id, 7);
}

}  // namespace
}  // namespace llmprof::trace

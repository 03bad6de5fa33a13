#include "analyze/passes/sums.h"

#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

TEST(KernelSums, AddsUpWhatIsAlike) {
  trace::Strings strings;
  const trace::Name decode = strings.intern("decode"), mlp = strings.intern("mlp");
  std::vector<trace::KernelSumRow> rows;
  KernelSums sums(strings, [&](const trace::KernelSumRow& row) { rows.push_back(row); });
  const Kernels kernels{.id = {1, 2, 3, 4},
                        .begin_ns = {0, 10, 20, 30},
                        .end_ns = {5, 16, 27, 38},
                        .launch_begin_ns = {0, 1, 2, kNull},
                        .device_id = {1, 1, 1, 1},
                        .gemm_id = {kNull, kNull, kNull, kNull},
                        .graph_node_id = {kNull, kNull, kNull, kNull},
                        .launch_end_ns = {3, 3, kNull, kNull},
                        .stream = {7, 7, 7, 7},
                        .graph_launch_id = {kNull, kNull, kNull, 9},
                        .stack_id = {kNull, kNull, kNull, kNull},
                        .name = {1, 1, 1, 2},
                        .texts = {"", "norm", "copy"}};
  const trace::AttributionRow in_step{.step_id = 1, .stage = decode, .module = mlp};
  const trace::AttributionRow call{.step_id = 2, .stage = decode, .module = mlp, .gemm_call = true};
  sums.add(kernels, {in_step, call, in_step, trace::AttributionRow{}});
  EXPECT_TRUE(rows.empty());
  sums.finish();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(strings.text(rows[0].name), "norm");
  EXPECT_TRUE(rows[0].in_step);
  EXPECT_EQ(rows[0].kernels, 3);
  EXPECT_EQ(rows[0].gemm_calls, 1);
  EXPECT_EQ(rows[0].time_ns, 5 + 6 + 7);
  EXPECT_EQ(rows[0].launches, 3);
  EXPECT_EQ(rows[0].timed_launches, 2);
  EXPECT_EQ(rows[0].launch_ns, 3 + 2);
  EXPECT_FALSE(rows[1].in_step);
  EXPECT_EQ(rows[1].launches, 0);  // of a graph
  EXPECT_EQ(rows[1].time_ns, 8);
}

TEST(RangeSums, AddsUpWhatIsAlikeAndCountsSteps) {
  trace::Strings strings;
  const trace::Name module = strings.intern("module"), mlp = strings.intern("mlp");
  const std::vector<std::optional<std::int64_t>> passes{7, 7, std::nullopt};
  RangeSums sums(passes);
  const auto add = [&](std::int64_t id, std::optional<std::int64_t> step) {
    sums.add({.range_id = id, .kind = module, .step_id = step, .module = mlp, .total_ns = 10, .self_ns = 4});
  };
  for (const std::int64_t id : {12, 11}) add(id, 1);  // twice in one step
  add(13, 2);
  add(14, 1);  // of another thread, read later
  add(15, 3);  // its size is unknown
  add(16, {});
  const std::vector<trace::RangeSumRow> rows = sums.finish();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].pass_id, 7);
  EXPECT_EQ(rows[0].first_range, 11);
  EXPECT_EQ(rows[0].ranges, 4);
  EXPECT_EQ(rows[0].steps, 2);
  EXPECT_EQ(rows[0].total_ns, 40);
  EXPECT_EQ(rows[0].self_ns, 16);
  EXPECT_TRUE(rows[1].in_step);
  EXPECT_FALSE(rows[1].pass_id.has_value());
  EXPECT_FALSE(rows[2].in_step);
}

}  // namespace
}  // namespace llmprof::analyze

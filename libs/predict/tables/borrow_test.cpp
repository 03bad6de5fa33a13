#include "predict/tables/borrow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/change.h"
#include "model/testing/tiny.h"
#include "predict/tables/jumps.h"

namespace llmprof::predict {
namespace {

using testing::ElementsAre;

// 1 FLOP and 1 byte each take 1 ns.
const std::vector<hw::Peak> kOneEach{{"flops", "float32", 1e9, "FLOP/s", "spec", "test"},
                                     {"bandwidth", "read", 1e9, "B/s", "spec", "test"}};

double at_one(const OperatorTables& tables, const char* op) {
  const Grid* grid = tables.find(op);
  return grid == nullptr ? -1 : grid->all().front().ns;
}

// The products of q, k and v of hidden 8, of one row, in float32. q: 8 x 8 weights, 8 values in and 8 out: 320 bytes;
// k and v of 2 heads: 8 x 4 weights, 8 in, 4 out: 176 each; of 1 head: 8 x 2, 8 in, 2 out: 104 each. 672 and 528 in
// all, more than their FLOPs.
TEST(BorrowedTables, OperatorsFollowTheirFloorsOrStayAsTheyAre) {
  const model::Config before = model::tiny_llama();
  model::Config after = before;
  ASSERT_TRUE(model::change(after, "kv_heads", "1"));
  const DeviceRoof roof = roof_for(before, kOneEach, "test", 1);
  OperatorTables measured;
  const std::array<double, 1> one{1};
  ASSERT_TRUE(measured.add("qkv_proj", one, 3 * 672));
  ASSERT_TRUE(measured.add("o_proj", one, 5000));
  const TablesOf was{before, {}, roof}, is{after, {}, roof};
  const auto in_proportion = borrow_tables(measured, was, is, Follows::kInProportion);
  const auto by_difference = borrow_tables(measured, was, is, Follows::kByDifference);
  ASSERT_TRUE(in_proportion && by_difference);
  EXPECT_DOUBLE_EQ(at_one(in_proportion->tables, "qkv_proj"), 3 * 528);
  EXPECT_DOUBLE_EQ(at_one(by_difference->tables, "qkv_proj"), 3 * 672 - 672 + 528);
  EXPECT_DOUBLE_EQ(at_one(in_proportion->tables, "o_proj"), 5000);
  EXPECT_THAT(in_proportion->scaled, ElementsAre("qkv_proj"));
}

TEST(BorrowedTables, MoreLayersAreTheSameOperators) {
  const model::Config before = model::tiny_llama(2), after = model::tiny_llama(3);
  const DeviceRoof roof = roof_for(before, kOneEach, "test", 1);
  OperatorTables measured;
  ASSERT_TRUE(measured.add("qkv_proj", std::array<double, 1>{1}, 2000));
  const auto borrowed = borrow_tables(measured, {before, {}, roof}, {after, {}, roof}, Follows::kInProportion);
  ASSERT_TRUE(borrowed);
  EXPECT_TRUE(borrowed->scaled.empty());
  EXPECT_DOUBLE_EQ(at_one(borrowed->tables, "qkv_proj"), 2000);
}

// Two products that take 1 us for up to 4 rows and 3 us for 8: twice the rows, three times the time. From 8 to 16 the
// time doubles with the rows, which is no jump.
TEST(RowJumps, WhereRowsTakeMoreTimeEach) {
  StepCostInput input;
  input.config = model::tiny_llama();
  input.roof = roof_for(input.config, kOneEach, "test", 1);
  for (const char* op : {"qkv_proj", "o_proj"}) {
    for (const auto& [rows, ns] : {std::pair{1.0, 1e6}, {2.0, 1e6}, {4.0, 1e6}, {8.0, 3e6}, {16.0, 6e6}})
      ASSERT_TRUE(input.tables.add(op, std::array{rows}, ns));
  }
  ASSERT_TRUE(input.tables.add("qkv_proj", std::array{12.0}, 9e6));  // of one of them only: no sum
  const auto cost = TableStepCost::make(std::move(input));
  ASSERT_TRUE(cost) << cost.error().message;
  const std::vector<RowJump> jumps = row_jumps(**cost);
  ASSERT_EQ(jumps.size(), 1U);
  EXPECT_EQ(jumps[0].rows_below, 4);
  EXPECT_EQ(jumps[0].rows_above, 8);
  EXPECT_DOUBLE_EQ(jumps[0].ns_below, 2 * 2e6);  // two products in each of two layers
  EXPECT_DOUBLE_EQ(jumps[0].ns_above, 2 * 6e6);
}

}  // namespace
}  // namespace llmprof::predict

#include "bench/operator.h"

#include <gtest/gtest.h>

namespace llmprof::bench {
namespace {

TEST(Problem, NamesItsSizes) {
  const Problem problem{"gemm", Type::kBfloat16, {{"m", 1}, {"n", 4096}}};
  EXPECT_EQ(problem.key(), "gemm bfloat16 m=1 n=4096");
  EXPECT_EQ(problem.with("m", 8).at("m"), 8);
  EXPECT_EQ(problem.at("n"), 4096);
}

TEST(Operators, AreWellFormed) {
  for (const Operator* op : operators()) {
    SCOPED_TRACE(op->name);
    EXPECT_EQ(find_operator(op->name), op);
    EXPECT_FALSE(op->types.empty());
    EXPECT_NE(op->tensors, nullptr);
    EXPECT_NE(op->work, nullptr);
    EXPECT_NE(op->small, nullptr);
    EXPECT_NE(op->reference, nullptr);
    EXPECT_NE(op->cpu, nullptr);
    for (const AxisSpec& axis : op->axes) EXPECT_TRUE(base::parse_axis_values(axis.fallback)) << axis.name;
    const Result<Problem> problem = make_problem(*op, op->types.front(), {});
    ASSERT_TRUE(problem) << problem.error().message;
    EXPECT_GT(op->work(*problem).bytes(), 0);
    // The small problem is one of the same operator, and not larger.
    const Problem small = op->small(*problem);
    EXPECT_TRUE(make_problem(*op, small.type, small.axes));
    for (const auto& [name, value] : small.axes) EXPECT_LE(value, problem->at(name)) << name;
  }
}

TEST(Operators, RefuseWhatTheyDoNotHave) {
  const Operator& op = *find_operator("residual_add");
  const std::pair<std::string, std::int64_t> unknown[] = {{"heads", 8}}, zero[] = {{"hidden", 0}};
  EXPECT_EQ(make_problem(op, Type::kFloat32, unknown).error().message, "residual_add has no axis heads");
  EXPECT_EQ(make_problem(op, Type::kFloat32, zero).error().message, "residual_add: hidden = 0 is less than 1");
}

}  // namespace
}  // namespace llmprof::bench

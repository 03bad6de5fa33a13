#include "bench/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/operator.h"

namespace llmprof::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorSpec tensor(Type type, std::int64_t elements, Fill fill = {}) {
  return {.name = "t", .role = Role::kIn, .type = type, .elements = elements, .fill = fill};
}

// y = 2 x in each type, right or wrong in a way.
std::vector<TensorSpec> doubling_tensors(const Problem& problem) {
  return {{.name = "x", .role = Role::kIn, .type = problem.type, .elements = problem.at("n")},
          {.name = "y", .role = Role::kOut, .type = problem.type, .elements = problem.at("n")}};
}
void doubling_reference(const Problem&, std::span<std::vector<double>> t) {
  for (std::size_t i = 0; i < t[0].size(); ++i) t[1][i] = 2 * t[0][i];
}
template <int kUnwritten, int kWrongPercent>
void doubling_cpu(const Problem& problem, std::span<std::byte* const> t, const Team&) {
  const auto* x = reinterpret_cast<const float*>(t[0]);
  auto* y = reinterpret_cast<float*>(t[1]);
  for (std::int64_t i = 0; i < problem.at("n") - kUnwritten; ++i) y[i] = x[i] * (2 + 0.02f * kWrongPercent);
}
Operator doubling(void (*cpu)(const Problem&, std::span<std::byte* const>, const Team&)) {
  Operator op;
  op.name = "doubling";
  op.tensors = doubling_tensors;
  op.reference = doubling_reference;
  op.cpu = cpu;
  return op;
}
const Problem kTen{.op = "doubling", .type = Type::kFloat32, .axes = {{"n", 10}}};

TEST(Check, RightIsRight) { EXPECT_EQ(check_on_cpu(doubling(doubling_cpu<0, 0>), kTen, Team(1), 1), 0); }

TEST(Check, OnePercentWrongIsOnePercent) {
  EXPECT_NEAR(check_on_cpu(doubling(doubling_cpu<0, 1>), kTen, Team(1), 1), 0.01, 1e-6);
}

TEST(Check, AnUnwrittenOutputIsInfinitelyWrong) {
  EXPECT_EQ(check_on_cpu(doubling(doubling_cpu<1, 0>), kTen, Team(1), 1), kInfinity);
}

TEST(RelativeError, ByHand) {
  // Difference (0, 0.3, 0.4): 0.5; reference (3, 4, 0): 5.
  EXPECT_NEAR(relative_error(std::vector<double>{3, 4.3, 0.4}, std::vector<double>{3, 4, 0}), 0.1, 1e-12);
  EXPECT_EQ(relative_error(std::vector<double>{0, 0}, std::vector<double>{0, 0}), 0);
  EXPECT_EQ(relative_error(std::vector<double>{0, 1}, std::vector<double>{0, 0}), kInfinity);
  EXPECT_EQ(relative_error(std::vector<double>{1}, std::vector<double>{1, 1}), kInfinity);
}

TEST(RelativeError, WhatIsNotFiniteMustAgree) {
  EXPECT_EQ(relative_error(std::vector<double>{1, kNan}, std::vector<double>{1, 1}), kInfinity);
  EXPECT_EQ(relative_error(std::vector<double>{1, kInfinity}, std::vector<double>{1, 1}), kInfinity);
  EXPECT_EQ(relative_error(std::vector<double>{1, -kInfinity}, std::vector<double>{1, -kInfinity}), 0);
  EXPECT_EQ(relative_error(std::vector<double>{1, kInfinity}, std::vector<double>{1, -kInfinity}), kInfinity);
  EXPECT_EQ(relative_error(std::vector<double>{1, 5}, std::vector<double>{1, kNan}), kInfinity);
}

TEST(RandomValues, AreWhatTheTypeHolds) {
  for (const Type type : kAllTypes) {
    for (const double value : random_values(tensor(type, 1000, {.scale = 3}), 7)) {
      EXPECT_EQ(value, rounded(value, type)) << type_name(type);
    }
  }
}

TEST(RandomValues, NormalOnesHaveTheirSpread) {
  double sum = 0, squares = 0;
  constexpr int kCount = 40'000;
  for (const double value : random_values(tensor(Type::kFloat64, kCount, {.scale = 2}), 1)) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.05);  // standard error 2 / 200 = 0.01
  EXPECT_NEAR(std::sqrt(squares / kCount), 2, 0.05);
}

TEST(RandomValues, SeedsDecide) {
  const TensorSpec spec = tensor(Type::kFloat32, 100);
  EXPECT_EQ(random_values(spec, 1), random_values(spec, 1));
  EXPECT_NE(random_values(spec, 1), random_values(spec, 2));
}

TEST(RandomValues, IndicesAndPermutations) {
  const auto indices = random_values(tensor(Type::kInt32, 1000, {.kind = Fill::Kind::kIndices, .limit = 5}), 1);
  EXPECT_EQ(*std::min_element(indices.begin(), indices.end()), 0);
  EXPECT_EQ(*std::max_element(indices.begin(), indices.end()), 4);
  auto pages = random_values(tensor(Type::kInt32, 1000, {.kind = Fill::Kind::kPermutation}), 1);
  EXPECT_FALSE(std::is_sorted(pages.begin(), pages.end()));
  std::sort(pages.begin(), pages.end());
  for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_EQ(pages[i], static_cast<double>(i));
  const auto uniform = random_values(tensor(Type::kFloat64, 1000, {.kind = Fill::Kind::kUniform, .scale = 3}), 1);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), 0);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 3);
  EXPECT_GT(*std::max_element(uniform.begin(), uniform.end()), 2.5);
  EXPECT_EQ(random_values(tensor(Type::kInt32, 2, {.kind = Fill::Kind::kZero}), 1), (std::vector<double>{0, 0}));
  EXPECT_EQ(random_values(tensor(Type::kInt32, 2, {.kind = Fill::Kind::kIndices, .limit = 0}), 1),
            (std::vector<double>{0, 0}));
}

TEST(Check, EveryOperatorHasWhatTheEngineNeeds) {
  for (const Operator* op : operators()) {
    EXPECT_NE(op->tensors, nullptr) << op->name;
    EXPECT_NE(op->work, nullptr) << op->name;
    EXPECT_NE(op->small, nullptr) << op->name;
    EXPECT_NE(op->reference, nullptr) << op->name;
    EXPECT_FALSE(op->types.empty()) << op->name;
  }
}

}  // namespace
}  // namespace llmprof::bench

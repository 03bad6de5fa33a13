#include "bench/bench.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench/operator.h"

namespace llmprof::bench {
namespace {

constexpr double kMb = 1e6;

Problem rows(std::int64_t batch, std::int64_t seq, std::int64_t hidden) {
  return {.op = "residual_add", .type = Type::kFloat32, .axes = {{"batch", batch}, {"seq", seq}, {"hidden", hidden}}};
}

TEST(Admit, TakesWhatTheOperatorTakes) {
  const Admission admission = admit(rows(2, 3, 4));
  EXPECT_EQ(admission.why_not, "");
  ASSERT_NE(admission.op, nullptr);
  EXPECT_EQ(admission.op->name, "residual_add");
  EXPECT_EQ(admission.problem, rows(2, 3, 4));
}

TEST(Admit, SaysWhyNot) {
  EXPECT_EQ(admit({.op = "nonsense"}).why_not, "there is no operator nonsense");
  EXPECT_NE(admit(rows(0, 1, 1)).why_not.find("batch = 0"), std::string::npos);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(admit(rows(kHuge, kHuge, kHuge)).why_not.find("too large"), std::string::npos);
  EXPECT_NE(admit(rows(std::numeric_limits<std::int64_t>::min(), 1, 1)).why_not.find("too large"), std::string::npos);
  EXPECT_NE(admit({.op = "residual_add", .axes = {{"nonsense", 1}}}).why_not.find("nonsense"), std::string::npos);
}

TEST(Plan, LargestAdmittedSizesDoNotOverflow) {
  // 2^57 values of 4 bytes in each of three tensors: 1.73e18 bytes, rounded up.
  const Problem problem = rows(1ll << 20, 1ll << 20, 1ll << 17);
  ASSERT_EQ(why_too_large(problem), "");
  const auto specs = find_operator("residual_add")->tensors(problem);
  EXPECT_NEAR(set_bytes(specs, 64), 3 * 4 * 0x1p57, 1);
  EXPECT_EQ(plan_buffers({.set_bytes = set_bytes(specs, 64), .budget_bytes = 1e12}).sets, 0);
}

TEST(Plan, TensorsAreAligned) {
  const TensorSpec specs[] = {{.type = Type::kFloat32, .elements = 1},
                              {.type = Type::kFloat16, .elements = 33},
                              {.type = Type::kInt8, .elements = 0}};
  EXPECT_EQ(set_bytes(specs, 64), 64 + 128 + 64);
}

TEST(Plan, SetsUntilTwiceTheCache) {
  BufferNeeds needs{.set_bytes = 10 * kMb, .touched_bytes = 10 * kMb, .cache_bytes = 50 * kMb, .budget_bytes = 1e12};
  EXPECT_EQ(plan_buffers(needs).sets, 11);  // 110 of more than 100 MB
  EXPECT_TRUE(plan_buffers(needs).enough);
  needs.most_sets = 8;
  EXPECT_EQ(plan_buffers(needs).sets, 8);
  EXPECT_FALSE(plan_buffers(needs).enough);
  needs.budget_bytes = 35 * kMb;
  EXPECT_EQ(plan_buffers(needs).sets, 3);
  EXPECT_FALSE(plan_buffers(needs).enough);
  needs.budget_bytes = 9 * kMb;
  EXPECT_EQ(plan_buffers(needs).sets, 0);
}

TEST(Plan, OnlyWhatACallTouchesReplacesTheCache) {
  // A table of 2 GB of which 1 kB is read: no number of sets that fits empties 50 MB.
  const BufferPlan plan =
      plan_buffers({.set_bytes = 2e9, .touched_bytes = 1e3, .cache_bytes = 50 * kMb, .budget_bytes = 1e10});
  EXPECT_EQ(plan.sets, 5);
  EXPECT_FALSE(plan.enough);
}

TEST(Plan, LargeTensorsHaveTwoSetsAndHotOnesOne) {
  BufferNeeds needs{.set_bytes = 1e9, .touched_bytes = 1e9, .cache_bytes = 50 * kMb, .budget_bytes = 1e12};
  EXPECT_EQ(plan_buffers(needs).sets, 2);
  EXPECT_TRUE(plan_buffers(needs).enough);
  needs.budget_bytes = 1.5e9;
  EXPECT_EQ(plan_buffers(needs).sets, 1);
  EXPECT_FALSE(plan_buffers(needs).enough);  // hence the flush, though 1 GB would do most of it itself
  needs.cache = Cache::kHot;
  EXPECT_EQ(plan_buffers(needs).sets, 1);
}

TEST(Plan, CheapReferences) {
  const TensorSpec small[] = {{.elements = 1000}}, large[] = {{.elements = 5'000'000}};
  EXPECT_TRUE(cheap_reference({.flops = 1e8}, small));
  EXPECT_FALSE(cheap_reference({.flops = 1e9}, small));
  EXPECT_FALSE(cheap_reference({.flops = 0}, large));
}

TEST(Verdict, ByTheTypeOrTheOperator) {
  Operator op;
  const Problem problem{.op = "x", .type = Type::kBfloat16, .axes = {{"n", 8}}};
  EXPECT_EQ(why_wrong(op, problem, 0.005), "");
  EXPECT_NE(why_wrong(op, problem, 0.02).find("relative error 0.02"), std::string::npos);
  EXPECT_NE(why_wrong(op, problem, 0.02).find("n=8"), std::string::npos);
  EXPECT_NE(why_wrong(op, problem, std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_NE(why_wrong(op, problem, std::numeric_limits<double>::infinity()).find("not written"), std::string::npos);
  op.tolerance = 0;
  EXPECT_NE(why_wrong(op, problem, 1e-9), "");
  EXPECT_EQ(why_wrong(op, problem, 0), "");
}

TEST(Types, ThatAGpuLacks) {
  EXPECT_NE(why_type_missing(Type::kFloat8E4m3, 80), "");
  EXPECT_EQ(why_type_missing(Type::kFloat8E4m3, 89), "");
  EXPECT_NE(why_type_missing(Type::kBfloat16, 75).find("7.5, 8.0 is needed"), std::string::npos);
  EXPECT_EQ(why_type_missing(Type::kFloat32, 50), "");
  EXPECT_EQ(why_type_missing(Type::kBfloat16, 120), "");
}

TEST(Timers, GapsExplainSome) {
  // One kernel of 10 us and a gap of 1 us: up to 1.1 * 11 + 3 = 15.1 us.
  EXPECT_EQ(why_timers_disagree(10e-6, 12e-6, 1, 1e-6), "");
  EXPECT_EQ(why_timers_disagree(10e-6, 15e-6, 1, 1e-6), "");
  EXPECT_NE(why_timers_disagree(10e-6, 16e-6, 1, 1e-6), "");
  EXPECT_NE(why_timers_disagree(10e-6, 5e-6, 1, 1e-6), "");  // less than the kernels themselves
  EXPECT_EQ(why_timers_disagree(10e-6, 20e-6, 8, 1e-6), "");
}

TEST(Remarks, OfThrottling) {
  EXPECT_EQ(remarks({}, 2000), "");
  Measurement measured;
  measured.throttled = 5;
  EXPECT_EQ(remarks(measured, 2000), "5 samples discarded: the clock was throttled");
  measured.slow_clock = true;
  measured.clock_mhz = 1400;
  EXPECT_EQ(remarks(measured, 2000),
            "the clock stayed at 1400 MHz, 70.0 % of the 2000 MHz it may reach; 5 samples discarded: the clock was "
            "throttled");
}

TEST(BufferBudget, OneSetWhateverItTakesSeveralUpToAGibibyte) {
  constexpr double kGibibyte = 1 << 30;
  EXPECT_EQ(buffer_budget(1000, 8 * kGibibyte), kGibibyte);
  EXPECT_EQ(buffer_budget(5 * kGibibyte, 8 * kGibibyte), 5 * kGibibyte);
  EXPECT_EQ(buffer_budget(9 * kGibibyte, 8 * kGibibyte), 8 * kGibibyte);  // does not fit: no set at all
  EXPECT_EQ(buffer_budget(1000, 5000), 5000);
}

TEST(KernelList, EqualOnesTogether) {
  EXPECT_EQ(kernel_list({}), "");
  EXPECT_EQ(kernel_list({"a", "b", "b", "b", "a"}), "a, 3 x b, a");
  std::vector<std::string> many;
  for (int i = 0; i < 13; ++i) many.push_back(std::string(1, static_cast<char>('a' + i)));
  EXPECT_EQ(kernel_list(many), "a, b, c, d, e, f, g, h, i, j, and 3 more");
}

}  // namespace
}  // namespace llmprof::bench

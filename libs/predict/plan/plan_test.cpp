#include "predict/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "predict/plan/document.h"

namespace llmprof::predict::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Asked ask(const std::string& model, const std::vector<std::string>& devices, double rate) {
  Asked out;
  out.deployment.model = model, out.deployment.engine = "vllm@0.19";
  out.model = *open_named(model);
  for (const std::string& name : devices) {
    const hw::DeviceSpec* spec = hw::find_device(name);
    out.devices.push_back({hw::device_of(*spec), hw::spec_peaks(*spec), spec, false});
  }
  out.tensor = {1};
  serving::WorkloadSpec spec;
  spec.requests = 60, spec.rate = rate, spec.prompt = 512, spec.output = 64;
  out.workload = *serving::make_workload(spec);
  out.rate = rate;
  out.limits = {.slo = {.ttft_ns = 300e6, .tpot_ns = 20e6, .e2e_ns = {}}, .share = 0.99};
  return out;
}

Plan planned(const Asked& asked) {
  auto plan = make_plan(asked, base::no_progress);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? std::move(*plan) : Plan{};
}

TEST(Ways, AreThoseThatDivideTheHeads) {
  Asked asked = ask("llama-3.1-8b", {"h100-sxm"}, 1);  // 32 heads, 8 key-value heads
  asked.tensor = {1, 2, 3, 16, 64};
  const auto all = ways(asked);
  ASSERT_TRUE(all);
  std::set<std::int64_t> degrees;
  for (const Way& way : *all) degrees.insert(way.tensor);
  EXPECT_THAT(degrees, ElementsAre(1, 2, 16));
  // Limits of the engine, 2048 and 512 tokens, each with its own requests and 64; 512 tokens are no step of 1024
  // requests.
  EXPECT_EQ(all->size(), 3U * 5);
  EXPECT_EQ(all->front().max_num_seqs, 1024);
  EXPECT_EQ(all->front().max_num_batched_tokens, 8192);
  asked.deployment.settings = {"max_num_seqs=32"};
  EXPECT_EQ(ways(asked)->size(), 3U * 3);
  asked.most_devices = 2;
  EXPECT_EQ(ways(asked)->size(), 2U * 3);
}

TEST(Ways, SplitExpertsBothWays) {
  Asked asked = ask("mixtral-8x7b", {"h100-sxm"}, 1);
  asked.tensor = {1, 4};
  std::set<std::pair<std::int64_t, std::int64_t>> splits;
  const auto all = ways(asked);
  ASSERT_TRUE(all);
  for (const Way& way : *all) splits.insert({way.tensor, way.expert});
  EXPECT_THAT(splits, ElementsAre(std::pair(1, 1), std::pair(4, 1), std::pair(4, 4)));
}

// The search against simulations of its own: as many replicas keep the limits, one less does not.
TEST(Plan, FindsTheLeastReplicas) {
  Asked asked = ask("llama-3.1-8b", {"l40s"}, 12);
  asked.limits.slo = {.ttft_ns = 2e9, .tpot_ns = 50e6, .e2e_ns = {}};
  const Plan plan = planned(asked);
  ASSERT_FALSE(plan.configurations.empty());
  const Configuration& first = plan.configurations.front();
  ASSERT_TRUE(first.meets) << first.why;
  ASSERT_GT(first.meets->replicas, 1);
  Deployment deployment = asked.deployment;
  const ServingInput input = *serving_input(deployment, asked.model, asked.devices[0], {});
  ServingForecast settled;
  settled.rules = input.rules;
  ASSERT_TRUE(settle_blocks(input, settled));
  settled.rules.num_gpu_blocks = static_cast<std::int64_t>(static_cast<double>(settled.rules.num_gpu_blocks) * 0.95);
  const auto cost = step_cost_of(input);
  ASSERT_TRUE(cost);
  ScaledCost longest(**cost, first.error.most);
  for (const std::int64_t replicas : {first.meets->replicas, first.meets->replicas - 1}) {
    serving::Workload workload = asked.workload;
    for (auto& request : workload.requests) request.arrival_ns *= static_cast<double>(replicas);
    const auto simulation = serving::simulate(settled.rules, workload, longest);
    ASSERT_TRUE(simulation);
    EXPECT_EQ(judge(*simulation, asked.limits).kept(), replicas == first.meets->replicas) << replicas;
  }
  EXPECT_DOUBLE_EQ(first.error.most, 2);  // the bare roof
  EXPECT_GE(first.meets->longest.tpot_ns, first.meets->predicted.tpot_ns);
}

TEST(Plan, WhatIsComparedIsDevicesOrPricesAndPowerByTokens) {
  Asked asked = ask("llama-3.1-8b", {"h100-sxm", "gh200"}, 4);  // 700 W; the catalogue has no power of the second
  const Plan plan = planned(asked);
  const Configuration& h100 = plan.configurations.front();
  ASSERT_TRUE(h100.meets);
  const auto devices = static_cast<double>(h100.meets->replicas);
  EXPECT_DOUBLE_EQ(*energy_per_token(asked, h100, *h100.meets), 700 * devices / (4 * 64));
  EXPECT_DOUBLE_EQ(objectives_of(asked, h100, *h100.meets, true).cost, devices);
  asked.prices = {{"NVIDIA H100 SXM", 2.5}};
  EXPECT_DOUBLE_EQ(objectives_of(asked, h100, *h100.meets, true).cost, 2.5 * devices);
  const Configuration& other = plan.configurations.back();
  ASSERT_TRUE(other.meets);
  EXPECT_FALSE(energy_per_token(asked, other, *other.meets));
  EXPECT_EQ(objectives_of(asked, other, *other.meets, true).cost, Objectives::kUnknown);
  EXPECT_EQ(objectives_of(asked, other, *other.meets, true).energy, Objectives::kUnknown);
  const PlanDocument document = document_of(asked, plan);
  EXPECT_TRUE(document.obstacles.empty());
  ASSERT_FALSE(document.front.empty());
  // 2.5 per device and hour, 256 tokens/s.
  for (const PlanRow& row : document.configurations) {
    if (row.short_name == "h100-sxm") {
      EXPECT_NEAR(*row.cost_per_mtoken, 2.5 * static_cast<double>(row.devices) / (256 * 3600) * 1e6, 1e-9);
    }
  }
}

TEST(Plan, ALimitBelowTheLeastStepIsNamedWithTheStep) {
  Asked asked = ask("llama-3.1-8b", {"h100-sxm", "l4"}, 1);
  asked.limits.slo = {.ttft_ns = {}, .tpot_ns = 1e6, .e2e_ns = {}};
  const Plan plan = planned(asked);
  EXPECT_EQ(plan.simulations, 0);
  for (const Configuration& each : plan.configurations) EXPECT_EQ(each.outcome, Outcome::kTooSlow);
  // 15.0 GB of weights that a step reads, at 3.35 TB/s.
  EXPECT_NEAR(plan.configurations.front().alone.tpot_ns, 15.0e9 / 3350e9 * 1e9, 0.1e6);
  const auto why = obstacles(asked, plan);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_THAT(why.front(), HasSubstr("TPOT of 1.00 ms cannot be: the least decode step on any of these is 4."));
  EXPECT_THAT(why.front(), HasSubstr("NVIDIA H100 SXM"));
}

TEST(Plan, AModelThatFitsNowhereIsNamedWithItsWeights) {
  Asked asked = ask("llama-3.1-405b", {"l4", "h100-sxm"}, 1);
  asked.tensor = {1, 8};
  const Plan plan = planned(asked);
  for (const Configuration& each : plan.configurations) EXPECT_EQ(each.outcome, Outcome::kDoesNotFit);
  const auto why = obstacles(asked, plan);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_THAT(why.front(), HasSubstr("fits none of the devices. Nearest is 8 x NVIDIA H100 SXM"));
  EXPECT_THAT(why.front(), HasSubstr("GB of weights"));
}

TEST(Plan, StepsThatMayBeTooLongAreARiskAndSaidToBe) {
  Asked asked = ask("llama-3.1-8b", {"h100-sxm"}, 1);
  asked.limits.slo = {.ttft_ns = {}, .tpot_ns = 6e6, .e2e_ns = {}};  // 4.6 ms as predicted, up to 9.2
  const Plan plan = planned(asked);
  const Configuration& first = plan.configurations.front();
  EXPECT_FALSE(first.meets);
  ASSERT_TRUE(first.may);
  EXPECT_TRUE(first.may->predicted.kept());
  EXPECT_FALSE(first.may->longest.kept());
  const PlanDocument document = document_of(asked, plan);
  EXPECT_TRUE(document.front.empty());
  ASSERT_EQ(document.may.size(), 1U);
  EXPECT_FALSE(document.may.front().meets);
  ASSERT_EQ(document.obstacles.size(), 1U);
  EXPECT_THAT(document.obstacles.front(),
              HasSubstr("No configuration keeps the limits with steps as long as they may be"));
  EXPECT_THAT(document.obstacles.front(), HasSubstr("2.00 times the predicted time"));
}

TEST(Plan, FewDevicesAndShortCachesAreReasons) {
  Asked asked = ask("llama-3.1-8b", {"l4"}, 200);
  asked.limits.slo = {.ttft_ns = 2e9, .tpot_ns = 200e6, .e2e_ns = {}};
  asked.most_devices = 1;
  asked.tensor = {1};
  Plan plan = planned(asked);
  EXPECT_EQ(plan.configurations.front().outcome, Outcome::kTooMany);
  EXPECT_THAT(obstacles(asked, plan).front(), HasSubstr("With at most 1 device "));
  asked = ask("llama-3.1-8b", {"l4"}, 1);
  asked.limits.slo = {.ttft_ns = 1e15, .tpot_ns = {}, .e2e_ns = {}};
  for (auto& request : asked.workload.requests) request.prompt_tokens = 100'000;
  plan = planned(asked);
  EXPECT_EQ(plan.configurations.front().outcome, Outcome::kRefused);
  EXPECT_THAT(obstacles(asked, plan).front(), HasSubstr("The longest has 100064 tokens"));
}

TEST(Plan, WithoutADegreeThatDividesTheHeadsThereIsNothingToTry) {
  Asked asked = ask("llama-3.1-8b", {"h100-sxm"}, 1);
  asked.tensor = {3, 5};
  const auto plan = make_plan(asked, base::no_progress);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  EXPECT_THAT(plan.error().message, HasSubstr("of tensor parallelism 3, 5 no degree divides"));
}

TEST(Plan, CanBeInterrupted) {
  const auto stopped =
      make_plan(ask("llama-3.1-8b", {"h100-sxm"}, 1), [](const base::ProgressUpdate&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
}

// Traces are given to all replicas together.
TEST(Plan, TracesAreNotStretched) {
  Asked asked = ask("llama-3.1-8b", {"l40s"}, 12);
  asked.limits.slo = {.ttft_ns = 2e9, .tpot_ns = 50e6, .e2e_ns = {}};
  asked.stretch = false;
  const Plan plan = planned(asked);
  const Configuration& first = plan.configurations.front();
  ASSERT_TRUE(first.meets) << first.why;
  EXPECT_FALSE(first.meets->highest_rate);
  EXPECT_THAT(document_of(asked, plan).notes, testing::Contains(HasSubstr("least load")));
}

}  // namespace
}  // namespace llmprof::predict::plan

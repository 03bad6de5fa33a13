#include "predict/plan/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace llmprof::predict::plan {
namespace {

serving::RequestResult result(double ttft_ns, double last_ns, std::int32_t tokens) {
  serving::RequestResult out;
  out.arrival_ns = 1000;
  out.first_token_ns = 1000 + ttft_ns, out.last_token_ns = 1000 + last_ns;
  out.output_tokens = tokens;
  return out;
}

TEST(ValueKept, IsTheSmallestThatTheShareDoesNotExceed) {
  std::vector<double> values;
  for (int i = 1; i <= 300; ++i) values.push_back(i);
  EXPECT_EQ(value_kept(values, 0.99), 297);  // three may be beyond
  EXPECT_EQ(value_kept(values, 1), 300);
  EXPECT_EQ(value_kept(values, 0.001), 1);
  EXPECT_EQ(value_kept({7, 5}, 0.5), 5);
  EXPECT_EQ(value_kept({}, 0.5), 0);
}

TEST(Judge, AGoodRequestIsWithinEveryLimitAtOnce) {
  serving::Simulation simulation;
  simulation.requests = {result(100, 400, 4),   // TPOT 100
                         result(300, 450, 4),   // TPOT 50, TTFT beyond
                         result(100, 1000, 4),  // TPOT 300: beyond
                         result(200, 200, 1)};  // one token: no TPOT
  const Limits limits{.slo = {.ttft_ns = 200, .tpot_ns = 200, .e2e_ns = {}}, .share = 0.75};
  const Judged judged = judge(simulation, limits);
  EXPECT_DOUBLE_EQ(judged.good_share, 0.5);
  EXPECT_DOUBLE_EQ(judged.of_slo, 1.5);   // of 0.5, 1.0, 1.5, 1.5 the third
  EXPECT_DOUBLE_EQ(judged.ttft_ns, 200);  // of 100, 100, 200, 300
  EXPECT_DOUBLE_EQ(judged.tpot_ns, 300);  // of 50, 100, 300
  EXPECT_EQ(judged.limit, "TPOT");
  EXPECT_FALSE(judged.kept());
  const Judged lenient = judge(simulation, {.slo = limits.slo, .share = 0.5});
  EXPECT_DOUBLE_EQ(lenient.of_slo, 1);
  EXPECT_TRUE(lenient.kept());
}

TEST(Judge, RefusedRequestsAreNeverGood) {
  serving::Simulation simulation;
  simulation.requests = {result(1, 2, 2), result(1, 2, 2)};
  simulation.requests[1].rejection = serving::Rejection::kBlocks;
  const serving::Slo slo{.ttft_ns = 10, .tpot_ns = {}, .e2e_ns = {}};
  EXPECT_TRUE(std::isinf(judge(simulation, {.slo = slo, .share = 0.99}).of_slo));
  EXPECT_TRUE(judge(simulation, {.slo = slo, .share = 0.5}).kept());
}

// 1000 ns a step, 10 a new token of a prompt, 1 a token of context.
struct PlainCost final : StepCost {
  StepTime of(const Batch& batch) override {
    ++steps;
    double ns = 1000;
    for (const Chunk& chunk : batch.chunks) ns += 10.0 * static_cast<double>(chunk.tokens);
    for (const std::int64_t context : batch.contexts) ns += static_cast<double>(context);
    return {ns, 0};
  }
  int steps = 0;
};

TEST(JudgeAlone, AddsUpChunksAndDecodeSteps) {
  serving::Workload workload;
  workload.requests.resize(2);
  for (auto& request : workload.requests) request.prompt_tokens = 250, request.output_tokens = 11;
  serving::EngineRules rules;
  rules.max_num_batched_tokens = 100;
  PlainCost cost;
  const Limits limits{.slo = {.ttft_ns = 11'000, .tpot_ns = {}, .e2e_ns = {}}, .share = 1};
  const Judged judged = judge_alone(workload, rules, cost, limits);
  EXPECT_DOUBLE_EQ(judged.ttft_ns, 3 * 1000 + 250 * 10);      // 100, 100 and 50 tokens
  EXPECT_DOUBLE_EQ(judged.tpot_ns, 1000 + 255);               // contexts 251 to 260, in whole tokens
  EXPECT_DOUBLE_EQ(judged.e2e_ns, 5500 + 10 * (1000 + 255));  // ten steps behind the first token
  EXPECT_DOUBLE_EQ(judged.of_slo, 0.5);
  EXPECT_EQ(cost.steps, 4);  // equal requests are priced once
}

TEST(JudgeAlone, SharedPrefixesCountAsFound) {
  serving::Workload workload;
  workload.content_tokens = 16;
  workload.requests.resize(1);
  workload.requests[0].prompt_tokens = 250, workload.requests[0].output_tokens = 1, workload.requests[0].id_count = 10;
  serving::EngineRules rules;
  rules.max_num_batched_tokens = 1000;
  PlainCost cost;
  const Limits limits{.slo = {.ttft_ns = 1, .tpot_ns = {}, .e2e_ns = {}}, .share = 1};
  EXPECT_DOUBLE_EQ(judge_alone(workload, rules, cost, limits).ttft_ns, 1000 + 90 * 10);
  rules.enable_prefix_caching = false;
  EXPECT_DOUBLE_EQ(judge_alone(workload, rules, cost, limits).ttft_ns, 1000 + 250 * 10);
}

}  // namespace
}  // namespace llmprof::predict::plan

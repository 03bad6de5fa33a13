#include "serving/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/random.h"
#include "serving/testing/engine.h"

namespace llmprof::serving {
namespace {

using testing::HasSubstr;

RequestResult result_of(double sent, double scheduled, double first, double last, std::int32_t output) {
  RequestResult result;
  result.arrival_ns = sent;
  result.queued_ns = sent + 1;
  result.scheduled_ns = scheduled;
  result.first_token_ns = first;
  result.last_token_ns = last;
  result.prompt_tokens = 10;
  result.output_tokens = output;
  return result;
}

Simulation two_requests() {
  Simulation run;
  run.requests = {result_of(0, 5, 20, 60, 5), result_of(10, 30, 50, 50, 1)};
  run.requests[0].cached_tokens = 5;
  run.end_ns = 60;
  run.blocks_usable = 10;
  run.blocks_used_peak = 5;
  run.blocks_used_mean = 2;
  run.device_busy_ns = 30;
  return run;
}

TEST(Metrics, PercentilesAreNumpys) {
  const Distribution values = distribution_of({4, 1, 3, 2});
  EXPECT_EQ(values.count, 4);
  EXPECT_EQ(values.mean, 2.5);
  EXPECT_EQ(values.p50, 2.5);
  EXPECT_DOUBLE_EQ(values.p90, 3.7);  // numpy.percentile([1, 2, 3, 4], 90)
  EXPECT_DOUBLE_EQ(values.p99, 3.97);
  EXPECT_EQ(values.max, 4);
  EXPECT_EQ(distribution_of({}).count, 0);
  EXPECT_EQ(distribution_of({7}).p99, 7);
}

TEST(Metrics, ManySamplesAreNearlyExact) {
  Samples samples;
  std::vector<double> all;
  Random random(1);
  for (int i = 0; i < 1'500'000; ++i) {
    const double value = 1e7 * std::exp(random.normal());
    samples.add(value);
    all.push_back(value);
    if (i == 1000) {
      EXPECT_EQ(samples.distribution().p99, distribution_of(all).p99);
    }
  }
  EXPECT_FALSE(samples.exact());
  const Distribution nearly = samples.distribution(), exact = distribution_of(all);
  EXPECT_EQ(nearly.count, exact.count);
  EXPECT_NEAR(nearly.mean / exact.mean, 1, 1e-9);
  EXPECT_NEAR(nearly.p50 / exact.p50, 1, 6e-4);
  EXPECT_NEAR(nearly.p99 / exact.p99, 1, 6e-4);
  EXPECT_EQ(nearly.max, exact.max);
}

TEST(Metrics, VllmsDefinitions) {
  const Metrics metrics = metrics_of(two_requests(), {.ttft_ns = 30, .tpot_ns = 10});
  EXPECT_EQ(metrics.completed, 2);
  EXPECT_EQ(metrics.ttft_ns.mean, 30);  // 20 and 40
  EXPECT_EQ(metrics.tpot_ns.count, 1);  // one token has no time between tokens
  EXPECT_EQ(metrics.tpot_ns.mean, 10);
  EXPECT_EQ(metrics.e2e_ns.max, 60);
  EXPECT_EQ(metrics.queue_ns.mean, 12.5);  // 5 and 20
  EXPECT_DOUBLE_EQ(metrics.requests_per_s, 2 / 60e-9);
  EXPECT_DOUBLE_EQ(metrics.output_tokens_per_s, 6 / 60e-9);
  EXPECT_DOUBLE_EQ(metrics.total_tokens_per_s, 26 / 60e-9);
  EXPECT_DOUBLE_EQ(*metrics.goodput_per_s, 1 / 60e-9);
  EXPECT_EQ(*metrics.good_share, 0.5);
  EXPECT_EQ(metrics.cached_share, 0.25);
  EXPECT_EQ(metrics.kv_peak_share, 0.5);
  EXPECT_EQ(metrics.kv_mean_share, 0.2);
  EXPECT_EQ(metrics.device_busy_share, 0.5);
  EXPECT_FALSE(metrics_of(two_requests()).goodput_per_s);
  EXPECT_EQ(metrics_of(two_requests(), {}, 1, Since::kQueued).ttft_ns.mean, 29);
}

TEST(Metrics, RejectedRequestsAreNotGood) {
  Simulation run = two_requests();
  run.requests[1].rejection = Rejection::kBlocks;
  const Metrics metrics = metrics_of(run, {.e2e_ns = 1000});
  EXPECT_EQ(metrics.completed, 1);
  EXPECT_EQ(metrics.rejected, 1);
  EXPECT_EQ(*metrics.good_share, 0.5);
  run.requests[0].rejection = Rejection::kBlocks;
  EXPECT_EQ(metrics_of(run).requests_per_s, 0);
}

constexpr std::string_view kMeasured =
    R"({"request_id": "r-1", "input_toks": 10, "output_toks": 1, "arrival_time": 1000.00000001, "queued_ts": 5.000000012, )"
    R"("scheduled_ts": 5.00000003, "first_token_ts": 5.000000052, "last_token_ts": 5.000000052}
{"request_id": "r-0", "input_toks": 10, "output_toks": 5, "arrival_time": 1000, "queued_ts": 5, )"
    R"("scheduled_ts": 5.000000004, "first_token_ts": 5.000000038, "last_token_ts": 5.000000078})";

TEST(Measured, RequestsAreOrderedByTheirNumbersAndComparedOneByOne) {
  const auto measured = parse_measured(kMeasured, "m.jsonl");
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ((*measured)[0].output_tokens, 5);
  const auto compared = compare(two_requests(), *measured);
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_EQ(compared->requests, 2);
  // Measured TTFT 38 and 40 ns, simulated 19 and 39: errors of -50 and -2.5 %.
  EXPECT_NEAR(compared->ttft_ns.mean.error_percent(), 100 * (58.0 / 78 - 1), 0.01);
  EXPECT_NEAR(*compared->ttft_ns.mape_percent, 26.25, 0.01);
  EXPECT_NEAR(compared->tpot_ns.mean.error_percent(), 0, 0.01);
  EXPECT_FALSE(compared->queue_ns.mape_percent);
}

TEST(Measured, AnotherWorkloadIsAnError) {
  auto measured = *parse_measured(kMeasured, "m.jsonl");
  measured[1].input_tokens = 11;
  const auto compared = compare(two_requests(), measured);
  ASSERT_FALSE(compared);
  EXPECT_THAT(compared.error().message, HasSubstr("request 1: 11 + 1 tokens were measured, 10 + 1 simulated"));
  measured.pop_back();
  EXPECT_FALSE(compare(two_requests(), measured));
}

TEST(Measured, WhatIsWrongIsNamedWithItsLine) {
  for (const std::string_view wrong : {"{}", "3", "{", R"({"input_toks": 1, "output_toks": 1, "arrival_time": "x"})",
                                       R"({"input_toks": 0, "output_toks": 1, "arrival_time": 1})"}) {
    const auto measured = parse_measured("\n" + std::string(wrong), "m.jsonl");
    ASSERT_FALSE(measured) << wrong;
    EXPECT_THAT(measured.error().message, HasSubstr("m.jsonl line 2")) << wrong;
  }
  EXPECT_FALSE(parse_measured("", "m.jsonl"));
}

}  // namespace
}  // namespace llmprof::serving

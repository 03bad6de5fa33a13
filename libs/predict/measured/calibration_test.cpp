#include "predict/measured/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "serving/random.h"
#include "trace/test_run.h"

namespace llmprof::predict {
namespace {

using ::testing::HasSubstr;

struct Truth {
  double factor = 1.08, step_ns = 120e3, request_ns = 4e3, new_ns = 30e3;
};

// Steps of an engine under a changing load: 1 to 64 requests of 200 to 4000 tokens, a new one in every sixth step. The
// device takes 2 ms for the weights, 10 us for a request and 20 ns for a token of its context.
std::vector<ObservedStep> observed(const Truth& truth, std::uint64_t seed, int count, double noise) {
  serving::Random random(seed);
  std::vector<ObservedStep> steps;
  for (int i = 0; i < count; ++i) {
    ObservedStep step{.requests = random.between(1, 64), .new_requests = random.between(0, 5) == 0 ? 1 : 0};
    const auto requests = static_cast<double>(step.requests);
    step.device_ns = 2e6 + requests * (10e3 + 20 * static_cast<double>(random.between(200, 4000)));
    step.took_ns = truth.factor * step.device_ns + truth.step_ns + truth.request_ns * requests +
                   truth.new_ns * static_cast<double>(step.new_requests);
    step.took_ns *= 1 + noise * random.normal();
    steps.push_back(step);
  }
  return steps;
}

TEST(Calibration, FindsTheTermsOfStepsWithoutNoise) {
  const Truth truth;
  const auto got = fit_calibration(observed(truth, 1, 100, 0), false);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_NEAR(got->device_factor.value, truth.factor, 1e-6);
  EXPECT_NEAR(got->per_step_ns.value, truth.step_ns, 1);
  EXPECT_NEAR(got->per_request_ns.value, truth.request_ns, 0.1);
  EXPECT_NEAR(got->per_new_request_ns.value, truth.new_ns, 1);
  EXPECT_TRUE(got->per_new_request_ns.determined);
  EXPECT_EQ(got->steps, 100);
  EXPECT_NEAR(got->median_error, 0, 1e-6);
}

// Of 200 runs with noise of 2 %, how many of the 90 % intervals hold the truth.
TEST(Calibration, IntervalsHoldTheTruth) {
  const Truth truth;
  int factor = 0, step = 0, request = 0, fresh = 0;
  const auto holds = [](const Term& term, double value) { return term.low <= value && value <= term.high ? 1 : 0; };
  constexpr int kRuns = 200;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const auto got = fit_calibration(observed(truth, static_cast<std::uint64_t>(seed), 150, 0.02), false);
    ASSERT_TRUE(got);
    factor += holds(got->device_factor, truth.factor), step += holds(got->per_step_ns, truth.step_ns);
    request += holds(got->per_request_ns, truth.request_ns), fresh += holds(got->per_new_request_ns, truth.new_ns);
  }
  RecordProperty("factor", factor), RecordProperty("step", step), RecordProperty("request", request);
  RecordProperty("new", fresh);
  EXPECT_GE(factor, kRuns * 85 / 100);
  EXPECT_GE(step, kRuns * 85 / 100);
  EXPECT_GE(request, kRuns * 85 / 100);
  EXPECT_GE(fresh, kRuns * 85 / 100);
}

TEST(Calibration, SlowStepsSayLittle) {
  const Truth truth;
  std::vector<ObservedStep> steps = observed(truth, 3, 200, 0.01);
  for (std::size_t i = 0; i < steps.size(); i += 20) steps[i].took_ns *= 1.4;   // another program
  for (std::size_t i = 7; i < steps.size(); i += 50) steps[i].took_ns += 50e6;  // waits for a request
  const auto got = fit_calibration(steps, false);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->left_out, 4);
  EXPECT_NEAR(got->device_factor.value, truth.factor, 0.02);
  EXPECT_NEAR(got->per_step_ns.value, truth.step_ns, 60e3);
}

TEST(Calibration, WhatARunDoesNotTellStaysOut) {
  std::vector<ObservedStep> alike;
  for (int i = 0; i < 40; ++i) alike.push_back({.device_ns = 2e6 + i * 100, .took_ns = 2.5e6 + i * 100, .requests = 8});
  const auto got = fit_calibration(alike, false);
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->device_factor.determined);
  EXPECT_EQ(got->device_factor.value, 1);
  EXPECT_THAT(got->device_factor.why, HasSubstr("about the same time"));
  EXPECT_FALSE(got->per_request_ns.determined);
  EXPECT_EQ(got->per_request_ns.value, 0);
  EXPECT_THAT(got->per_request_ns.why, HasSubstr("8 requests"));
  EXPECT_THAT(got->per_new_request_ns.why, HasSubstr("0 of 40 steps"));
  EXPECT_TRUE(got->per_step_ns.determined);
  EXPECT_NEAR(got->per_step_ns.value, 0.5e6, 1);

  // The device's time grows with the requests and with nothing else.
  std::vector<ObservedStep> together;
  for (int i = 0; i < 40; ++i) {
    const double requests = 1 + i % 10;
    together.push_back(
        {.device_ns = 1e6 + requests * 1e5, .took_ns = 1.2e6 + requests * 1.3e5, .requests = 1 + i % 10});
  }
  const auto one = fit_calibration(together, false);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->per_request_ns.determined);
  EXPECT_THAT(one->per_request_ns.why, HasSubstr("changes together"));
  EXPECT_NEAR(one->device_factor.value, 1.2, 0.11);  // between 1.2, without a host term, and 1.3

  const auto ahead = fit_calibration(observed({}, 1, 50, 0), true);
  ASSERT_TRUE(ahead);
  EXPECT_FALSE(ahead->per_step_ns.determined);
  EXPECT_THAT(ahead->per_step_ns.why, HasSubstr("hidden"));
  EXPECT_TRUE(ahead->device_factor.determined);

  EXPECT_FALSE(fit_calibration(observed({}, 1, 19, 0), false));
}

// Faster than composed, with nothing on top: the host's terms are 0, not negative.
TEST(Calibration, HostTermsAreNotNegative) {
  const Truth fast{.factor = 0.8, .step_ns = -50e3, .request_ns = 0, .new_ns = 0};
  const auto got = fit_calibration(observed(fast, 5, 200, 0.01), false);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->per_step_ns.value, 0);
  EXPECT_GE(got->per_request_ns.low, 0);
  EXPECT_LT(got->device_factor.value, 0.82);
}

TEST(Calibration, WidensWhatItIsUsedFor) {
  Calibration calibration;
  calibration.device_factor = {
      .name = "device_factor", .value = 1.1, .low = 1.045, .high = 1.21, .determined = true, .why = {}};
  calibration.per_step_ns = {
      .name = "per_step_ns", .value = 100, .low = 50, .high = 200, .determined = true, .why = {}};
  StepError error{.least = 0.98, .most = 1.02, .why = "composing"};
  // Ten steps of 900 and 100 ns: the factor is 5 % less or 10 % more, the host 50 less or 100 more a step.
  widen(error, calibration, {.device_ns = 9000, .host_ns = 1000, .steps = 10, .requests = 20, .new_requests = 1});
  EXPECT_NEAR(error.least, 0.98 - 0.045 - 0.05, 1e-12);
  EXPECT_NEAR(error.most, 1.02 + 0.09 + 0.1, 1e-12);
  EXPECT_THAT(error.why, HasSubstr("calibration"));
}

TEST(Calibration, IsKeptBesideTheTablesThatItCorrects) {
  const trace::TestFolder scratch;
  const std::string before = base::env_or("LLMPROF_CACHE_DIR", "");
  ::setenv("LLMPROF_CACHE_DIR", (scratch / "cache").c_str(), 1);
  const model::Config config = *model::parse_config(
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, )"
      R"("num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 10, "torch_dtype": "float32"})",
      "test");
  const TablesKey key{{.kind = "gpu", .name = "some GPU"}, config, 1, "float32"};
  auto made = fit_calibration(observed({}, 1, 60, 0.01), false);
  ASSERT_TRUE(made);
  made->run = "served", made->date = "2026-11-18T20:00:00Z", made->tables = whole_path(scratch / "tables");
  ASSERT_TRUE(base::make_directories(made->tables));
  ASSERT_TRUE(base::write_file(made->tables + "/meta.json", R"({"date": "2026-11-18"})"));
  made->tables_date = tables_date(made->tables);
  EXPECT_EQ(made->tables_date, "2026-11-18");
  ASSERT_TRUE(keep_calibration(key, *made));
  OperatorTables tables;
  tables.source.folder = made->tables;
  const auto kept = kept_calibration(key, tables, TimesOf::kInGraph);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->per_step_ns.value, made->per_step_ns.value);
  EXPECT_EQ(kept->device_factor.high, made->device_factor.high);
  EXPECT_EQ(kept->run, "served");
  EXPECT_FALSE(kept_calibration(key, tables, TimesOf::kKernels));  // other times of these tables

  ServingInput input;
  calibrate(input, *kept);
  EXPECT_EQ(input.host.per_request_ns, made->per_request_ns.value);
  EXPECT_EQ(input.device_factor, made->device_factor.value);
  EXPECT_THAT(input.notes.back(), HasSubstr("60 steps of served"));

  ASSERT_TRUE(base::write_file(made->tables + "/meta.json", R"({"date": "2026-11-19"})"));  // measured again
  EXPECT_FALSE(kept_calibration(key, tables, TimesOf::kInGraph));
  tables.source.folder = "elsewhere";
  EXPECT_FALSE(kept_calibration(key, tables, TimesOf::kInGraph));
  before.empty() ? ::unsetenv("LLMPROF_CACHE_DIR") : ::setenv("LLMPROF_CACHE_DIR", before.c_str(), 1);
}

}  // namespace
}  // namespace llmprof::predict

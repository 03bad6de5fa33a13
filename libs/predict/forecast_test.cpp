#include "predict/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/backtests.h"
#include "predict/deployment.h"
#include "predict/serving_change.h"

namespace llmprof::predict {
namespace {

using testing::HasSubstr;

Deployment llama_on_h100() {
  Deployment out;
  out.model = "llama-3.1-8b", out.device = "h100-sxm", out.engine = "vllm@0.19";
  return out;
}

serving::Workload steady_load(double rate) {
  serving::WorkloadSpec spec;
  spec.requests = 50, spec.rate = rate, spec.prompt = 256, spec.output = 32;
  return *serving::make_workload(spec);
}

TEST(Deployment, IsReadFromWhatWasPublishedBesideAMeasurement) {
  const auto read = parse_deployment(
      R"({"model": "org/M", "vllm_version": "0.19.0", "hardware": {"device_name": "G", "device_total_memory_bytes": 1e9},
          "engine_kwargs": {"tensor_parallel_size": 2, "data_parallel_size": 3, "enable_expert_parallel": true,
                            "max_num_seqs": 8, "dtype": "bfloat16", "kv_cache_dtype": "auto"},
          "kv_cache": {"num_gpu_blocks": 77, "gpu_memory_utilization": 0.9, "enable_prefix_caching": true}})",
      "meta.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->model, "org/M");
  EXPECT_EQ(read->engine, "vllm@0.19.0");
  EXPECT_EQ(read->device, "G");
  EXPECT_EQ(read->device_memory_bytes, 1e9);
  EXPECT_EQ(read->tensor, 2);
  EXPECT_EQ(read->replicas, 3);
  EXPECT_EQ(read->expert, 6);
  EXPECT_EQ(read->dtype, "bfloat16");
  EXPECT_EQ(read->kv_dtype, "");
  EXPECT_THAT(read->settings, testing::ElementsAre("max_num_seqs=8", "num_gpu_blocks=77", "gpu_memory_utilization=0.9",
                                                   "enable_prefix_caching=true"));
}

TEST(Deployment, ReplicasShareOneCopyOfTheExperts) {
  const auto expert_of = [](const char* model, std::int64_t tensor, std::int64_t replicas) {
    Deployment asked{.path = "meta.json", .model = model, .device = "h200"};
    asked.tensor = tensor, asked.replicas = replicas;
    const auto input = serving_input(asked, {});
    EXPECT_TRUE(input) << input.error().message;
    return input->parallel.expert;
  };
  EXPECT_EQ(expert_of("qwen3-30b-a3b", 1, 2), 2);
  EXPECT_EQ(expert_of("qwen3-30b-a3b", 2, 2), 4);
  EXPECT_EQ(expert_of("qwen3-30b-a3b", 2, 1), 1);
  EXPECT_EQ(expert_of("llama-3.1-8b", 1, 2), 1);
}

TEST(Deployment, KeysOfAnotherTypeArePassedOver) {
  const auto read = parse_deployment(
      R"({"model": 3, "engine_kwargs": [], "kv_cache": {"num_gpu_blocks": null}, "hardware": {"device_name": {}}})",
      "x");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->model, "");
  EXPECT_TRUE(read->settings.empty());
  EXPECT_FALSE(parse_deployment("[1]", "x"));
  EXPECT_FALSE(parse_deployment("{", "x"));
}

TEST(Deployment, ASettingGoesWhereItBelongs) {
  Deployment asked = llama_on_h100();
  for (const char* each : {"max_num_seqs=64", "kv_heads=4", "dtype=float8", "tp=2", "device=h200"})
    ASSERT_TRUE(add_setting(asked, each)) << each;
  EXPECT_THAT(asked.settings, testing::ElementsAre("max_num_seqs=64"));
  EXPECT_THAT(asked.changes, testing::ElementsAre("kv_heads=4"));
  EXPECT_EQ(asked.dtype, "float8");
  EXPECT_EQ(asked.tensor, 2);
  EXPECT_EQ(asked.device, "h200");
  EXPECT_THAT(add_setting(asked, "kv_head=4").error().hint, HasSubstr("kv_heads"));
  EXPECT_THAT(add_setting(asked, "max_num_seq=4").error().hint, HasSubstr("max_num_seqs"));
  EXPECT_THAT(add_setting(asked, "tp=0").error().message, HasSubstr("tp"));
  EXPECT_THAT(add_setting(asked, "kv_heads").error().message, HasSubstr("KEY=VALUE"));
}

// Half the key-value heads: half the bytes of a token, and a few blocks more than twice as many, as weights shrink,
// too.
TEST(Deployment, AChangedModelIsPredicted) {
  Deployment asked = llama_on_h100();
  const auto before = serving_input(asked, {});
  ASSERT_TRUE(add_setting(asked, "kv_heads=4"));
  const auto after = serving_input(asked, {});
  ASSERT_TRUE(before && after);
  ServingInput was = *before, is = *after;
  was.workload = is.workload = steady_load(4);
  const auto old_forecast = forecast_serving(was), forecast = forecast_serving(is);
  ASSERT_TRUE(old_forecast && forecast);
  EXPECT_DOUBLE_EQ(forecast->memory.kv_bytes_per_token, old_forecast->memory.kv_bytes_per_token / 2);
  EXPECT_GT(forecast->rules.num_gpu_blocks, 2 * old_forecast->rules.num_gpu_blocks);
  const ServingChange change = change_of(was, *old_forecast, is, *forecast);
  const auto blocks = std::ranges::find(change.amounts, "KV cache, a token", &AmountChange::name);
  ASSERT_NE(blocks, change.amounts.end());
  EXPECT_DOUBLE_EQ(*blocks->ratio, 0.5);
  ASSERT_EQ(change.latency.size(), 16U);
  for (const LatencyChange& row : change.latency) {
    EXPECT_DOUBLE_EQ(*row.ratio, row.after_ns / row.before_ns) << row.label;
    EXPECT_LE(row.after_low_ns, row.after_ns) << row.label;
    EXPECT_GE(row.after_high_ns, row.after_ns) << row.label;
  }
  asked.changes = {"kv_heads=5"};
  EXPECT_THAT(serving_input(asked, {}).error().message, HasSubstr("evenly"));
}

TEST(Deployment, AModelThatDoesNotFitIsAnErrorThatNamesTheQuantity) {
  Deployment asked = llama_on_h100();
  asked.model = "llama-3.1-405b";
  auto input = serving_input(asked, {});
  ASSERT_TRUE(input) << input.error().message;
  input->workload = steady_load(1);
  const auto forecast = forecast_serving(*input);
  ASSERT_FALSE(forecast);
  EXPECT_THAT(forecast.error().message, HasSubstr("weights"));
}

TEST(Forecast, WithoutTablesAllStandsOnTheRoofAndSaysSo) {
  auto input = serving_input(llama_on_h100(), {});
  ASSERT_TRUE(input) << input.error().message;
  input->workload = steady_load(1);
  const auto forecast = forecast_serving(*input);
  ASSERT_TRUE(forecast) << forecast.error().message;
  EXPECT_DOUBLE_EQ(forecast->stands_on.share(Basis::kRoof), 1);
  EXPECT_DOUBLE_EQ(forecast->error.least, 1);  // nothing is faster than the roof
  EXPECT_GT(forecast->error.most, 1.5);
  EXPECT_TRUE(forecast->blocks_derived);
  EXPECT_EQ(forecast->metrics.completed, 50);
  EXPECT_LE(forecast->low.tpot_ns.mean, forecast->metrics.tpot_ns.mean);
  EXPECT_GT(forecast->high.tpot_ns.mean, 1.5 * forecast->metrics.tpot_ns.mean);
}

TEST(Forecast, CostsOfLinksAreCalledAssumed) {
  Deployment asked = llama_on_h100();
  asked.tensor = 2;
  auto input = serving_input(asked, {});
  ASSERT_TRUE(input);
  input->workload = steady_load(1);
  const auto forecast = forecast_serving(*input);
  ASSERT_TRUE(forecast) << forecast.error().message;
  EXPECT_GT(forecast->stands_on.share(Basis::kAssumed), 0);
  EXPECT_NEAR(forecast->stands_on.share(Basis::kAssumed) + forecast->stands_on.share(Basis::kRoof), 1, 1e-9);
  EXPECT_LT(forecast->error.least, 1);  // the link may be better than assumed
  EXPECT_THAT(forecast->error.why, HasSubstr("stated costs"));
}

TEST(Forecast, MoreLoadIsNeverFaster) {
  auto input = serving_input(llama_on_h100(), {});
  ASSERT_TRUE(input);
  double before = 0;
  for (const double rate : {1.0, 10.0, 100.0}) {
    input->workload = steady_load(rate);
    const auto forecast = forecast_serving(*input);
    ASSERT_TRUE(forecast);
    EXPECT_GE(forecast->metrics.tpot_ns.mean, before);
    before = forecast->metrics.tpot_ns.mean;
  }
}

// A real vLLM run, nothing fitted on it: what the project claims of its predictions.
TEST(Backtests, OfVllmOnAnRtx4090AreWithinTheStatedFigures) {
  const auto all = built_in_backtests();
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 1U);
  const serving::Comparison& c = all->front().comparison;
  EXPECT_EQ(c.requests, 300);
  EXPECT_LT(std::abs(c.ttft_ns.mean.error_percent()), 3);
  EXPECT_LT(std::abs(c.tpot_ns.mean.error_percent()), 1);
  EXPECT_LT(std::abs(c.e2e_ns.mean.error_percent()), 2);
  for (const serving::ComparedMetric* metric : {&c.ttft_ns, &c.tpot_ns, &c.e2e_ns}) {
    EXPECT_LT(std::abs(metric->p50.error_percent()), 5);
    EXPECT_LT(std::abs(metric->p99.error_percent()), 5);
  }
  EXPECT_EQ(all->front().covered, all->front().stated);
  const auto roof = built_in_backtests(false);
  ASSERT_TRUE(roof);
  EXPECT_LT(roof->front().comparison.tpot_ns.mean.error_percent(), -5);  // a floor, not a forecast
}

TEST(Backtests, TheNearestIsOfTheSameEngineAndDevice) {
  std::vector<ServingBacktest> known(3);
  known[0].deployment = {.model = "a", .device = "x", .engine = "static"};
  known[1].deployment = {.model = "a", .device = "x", .engine = "vllm@0.19.0"};
  known[2].deployment = {.model = "b", .device = "y", .engine = "vllm@0.19.1"};
  Deployment asked{.model = "b", .device = "x", .engine = "vllm@0.20"};
  EXPECT_EQ(nearest(known, asked), &known[1]);
  asked.device = "y";
  EXPECT_EQ(nearest(known, asked), &known[2]);
  EXPECT_EQ(nearest({}, asked), nullptr);
}

}  // namespace
}  // namespace llmprof::predict

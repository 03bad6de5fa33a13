// The simulation held against a real run of vLLM 0.19 (backtests/vllm_0.19_rtx4090). Steps take what the specifications of
// the device say, with nothing fitted: so this is about the scheduler, and the tolerances are those of such a cost.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "importers/serving_files.h"
#include "serving/metrics.h"
#include "serving/simulate.h"

namespace llmprof::predict {
namespace {

using namespace serving;
using importers::read_measured;
using importers::read_trace;
using serving::Batch;

const std::string kFolder = std::string(LLMPROF_SOURCE_DIR) + "/libs/predict/backtests/vllm_0.19_rtx4090/";

// Llama-3.1-8B in bfloat16 on an RTX 4090: 1008 GB/s, 165.2 TFLOP/s dense with float32 accumulation.
struct Roofline : StepCost {
  StepTime of(const Batch& batch) override {
    constexpr double kWeights = 7.5e9, kHead = 0.525e9, kBytesPerNs = 1008, kFlopsPerNs = 165.2e3;
    constexpr double kKvBytes = 2.0 * 32 * 8 * 128 * 2, kAttentionFlops = 4.0 * 32 * 32 * 128;
    const auto rows = static_cast<double>(batch.padded_tokens);
    double kv_tokens = 0, pairs = 0;
    for (const std::int64_t context : batch.contexts) kv_tokens += static_cast<double>(context);
    for (const Chunk& chunk : batch.chunks)
      pairs += static_cast<double>(chunk.tokens) *
               (static_cast<double>(chunk.computed) + 0.5 * static_cast<double>(chunk.tokens));
    const double products = std::max(2 * kWeights / kBytesPerNs, 2 * kWeights * rows / kFlopsPerNs);
    const double head = 2 * kHead / kBytesPerNs;
    return {products + head + kv_tokens * kKvBytes / kBytesPerNs + pairs * kAttentionFlops / kFlopsPerNs, 0};
  }
};

Result<Simulation> replay(const std::vector<std::string_view>& settings = {}) {
  LLMPROF_LET(EngineRules rules, engine_rules("vllm@0.19.0", 25250627584.0));
  LLMPROF_TRY(set_rule(rules, "num_gpu_blocks=2588"));
  LLMPROF_TRY(set_rule(rules, "max_model_len=32768"));
  for (const std::string_view setting : settings) LLMPROF_TRY(set_rule(rules, setting));
  LLMPROF_LET(const Workload workload, read_trace(kFolder + "workload.jsonl.gz"));
  Roofline cost;
  return simulate(rules, workload, cost);
}

Result<Comparison> compared(const std::vector<std::string_view>& settings = {}) {
  LLMPROF_LET(const Simulation run, replay(settings));
  LLMPROF_LET(const std::vector<MeasuredRequest> measured, read_measured(kFolder + "measured_requests.jsonl.gz"));
  return compare(run, measured);
}

TEST(Backtest, TheTraceIsReadWithItsBlockSize) {
  const auto workload = read_trace(kFolder + "workload.jsonl.gz");
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->requests.size(), 300U);
  EXPECT_EQ(workload->content_tokens, 16);
}

TEST(Backtest, TheDefaultsAreThoseOfTheRun) {  // meta.json
  const auto rules = engine_rules("vllm@0.19.0", 25250627584.0);
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->max_num_seqs, 256);
  EXPECT_EQ(rules->max_num_batched_tokens, 2048);
  EXPECT_EQ(rules->block_size, 16);
  EXPECT_EQ(rules->gpu_memory_utilization, 0.9);
  EXPECT_TRUE(rules->enable_prefix_caching);
}

// No kernel reaches the roof. The errors were -13 to -17 % when this was written, and the limit was set after that: it
// guards against changes of the scheduler and is no statement of accuracy.
TEST(Backtest, TheBareRoofIsOnTheFastSideOfTheRun) {
  const auto comparison = compared();
  ASSERT_TRUE(comparison) << comparison.error().message;
  EXPECT_EQ(comparison->requests, 300);
  for (const ComparedMetric* metric : {&comparison->ttft_ns, &comparison->tpot_ns, &comparison->e2e_ns}) {
    for (const Compared* value : {&metric->mean, &metric->p50, &metric->p99}) {
      EXPECT_LT(value->error_percent(), 0);
      EXPECT_GT(value->error_percent(), -20);
    }
  }
}

TEST(Backtest, ThePoolIsFullAndPreemptedRequestsResumeFromTheCache) {
  const auto run = replay();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_GT(run->preemptions, 100);
  EXPECT_GT(run->blocks_used_peak, run->blocks_usable - 16);
  const auto without = replay({"enable_prefix_caching=false"});
  ASSERT_TRUE(without);
  EXPECT_GT(without->end_ns, 1.01 * run->end_ns);
}

// The 3,400 blocks that 0.9 x 24 GB would leave: the count that an engine reports matters more than any table.
TEST(Backtest, MoreBlocksThanThereWereShortenTheQueue) {
  const auto true_blocks = compared(), guessed = compared({"num_gpu_blocks=3400"});
  ASSERT_TRUE(true_blocks && guessed);
  EXPECT_LT(guessed->ttft_ns.mean.predicted, 0.9 * true_blocks->ttft_ns.mean.predicted);
  EXPECT_GT(guessed->tpot_ns.mean.predicted, 1.05 * true_blocks->tpot_ns.mean.predicted);
}

}  // namespace
}  // namespace llmprof::predict

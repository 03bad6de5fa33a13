// Real tables of vLLM on an RTX 4090 (backtests/vllm_0.19_rtx4090).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/catalog.h"
#include "model/zoo/zoo.h"
#include "predict/tables/backtest.h"
#include "predict/tables/memory.h"
#include "predict/tables/read_tables.h"

namespace llmprof::predict {
namespace {

std::unique_ptr<TableStepCost> rtx4090() {
  const auto tables = read_tables(std::string(LLMPROF_SOURCE_DIR) + "/libs/predict/backtests/vllm_0.19_rtx4090", 1);
  EXPECT_TRUE(tables) << tables.error().message;
  const hw::DeviceSpec& spec = *hw::find_device("rtx4090");
  StepCostInput input;
  input.config = *model::config_of(*model::find_in_zoo("llama-3.1-8b"));
  input.roof =
      roof_for(input.config, hw::spec_peaks(spec), spec.name, static_cast<std::int64_t>(spec.figure("cache")->value));
  input.tables = *tables;
  auto cost = TableStepCost::make(std::move(input));
  EXPECT_TRUE(cost) << cost.error().message;
  return std::move(*cost);
}

Batch decodes(std::int64_t count, std::int64_t context) {
  Batch batch;
  batch.contexts.assign(static_cast<std::size_t>(count), context);
  batch.sampled = batch.padded_tokens = count;
  return batch;
}

TEST(RealTables, AreReadWhole) {
  const auto cost = rtx4090();
  EXPECT_EQ(cost->source().device, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(cost->source().engine, "vLLM 0.19.0");
  std::int64_t rows = 0;
  for (const TableFile& file : cost->source().files) rows += file.rows;
  EXPECT_EQ(rows, 1368 + 80 + 8643 + 3982);
  for (const auto& entry : cost->entries()) EXPECT_EQ(entry->dropped, 0) << entry->part.name;
}

TEST(RealTables, AStepStandsOnThem) {
  const auto cost = rtx4090();
  const double one = cost->of(decodes(1, 1024)).device_ns;
  EXPECT_NEAR(one, 16.8e6, 0.1e6);  // 15 GB of weights at 1 TB/s take 14.9 ms
  EXPECT_EQ(cost->stands_on().share(Basis::kMeasured), 1);
  EXPECT_GT(cost->of(decodes(64, 1024)).device_ns, one);
  for (const OpTime& row : cost->explain(decodes(37, 777))) {
    EXPECT_LT(row.basis, Basis::kExtrapolated) << row.op;
    EXPECT_GE(row.ns, row.floor_ns) << row.op;
  }
}

// What the comments at Blend say.
TEST(RealTables, LeftOutPointsArePredicted) {
  const auto cost = rtx4090();
  for (const OperatorError& row : backtest_operators(*cost)) {
    if (row.beyond) continue;
    EXPECT_LT(row.median, 0.05) << row.op << " along " << row.axis;
    EXPECT_LT(row.p90, 0.20) << row.op << " along " << row.axis;
  }
  const auto p90 = [&](BlendTried tried) {
    const auto rows = backtest_operators(*cost, tried);
    const auto row = std::ranges::find_if(rows, [](const OperatorError& each) { return each.axis == "prefill_chunk"; });
    return row->p90;
  };
  EXPECT_LT(p90(BlendTried::kOverhead), p90(BlendTried::kLinearTime));
  EXPECT_LT(p90(BlendTried::kOverhead), p90(BlendTried::kUtilisation));
}

// vLLM found 2588 blocks of 16 tokens. No constant was solved for that, but which buffers of the sampler count was
// settled with the number in sight: the 2.3 % it is off are no measure of how far another set-up will be.
TEST(RealTables, TheEnginesBlocksFollowFromMemory) {
  const auto needs = memory_needs(*model::config_of(*model::find_in_zoo("llama-3.1-8b")), {}, {});
  ASSERT_TRUE(needs);
  const double blocks = kv_cache_bytes(*needs, 25250627584.0, 0.9) / (16 * needs->kv_bytes_per_token);
  EXPECT_NEAR(blocks, 2588, 0.05 * 2588);
  RecordProperty("blocks", std::to_string(blocks));
}

}  // namespace
}  // namespace llmprof::predict

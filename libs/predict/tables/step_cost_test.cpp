#include "predict/tables/step_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/testing/tiny.h"
#include "model/zoo/zoo.h"
#include "predict/tables/memory.h"

namespace llmprof::predict {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// 1 FLOP and 1 byte each take 1 ns.
const std::vector<hw::Peak> kSlow{{"flops", "float32", 1e9, "FLOP/s", "spec", "test"},
                                  {"bandwidth", "read", 1e9, "B/s", "spec", "test"}};

model::Config zoo_config(const char* name) { return *model::config_of(*model::find_in_zoo(name)); }

StepCostInput tiny_input(const model::Config& config = model::tiny_llama()) {
  StepCostInput input;
  input.config = config;
  input.roof = roof_for(input.config, kSlow, "test", 1);
  return input;
}

std::unique_ptr<TableStepCost> make(StepCostInput input) {
  auto cost = TableStepCost::make(std::move(input));
  EXPECT_TRUE(cost) << (cost ? "" : cost.error().message);
  return cost ? std::move(*cost) : nullptr;
}

std::string error_of(StepCostInput input) {
  const auto cost = TableStepCost::make(std::move(input));
  return cost ? "no error" : cost.error().message;
}

Batch batch_of(std::vector<Chunk> chunks, std::vector<std::int64_t> contexts) {
  Batch batch{.chunks = std::move(chunks), .contexts = std::move(contexts)};
  batch.sampled = batch.requests();
  batch.padded_tokens = batch.tokens();
  return batch;
}

std::vector<std::string> names(const model::Config& config) {
  std::vector<std::string> all;
  for (const Part& part : parts_of(model::Graph(config))) all.push_back(part.name);
  return all;
}

void add(OperatorTables& tables, const char* op, const std::vector<double>& at, double ns) {
  const auto added = tables.add(op, at, ns);
  ASSERT_TRUE(added) << added.error().message;
}

// Every operator takes 1 ms a call, attention 2 ms with decodes, 3 ms with prompts, 4 ms with both.
OperatorTables round_tables() {
  OperatorTables tables;
  for (const char* op : {"embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn",
                         "down_proj", "final_layernorm", "lm_head", "sampler"}) {
    for (const double rows : {1.0, 2.0, 4.0, 8.0}) add(tables, op, {rows}, 1e6);
  }
  for (const double context : {1.0, 16.0}) {
    add(tables, "attention", {0, 0, 1, context}, 2e6);
    add(tables, "attention", {0, 0, 4, context}, 2e6);
    add(tables, "attention", {4, 0, 1, context}, 4e6);
    add(tables, "attention", {4, 0, 4, context}, 4e6);
  }
  add(tables, "attention", {4, 0, 0, 0}, 3e6);
  return tables;
}

TEST(Parts, EveryFamilyHasTheNamesOfTables) {
  EXPECT_THAT(names(zoo_config("llama-3.1-8b")),
              ElementsAre("embedding", "layernorm", "qkv_proj", "rotary_emb", "attention", "o_proj", "gate_up_proj",
                          "act_fn", "down_proj", "final_layernorm", "lm_head", "sampler"));
  EXPECT_THAT(names(zoo_config("qwen3-8b")), Contains("qk_norm").Times(1));
  EXPECT_THAT(names(zoo_config("mixtral-8x7b")),
              ElementsAre("embedding", "layernorm", "qkv_proj", "rotary_emb", "attention", "o_proj", "router", "moe",
                          "final_layernorm", "lm_head", "sampler"));
  EXPECT_THAT(names(model::tiny_gpt2()),
              ElementsAre("embedding", "layernorm", "qkv_proj", "attention", "o_proj", "gate_up_proj", "act_fn",
                          "down_proj", "final_layernorm", "lm_head", "sampler"));
  for (const model::ZooEntry& entry : model::zoo()) {
    const auto config = model::config_of(entry);
    ASSERT_TRUE(config) << entry.name;
    const auto parts = names(*config);
    EXPECT_THAT(parts, Contains("attention")) << entry.name;
    EXPECT_THAT(parts, Contains("o_proj")) << entry.name;
    EXPECT_THAT(parts, testing::AnyOf(Contains("down_proj"), Contains("moe"))) << entry.name;
  }
}

TEST(Parts, NothingIsLostOrCountedTwice) {
  for (const char* name : {"llama-3.1-8b", "qwen3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-9b"}) {
    const model::Graph graph(zoo_config(name));
    const model::Pass pass = model::prefill(2, 100);
    const model::Amounts amounts(pass);
    model::Costs sum;
    for (const Part& part : parts_of(graph)) {
      for (const model::Op& op : part.ops) {
        sum += model::inference_cost(op, graph.config(), amounts, {}) * static_cast<double>(part.calls);
      }
    }
    const model::Costs all = model::total(graph, pass, {});
    EXPECT_NEAR(sum.flops / all.flops, 1, 1e-12) << name;
    EXPECT_NEAR(sum.bytes() / all.bytes(), 1, 1e-12) << name;
  }
}

TEST(TableStepCost, WithoutTablesTheWholeStepIsTheRoof) {
  const auto cost = make(tiny_input());
  const Batch batch = batch_of({{5, 3}}, {7, 9, 12});
  const StepTime time = cost->of(batch);
  double floor = 0;
  for (const model::OpCost& op :
       model::analyze_by_op(model::Graph(model::tiny_llama()), pass_of(batch), {.on_chip_bytes = 0})) {
    if (op.op_class != model::OpClass::kNorm || op.layers > 1) floor += std::max(op.flops, op.bytes());
  }
  // Fused products are one call, so that is the most; final norm: engines norm every row.
  EXPECT_GT(time.device_ns, floor * 0.9);
  EXPECT_EQ(time.host_ns, 0);
  EXPECT_EQ(cost->stands_on().share(Basis::kRoof), 1);
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("no operator tables")));
  for (const OpTime& row : cost->explain(batch)) {
    EXPECT_EQ(row.basis, Basis::kRoof) << row.op;
    EXPECT_GE(row.ns, row.floor_ns * (1 - 1e-12)) << row.op;
  }
}

TEST(TableStepCost, MeasuredPointsAddUp) {
  StepCostInput input = tiny_input();
  input.roof = {};
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  // Two layers: 2 norms, qkv, rope, o, gate_up, act, down are 8 ms; embedding, final norm, logits, sampler 4 ms.
  EXPECT_NEAR(cost->of(batch_of({}, {1})).device_ns, 2 * (8e6 + 2e6) + 4e6, 1);
  EXPECT_NEAR(cost->of(batch_of({{4, 0}}, {})).device_ns, 2 * (8e6 + 3e6) + 4e6, 1);
  EXPECT_EQ(cost->stands_on().share(Basis::kMeasured), 1);
  EXPECT_NEAR(cost->of(batch_of({{4, 0}}, {1, 16})).device_ns, 2 * (8e6 + 4e6) + 4e6, 1e5);  // one joint call
  EXPECT_GT(cost->stands_on().share(Basis::kInterpolated), 0);
}

TEST(TableStepCost, ExplainAddsUpToTheStep) {
  StepCostInput input = tiny_input();
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  Batch batch = batch_of({{4, 0}}, {7, 9, 12});
  batch.padded_tokens = 8;
  double sum = 0;
  for (const OpTime& row : cost->explain(batch)) sum += row.ns;
  EXPECT_NEAR(sum, cost->of(batch).device_ns, 1e-3);
}

TEST(TableStepCost, SeparateAttentionIsACallForEach) {
  StepCostInput input = tiny_input();
  input.roof = {};
  input.tables = round_tables();
  input.attention = AttentionMode::kSeparate;
  const auto cost = make(std::move(input));
  const auto rows = cost->explain(batch_of({{4, 0}, {4, 0}}, {1}));
  const auto row = std::ranges::find(rows, "attention", &OpTime::op);
  EXPECT_NEAR(row->ns, 2 * (2 * 3e6 + 2e6), 1);
}

TEST(TableStepCost, TablesWithoutMixedRowsAreComposed) {
  StepCostInput input = tiny_input();
  input.roof = {};
  input.tables = round_tables();
  OperatorTables apart;
  for (const std::string& op : input.tables.operators()) {
    input.tables.find(op)->settle(nullptr);
    for (const Grid::Point& point : input.tables.find(op)->all()) {
      const std::size_t axes = input.tables.find(op)->axes();
      if (axes == 4 && point.at[0] > 0 && point.at[2] > 0) continue;
      add(apart, op.c_str(), {point.at.begin(), point.at.begin() + static_cast<std::ptrdiff_t>(axes)}, point.ns);
    }
  }
  input.tables = apart;
  const auto cost = make(std::move(input));
  const auto rows = cost->explain(batch_of({{4, 0}}, {1}));
  EXPECT_NEAR(std::ranges::find(rows, "attention", &OpTime::op)->ns, 2 * (3e6 + 2e6), 1);
}

TEST(TableStepCost, OperatorsWithoutTablesStandOnTheRoof) {
  StepCostInput input = tiny_input();
  add(input.tables, "qkv_proj", {1}, 1e9);
  add(input.tables, "my_kernel", {1}, 1e9);
  const auto cost = make(std::move(input));
  const auto rows = cost->explain(batch_of({}, {4}));
  EXPECT_EQ(std::ranges::find(rows, "qkv_proj", &OpTime::op)->basis, Basis::kMeasured);
  EXPECT_EQ(std::ranges::find(rows, "o_proj", &OpTime::op)->basis, Basis::kRoof);
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("o_proj: no table")));
  EXPECT_THAT(cost->source().unknown_layers, ElementsAre("my_kernel"));
  EXPECT_EQ(cost->source().unknown_rows, 1);
}

TEST(TableStepCost, WhatStandsOnNothingIsAnError) {
  StepCostInput input = tiny_input();
  input.roof = {};
  EXPECT_THAT(error_of(input), HasSubstr("nothing is known of the time of embedding"));
  input = tiny_input();
  for (const double rows : {1.0, 2.0, 3.0}) add(input.tables, "qkv_proj", {rows}, 1);
  EXPECT_THAT(error_of(input), HasSubstr("3 of 3 times of the tables are shorter than this device can be"));
  input = tiny_input();
  input.tables = round_tables();
  input.tables.source.tensor = 2;
  EXPECT_THAT(error_of(input), HasSubstr("tensor parallelism 2, not 1"));
  input = tiny_input();
  input.parallel.tensor = 64;
  EXPECT_THAT(error_of(input), HasSubstr("tensor parallelism of 64"));
}

TEST(TableStepCost, TablesOfAnUnknownDeviceHaveTheirOwnRoof) {
  StepCostInput input = tiny_input();
  input.roof = {};
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  EXPECT_TRUE(cost->input().roof.known());
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("the best rates of the tables' products")));
  for (const auto& entry : cost->entries()) EXPECT_EQ(entry->dropped, 0) << entry->part.name;
}

TEST(TableStepCost, ImpossibleTimesAreDroppedAndSaid) {
  StepCostInput input = tiny_input();
  input.tables = round_tables();
  add(input.tables, "down_proj", {6}, 1);
  const auto cost = make(std::move(input));
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("down_proj: 1 of 5 times are faster")));
}

TEST(TableStepCost, PaddingCostsProductsNotAttention) {
  const auto cost = make(tiny_input());
  Batch batch = batch_of({}, {4, 4, 4});
  const double exact = cost->of(batch).device_ns;
  batch.padded_tokens = 8;
  const auto rows = cost->explain(batch);
  EXPECT_GT(cost->of(batch).device_ns, exact);
  const auto attention = std::ranges::find(rows, "attention", &OpTime::op);
  EXPECT_NEAR(attention->ns, attention->floor_ns, 1e-9);
}

// One long chunk costs more than two short ones of its length: only tables with mixed batches are asked for the sum.
// Two prompts of 4 tokens: two calls, or one of 8 tokens where the table knows batches. The shorter is nearer.
TEST(TableStepCost, SeveralPromptsAreTheShorterOfOneCallAndOneEach) {
  const auto time_of = [](double eight_ns, bool mixed, std::vector<std::int64_t> decodes) {
    StepCostInput input = tiny_input();
    add(input.tables, "attention", {4, 0, 0, 0}, 1000);
    add(input.tables, "attention", {8, 0, 0, 0}, eight_ns);
    if (mixed) add(input.tables, "attention", {8, 0, 1, 4}, eight_ns + 700);
    const auto rows = make(std::move(input))->explain(batch_of({{4, 0}, {4, 0}}, std::move(decodes)));
    const auto row = std::ranges::find(rows, "attention", &OpTime::op);
    return row->ns / static_cast<double>(row->calls);
  };
  EXPECT_NEAR(time_of(5000, false, {}), 2000, 1);
  EXPECT_NEAR(time_of(1500, false, {}), 2000, 1);  // the table knows single prompts only
  EXPECT_NEAR(time_of(5000, true, {}), 2000, 1);
  EXPECT_NEAR(time_of(1500, true, {}), 1500, 1);
  EXPECT_NEAR(time_of(5000, true, {4}), 2700, 1);  // the decode adds what it adds to 8 tokens
  EXPECT_NEAR(time_of(1500, true, {4}), 2200, 1);
}

TEST(TableStepCost, RanksPayForTheirLinks) {
  StepCostInput input = tiny_input();
  input.parallel.tensor = 2;
  input.link = {1e9, 5, "test"};
  const auto cost = make(input);
  const auto rows = cost->explain(batch_of({}, {4, 4, 4}));
  const auto row = std::ranges::find(rows, "all_reduce", &OpTime::op);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->calls, 5);                                   // two layers and the embedding
  EXPECT_NEAR(row->ns, 5 * (5 + 3 * 8 * 4 * 2 * 0.5), 1e-9);  // 3 rows of 8 float32
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("between ranks: test")));
  add(input.tables, "all_reduce", {32}, 1000);
  add(input.tables, "all_reduce", {96}, 3000);
  const auto measured = make(input)->explain(batch_of({}, {4, 4, 4}));
  EXPECT_NEAR(std::ranges::find(measured, "all_reduce", &OpTime::op)->ns, 5 * 3000, 1e-9);
}

TEST(TableStepCost, EveryModelOnSeveralRanks) {
  const std::vector<hw::Peak> peaks = hw::spec_peaks(*hw::find_device("h100-sxm"));
  const Batch batch = batch_of({{100, 0}, {17, 1000}}, {20, 3000, 70});
  for (const model::ZooEntry& entry : model::zoo()) {
    double before = 0;
    for (const std::int64_t ranks : {1, 2, 4}) {
      StepCostInput input;
      input.config = *model::config_of(entry);
      const bool experts =
          std::ranges::any_of(input.config.kinds, [](const auto& kind) { return kind.mlp.experts > 0; });
      input.parallel = {.tensor = ranks, .expert = experts ? ranks : 1};
      if (ranks > input.config.kinds.front().attention.heads) continue;
      input.roof = roof_for(input.config, peaks, "h100", 50 << 20);
      input.link = {1e12, 0, "test"};
      const auto cost = make(std::move(input));
      ASSERT_NE(cost, nullptr) << entry.name;
      const double ns = cost->of(batch).device_ns;
      EXPECT_TRUE(std::isfinite(ns) && ns > 0) << entry.name;
      if (before > 0) {
        EXPECT_LT(ns, before) << entry.name << " on " << ranks;
      }
      before = ns;
      double sum = 0;
      for (const OpTime& row : cost->explain(batch)) sum += row.ns;
      EXPECT_NEAR(sum / ns, 1, 1e-9) << entry.name;
    }
  }
}

TEST(TableStepCost, ExpertsElsewhereCostAllToAll) {
  StepCostInput input;
  input.config = zoo_config("qwen3-30b-a3b");
  input.parallel = {.tensor = 1, .expert = 8};
  input.roof = roof_for(input.config, hw::spec_peaks(*hw::find_device("h100-sxm")), "h100", 50 << 20);
  input.link = default_link(hw::find_device("h100-sxm"));
  const auto rows = make(std::move(input))->explain(batch_of({}, {4, 4, 4}));
  const auto row = std::ranges::find(rows, "all_to_all", &OpTime::op);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->calls, 2 * 48);
  EXPECT_EQ(std::ranges::find(rows, "all_reduce", &OpTime::op), rows.end());
}

// Two ranks: 8 copies of half the rows would be 4 rows, every row to the other rank is one.
TEST(TableStepCost, FewRanksGatherRows) {
  StepCostInput input;
  input.config = zoo_config("qwen3-30b-a3b");
  input.parallel = {.tensor = 1, .expert = 2};
  input.roof = roof_for(input.config, hw::spec_peaks(*hw::find_device("h100-sxm")), "h100", 50 << 20);
  input.link = {.bytes_per_s = 1e9, .latency_ns = 0, .source = "a test"};
  const auto rows = make(std::move(input))->explain(batch_of({}, {4, 4, 4}));
  const auto row = std::ranges::find(rows, "gather_scatter", &OpTime::op);
  ASSERT_NE(row, rows.end());
  EXPECT_NEAR(row->ns, 2 * 48 * 3 * 2048 * 2, 1);  // layers there and back, rows, hidden, bytes
}

// A rank that holds half of the experts gets half of its own choices, and as many of the other rank's where that has
// tokens of its own.
TEST(TableStepCost, ExpertTablesAreAskedByTheRanksShareOfChoices) {
  for (const std::int64_t tensor : {1, 2}) {
    StepCostInput input;
    input.config = zoo_config("qwen3-30b-a3b");
    input.parallel = {.tensor = tensor, .expert = 2};
    input.roof = roof_for(input.config, hw::spec_peaks(*hw::find_device("h100-sxm")), "h100", 50 << 20);
    input.tables.source.whole_experts = tensor == 2;
    for (const double tokens : {32.0, 64.0, 128.0, 256.0}) {
      for (const double experts : {32.0, 64.0}) add(input.tables, "moe", {tokens, experts}, 1e6 * tokens);
    }
    const auto rows = make(std::move(input))->explain(batch_of({}, std::vector<std::int64_t>(128, 100)));
    const auto row = std::ranges::find(rows, "moe", &OpTime::op);
    EXPECT_NEAR(row->ns / 48, tensor == 1 ? 128e6 : 64e6, 1e6) << tensor;
  }
}

TEST(TableStepCost, WholeExpertsDoNotStandForSplitOnes) {
  StepCostInput input;
  input.config = zoo_config("qwen3-30b-a3b");
  input.parallel = {.tensor = 2};
  input.roof = roof_for(input.config, hw::spec_peaks(*hw::find_device("h100-sxm")), "h100", 50 << 20);
  input.tables.source.whole_experts = true;
  add(input.tables, "moe", {1, 8}, 1e6);
  const auto rows = make(std::move(input))->explain(batch_of({}, {100}));
  EXPECT_EQ(std::ranges::find(rows, "moe", &OpTime::op)->basis, Basis::kRoof);
}

TEST(TableStepCost, LinksOfTheCatalogue) {
  EXPECT_EQ(default_link(hw::find_device("h100-sxm")).bytes_per_s, 450e9);
  EXPECT_THAT(default_link(hw::find_device("rtx4090")).source, HasSubstr("assumed: PCIe 4.0"));
  EXPECT_THAT(default_link(hw::find_device("rtx-pro-6000")).source, HasSubstr("assumed: PCIe 5.0"));
  EXPECT_GT(default_link(nullptr).bytes_per_s, 0);
}

TEST(TableStepCost, ExpertsAreLookedUpByThoseExpected) {
  StepCostInput input;
  input.config = zoo_config("mixtral-8x7b");
  input.roof = roof_for(input.config, hw::spec_peaks(*hw::find_device("h100-sxm")), "h100", 50 << 20);
  for (const double tokens : {1.0, 4.0, 16.0}) {
    for (const double experts : {2.0, 4.0, 8.0}) add(input.tables, "moe", {tokens, experts}, 1e6 * experts);
  }
  const auto cost = make(std::move(input));
  const auto one = cost->explain(batch_of({}, {100}));
  EXPECT_NEAR(std::ranges::find(one, "moe", &OpTime::op)->ns, 32 * 2e6, 1);  // two experts of one token
  const auto four = cost->explain(batch_of({}, {100, 100, 100, 100}));
  const auto row = std::ranges::find(four, "moe", &OpTime::op);
  EXPECT_NEAR(row->ns, 32 * 1e6 * 8 * (1 - std::pow(0.75, 4)), 32e4);
  EXPECT_EQ(row->basis, Basis::kInterpolated);
  EXPECT_EQ(std::ranges::find(four, "router", &OpTime::op), four.end());
  EXPECT_THAT(cost->notes(), Contains(HasSubstr("router: taken to be part of the table moe")));
}

TEST(TableStepCost, WindowsAreLookedUpByWhatTheyShow) {
  StepCostInput input = tiny_input();
  model::LayerKind windowed = model::tiny_llama_layer();
  windowed.attention.window = 4;
  model::add_layer(input.config, windowed);
  input.roof = {};
  input.tables = round_tables();
  OperatorTables tables = round_tables();
  add(tables, "attention", {0, 0, 1, 64}, 50e6);
  input.tables = tables;
  const auto cost = make(std::move(input));
  const auto rows = cost->explain(batch_of({}, {64}));
  double ns = 0;
  for (const OpTime& row : rows) ns += row.op == "attention" ? row.ns : 0;
  EXPECT_NEAR(ns, 2 * 50e6 + 2e6, 1);
}

TEST(TableStepCost, HostAndLaunches) {
  StepCostInput input = tiny_input();
  input.host = {100, 10, 1, "test"};
  input.launch = {1e9, 10, "test"};
  Batch batch = batch_of({}, {4, 4});
  batch.new_requests = 1;
  const auto cost = make(input);
  EXPECT_EQ(cost->of(batch).host_ns, 100 + 20 + 1);
  EXPECT_NEAR(cost->of(batch).device_ns, 2 * 10 * 1e9, 1);
  batch.launch = Launch::kGraph;
  EXPECT_LT(cost->of(batch).device_ns, 1e9);
  EXPECT_EQ(cost->of(Batch{}).device_ns, 0);
}

TEST(EngineMemory, WhatDoesNotFitIsNegative) {
  const auto needs = memory_needs(zoo_config("llama-3.1-70b"), {}, {});
  ASSERT_TRUE(needs);
  EXPECT_LT(kv_cache_bytes(*needs, 80e9, 0.9), 0);
  const auto four = memory_needs(zoo_config("llama-3.1-70b"), {.tensor = 4}, {});
  EXPECT_GT(kv_cache_bytes(*four, 80e9, 0.9), 0);
  EXPECT_NEAR(four->kv_bytes_per_token, needs->kv_bytes_per_token / 4, 1e-6);
  EXPECT_FALSE(memory_needs(zoo_config("llama-3.1-70b"), {.tensor = 1000}, {}));
  const auto wide = memory_needs(zoo_config("llama-3.1-8b"), {}, {.max_batched_tokens = 16384});
  EXPECT_THAT(wide->assumptions.front(), HasSubstr("a layer with 16384 tokens"));
}

}  // namespace
}  // namespace llmprof::predict

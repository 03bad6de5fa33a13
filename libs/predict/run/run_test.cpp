#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/catalog.h"
#include "model/testing/tiny.h"
#include "model/zoo/zoo.h"
#include "predict/run/layout.h"
#include "predict/run/predict_steps.h"
#include "trace/run.h"
#include "trace/test_run.h"

namespace llmprof::predict {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// 1 FLOP and 1 byte each take 1 ns.
const std::vector<hw::Peak> kSlow{{"flops", "float32", 1e9, "FLOP/s", "spec", "test"},
                                  {"bandwidth", "read", 1e9, "B/s", "spec", "test"}};
constexpr const char* kConfig =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, )"
    R"("num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 10, "tie_word_embeddings": false, )"
    R"("torch_dtype": "float32"})";

StepCostInput cost_input() {
  StepCostInput input;
  input.config = *model::parse_config(kConfig, "test");
  input.roof = roof_for(input.config, kSlow, "test", 1);
  return input;
}

std::unique_ptr<TableStepCost> make(StepCostInput input) {
  auto cost = TableStepCost::make(std::move(input));
  EXPECT_TRUE(cost) << (cost ? "" : cost.error().message);
  return cost ? std::move(*cost) : nullptr;
}

StepsInput steps_input() {
  StepsInput input{.batch = 2, .prompt = 8, .decode_steps = 10};
  input.device = {.kind = "gpu", .name = "Toy GPU", .chip = "T1", .units = 4, .memory_bytes = 1'000'000'000};
  input.device.cache_bytes = 1;
  input.peaks = kSlow;
  input.config_text = kConfig;
  input.model_origin = "a tiny llama";
  input.command = {"llmprof", "predict", "tiny"};
  return input;
}

// Every operator takes 1 ms a call, attention 2 ms: of two prompts of 8 each half of it.
OperatorTables round_tables() {
  OperatorTables tables;
  const auto add = [&](const char* op, std::vector<double> at, double ns) { ASSERT_TRUE(tables.add(op, at, ns)); };
  for (const char* op : {"embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn",
                         "down_proj", "final_layernorm", "lm_head", "sampler"}) {
    for (const double rows : {1.0, 2.0, 16.0}) add(op, {rows}, 1e6);
  }
  for (const double context : {1.0, 64.0}) add("attention", {0, 0, 2, context}, 2e6);
  add("attention", {8, 0, 0, 0}, 1e6);
  add("attention", {16, 0, 0, 0}, 2e6);
  return tables;
}

StepsPrediction predict(const TableStepCost& cost, const StepsInput& input) {
  auto out = predict_steps(cost, input);
  EXPECT_TRUE(out) << (out ? "" : out.error().message);
  return out ? std::move(*out) : StepsPrediction{};
}

// Folders stay where LLMPROF_KEEP_RUNS says, to be looked at.
trace::Run write_and_open(const PredictedRun& run, const trace::TestFolder& folder, const char* name) {
  const char* keep = std::getenv("LLMPROF_KEEP_RUNS");
  const std::string path = keep != nullptr ? std::string(keep) + "/" + name : folder / name;
  const auto written = write_run(path, run);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  auto opened = trace::Run::open(path);
  EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
  const auto findings = trace::check_run(*opened);
  EXPECT_TRUE(findings);
  if (findings) {
    for (const trace::CheckFinding& finding : *findings) ADD_FAILURE() << finding.where << ": " << finding.what;
  }
  return std::move(*opened);
}

std::vector<std::vector<std::string>> ask(const trace::Run& run, const std::string& sql) {
  std::vector<std::vector<std::string>> out;
  const auto table = run.query(sql);
  EXPECT_TRUE(table) << (table ? "" : table.error().message);
  if (!table) return out;
  for (const auto& row : table->rows) {
    out.emplace_back();
    for (const trace::Value& value : row) {
      out.back().push_back(value.type == trace::Value::Type::kText ? value.text
                           : value.is_null()                       ? "NULL"
                                                                   : std::to_string(value.as_int()));
    }
  }
  return out;
}

std::int64_t number(const trace::Run& run, const std::string& sql) { return std::stoll(ask(run, sql)[0][0]); }

TEST(StepLayout, EveryOperatorOfEveryLayerInOrder) {
  StepCostInput input = cost_input();
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  const auto layout = StepLayout::make(*cost, Detail::kLayers);
  ASSERT_TRUE(layout);
  std::vector<std::string> modules;
  for (const Place& place : layout->places()) modules.push_back(place.module);
  ASSERT_GE(modules.size(), 13);
  EXPECT_THAT(std::vector(modules.begin(), modules.begin() + 6),
              ElementsAre("embed_tokens", "layers.0.input_layernorm", "layers.0.self_attn.q_proj",
                          "layers.0.self_attn.k_proj", "layers.0.self_attn.v_proj", "layers.0.self_attn.rope"));
  EXPECT_THAT(modules, Contains("layers.1.post_attention_layernorm"));
  EXPECT_THAT(modules, Contains("lm_head"));
  // 2 layers of 2 norms, qkv, rope, attention, o, gate_up, act, down; embedding, norm, logits, sampler.
  EXPECT_EQ(layout->kernels(), 2 * 9 + 4);
}

TEST(StepLayout, TimesAddUpToTheStep) {
  StepCostInput input = cost_input();
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  Batch batch{.chunks = {}, .contexts = {9, 9}, .sampled = 2, .padded_tokens = 2};
  const std::vector<OpTime> times = cost->explain(batch);
  for (const Detail detail : {Detail::kLayers, Detail::kParts}) {
    const auto layout = StepLayout::make(*cost, detail);
    ASSERT_TRUE(layout);
    double sum = 0, end = 0;
    for (const Execution& each : layout->lay_out(batch, times)) {
      EXPECT_NEAR(each.begin_ns, end, 1e-3);
      end = each.begin_ns + each.ns;
      sum += each.ns;
    }
    EXPECT_NEAR(sum, 24e6, 1);  // 2 layers of 8 + 2 ms, 4 ms outside
  }
}

TEST(PredictSteps, TablesGiveTtftAndTpot) {
  StepCostInput input = cost_input();
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  const StepsPrediction out = predict(*cost, steps_input());
  EXPECT_NEAR(*out.ttft_ns, 24e6, 1);
  EXPECT_NEAR(*out.tpot_ns, 24e6, 1);
  ASSERT_EQ(out.stages.size(), 2);
  EXPECT_EQ(out.stages[1].steps, 10);
  EXPECT_GT(*out.stages[1].floor_ns, 0);
  EXPECT_FALSE(out.energy);
  EXPECT_THAT(out.run.stands_on, HasSubstr("the host's is unknown"));
}

TEST(PredictSteps, HostTimeStandsBetweenSteps) {
  StepCostInput input = cost_input();
  input.tables = round_tables();
  input.host = {.per_step_ns = 1e6, .per_request_ns = 5e5, .per_new_request_ns = 0, .source = "test"};
  const auto cost = make(std::move(input));
  StepsInput steps = steps_input();
  EXPECT_NEAR(*predict(*cost, steps).tpot_ns, 26e6, 1);
  steps.host_hidden = true;
  steps.power = Power{.watts = 100, .bound = true, .source = "test"};
  const StepsPrediction hidden = predict(*cost, steps);
  EXPECT_NEAR(*hidden.tpot_ns, 24e6, 1);
  EXPECT_NEAR(*hidden.energy->decode_j_per_token, 100 * 24e-3 / 2, 1e-9);
  // What was measured of a stage counts there, the limit elsewhere.
  steps.prefill_power = Power{.watts = 300, .bound = false, .source = "measured"};
  const StepsPrediction measured = predict(*cost, steps);
  EXPECT_NEAR(*measured.energy->prefill_j, 300 * *measured.ttft_ns * 1e-9, 1e-9);
  EXPECT_FALSE(measured.energy->prefill_power->bound);
  EXPECT_NEAR(*measured.energy->decode_j_per_token, 100 * 24e-3 / 2, 1e-9);
  EXPECT_TRUE(measured.energy->decode_power->bound);
}

TEST(PredictSteps, VariantsSayWhatTheyAre) {
  StepCostInput input = cost_input();
  input.tables = round_tables();
  input.launch = {.launch_ns = 2e6, .kernels_per_layer = 12, .source = "test"};
  const auto cost = make(std::move(input));
  const StepsPrediction out = predict(*cost, steps_input());
  const std::vector<Variant>& variants = out.stages[1].variants;
  ASSERT_EQ(variants.size(), 4);
  EXPECT_NEAR(*variants[1].ns, 22 * 2e6, 1);  // 22 kernels: the launches are slower than the device
  EXPECT_NEAR(*variants[2].ns, 24e6, 1);
  EXPECT_NEAR(*variants[3].ns, 24e6 - 2 * 4e6 - 1e6, 1);  // without norms, rotation and activation
  EXPECT_GT(*variants[0].ns, *variants[1].ns);
  EXPECT_EQ(variants[0].kernels, 22 + 2 * 3);
}

TEST(PredictSteps, WhatCannotBeIsRefused) {
  const auto cost = make(cost_input());
  StepsInput input = steps_input();
  input.batch = 0;
  EXPECT_FALSE(predict_steps(*cost, input));
  input = steps_input();
  input.prompt = input.decode_steps = 0;
  EXPECT_FALSE(predict_steps(*cost, input));
  input = steps_input();
  input.context = std::int64_t{1} << 40;
  EXPECT_FALSE(predict_steps(*cost, input));
  input = steps_input();
  input.device.memory_bytes = 100;
  const StepsPrediction small = predict(*cost, input);
  EXPECT_FALSE(small.memory.fits());
  EXPECT_THAT(small.notes, Contains(HasSubstr("does not fit")));
}

TEST(WriteRun, WithoutTablesEveryTimeIsTheRoof) {
  const trace::TestFolder folder;
  const auto cost = make(cost_input());
  const StepsPrediction out = predict(*cost, steps_input());
  EXPECT_THAT(out.run.stands_on, HasSubstr("stands on the device's roof, the least it can be;"));
  const trace::Run run = write_and_open(out.run, folder, "roof.llmprof");
  EXPECT_EQ(run.info().source, "predict");
  EXPECT_EQ(run.info().prediction, out.run.stands_on);
  EXPECT_EQ(number(run, "SELECT count(*) FROM range WHERE category = 'step'"), 11);
  EXPECT_EQ(number(run, "SELECT count(*) FROM kernel WHERE NOT coalesce(estimated, false)"), 0);
  EXPECT_EQ(ask(run, "SELECT name, payload FROM range WHERE category = 'step' ORDER BY begin_ns LIMIT 2"),
            (std::vector<std::vector<std::string>>{{"prefill", std::to_string(2 | 8 << 16 | std::int64_t{8} << 40)},
                                                   {"decode", std::to_string(2 | 1 << 16 | std::int64_t{9} << 40)}}));
  // Kernels fill the steps: no gaps in a graph.
  const std::int64_t steps = number(run, "SELECT sum(end_ns - begin_ns) FROM range WHERE category = 'step'");
  EXPECT_NEAR(number(run, "SELECT sum(end_ns - begin_ns) FROM kernel"), steps, 11);
  EXPECT_EQ(number(run, "SELECT count(*) FROM process WHERE exit_status IS NOT NULL OR end_ns IS NOT NULL"), 0);
}

TEST(WriteRun, TablesGiveRowsByHand) {
  const trace::TestFolder folder;
  StepCostInput input = cost_input();
  input.tables = round_tables();
  const auto cost = make(std::move(input));
  const trace::Run run = write_and_open(predict(*cost, steps_input()).run, folder, "tables.llmprof");
  EXPECT_EQ(ask(run,
                "SELECT name, sum(end_ns - begin_ns) FROM kernel WHERE name IN ('qkv_proj', 'lm_head') GROUP BY "
                "name ORDER BY name"),
            (std::vector<std::vector<std::string>>{{"lm_head", "11000000"}, {"qkv_proj", "22000000"}}));
  // A range of each operator holds its kernel, inside the range of its step.
  EXPECT_EQ(number(run, "SELECT count(*) FROM kernel"),
            number(run, "SELECT count(*) FROM range WHERE category = 'module'"));
  EXPECT_EQ(number(run,
                   "SELECT count(*) FROM range AS m JOIN range AS s ON s.id = m.parent_id WHERE m.begin_ns < "
                   "s.begin_ns OR m.end_ns > s.end_ns"),
            0);
}

TEST(WriteRun, EveryOperatorOfALargeModel) {
  const trace::TestFolder folder;
  const model::ZooEntry* entry = model::find_in_zoo("llama-3.1-8b");
  const hw::DeviceSpec* spec = hw::find_device("h200");
  ASSERT_TRUE(entry != nullptr && spec != nullptr);
  StepsInput steps{.batch = 8, .prompt = 512};
  steps.device = hw::device_of(*spec), steps.peaks = hw::spec_peaks(*spec);
  steps.config_text = entry->config, steps.model_origin = entry->name;
  steps.command = {"llmprof", "predict", "llama-3.1-8b"};
  StepCostInput input;
  input.config = *model::config_of(*entry);
  input.roof = roof_for(input.config, steps.peaks, steps.device.name, steps.device.cache_bytes);
  input.parallel.tensor = 2;
  const auto cost = make(std::move(input));
  const StepsPrediction out = predict(*cost, steps);
  // 8 G parameters of 2 bytes, by two devices that read 4.8 TB/s each: 1.7 ms a token at least.
  EXPECT_GT(*out.tpot_ns, 1.5e6);
  EXPECT_LT(*out.tpot_ns, 3e6);
  // What links take is stated by somebody: it is not called the least that it can be.
  EXPECT_GT(out.stages[0].assumed_ns, 0);
  EXPECT_NEAR(out.stages[0].assumed_ns + out.stages[0].stands_on.total(), out.stages[0].device_ns, 1);
  EXPECT_THAT(out.run.stands_on, HasSubstr("of stated costs of links and launches"));
  const trace::Run run = write_and_open(out.run, folder, "large.llmprof");
  // After the embedding, and after attention and MLP of each layer.
  EXPECT_EQ(number(run, "SELECT count(*) FROM kernel WHERE name = 'all_reduce'"), 33 * (2 * 32 + 1));
  EXPECT_EQ(number(run, "SELECT count(DISTINCT name) FROM range WHERE name LIKE 'layers.%.self_attn.q_proj'"), 32);
  EXPECT_EQ(run.info().parallel, "tp=2");
}

TEST(WriteRun, UnevenBatchesAndRequests) {
  const trace::TestFolder folder;
  const auto cost = make(cost_input());
  const auto layout = StepLayout::make(*cost, Detail::kParts);
  ASSERT_TRUE(layout);
  PredictedRun predicted;
  predicted.config_text = kConfig, predicted.model_origin = "a tiny llama";
  predicted.device = steps_input().device, predicted.peaks = kSlow;
  predicted.stands_on = "A test.";
  predicted.command = {"llmprof", "predict", "--serving"};
  predicted.places = layout->places();
  double now_ns = 0;
  for (std::int64_t i = 0; i < 20; ++i) {
    Batch batch{.chunks = {{5, 3}, {2, 0}}, .contexts = {7 + i, 9 + i}, .sampled = 4};
    if (i % 2 == 1) batch.chunks.clear(), batch.sampled = 2;
    batch.padded_tokens = batch.tokens();
    const std::vector<OpTime> times = cost->explain(batch);
    PredictedStep step{.begin_ns = now_ns, .device_ns = 0, .batch = batch, .work = layout->lay_out(batch, times)};
    for (const OpTime& op : times) step.device_ns += op.ns;
    now_ns += step.device_ns + 1e6;
    predicted.steps.push_back(std::move(step));
  }
  predicted.requests = {{0, 5e6, now_ns, 5, 18, "finished"}, {1e6, {}, {}, 2, 0, "waiting"}};
  const trace::Run run = write_and_open(predicted, folder, "serving.llmprof");
  EXPECT_EQ(ask(run, "SELECT name FROM range WHERE category = 'step' ORDER BY begin_ns LIMIT 2"),
            (std::vector<std::vector<std::string>>{
                {"execute_9_context_2(sq7sk10sqsq29sqsk44)_generation_2(sq2sk16sqsq2sqsk16)"},
                {"execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk18sqsq2sqsk18)"}}));
  EXPECT_EQ(ask(run, "SELECT first_token_ns, prompt_tokens, status FROM request ORDER BY arrival_ns"),
            (std::vector<std::vector<std::string>>{{"5000000", "5", "finished"}, {"NULL", "2", "waiting"}}));
}

}  // namespace
}  // namespace llmprof::predict

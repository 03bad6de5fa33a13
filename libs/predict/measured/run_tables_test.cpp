#include "predict/measured/run_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "bench/sweep/run.h"
#include "bench/testing_bench.h"
#include "hw/peaks.h"
#include "model/checkpoint/open_model.h"
#include "predict/measured/for_model.h"
#include "predict/measured/store.h"
#include "predict/tables/step_cost.h"
#include "trace/test_run.h"

namespace llmprof::predict {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A device whose calls take 1 us and 1 ns for every byte they move; its kernel of prefills takes twice as long.
class SlowBench final : public bench::FakeBench {
 public:
  using FakeBench::FakeBench;
  SlowBench(bench::BenchOptions options, std::vector<std::string>* ran) : FakeBench(options, ran), options_(options) {
    peaks_ = {{"latency", "kernel launch", 3e-6, "s", "measured", ""},
              {"latency", "kernel after kernel", 2e-6, "s", "measured", ""},
              {"latency", "graph launch, per node", 1e-6, "s", "measured", ""}};
  }
  bench::PointResult run(const bench::Problem& problem, const std::function<bool()>& go_on) override {
    bench::PointResult result = FakeBench::run(problem, go_on);
    result.work = bench::find_operator(problem.op)->work(problem);
    const bool later = problem.op == "attention_mixed" && problem.at("prior") > 0;
    const bool kernel = later || options_.implementation == "kernel";
    result.implementation = kernel ? "kernel" : "cudnn";
    const double seconds = (1e-6 + 1e-9 * result.work.bytes()) * (kernel ? 2 : 1);
    result.measured.samples = {seconds, seconds, seconds};
    result.measured.time = bench::statistics(result.measured.samples);
    result.graph_seconds = seconds + 0.5e-6;
    return result;
  }

 private:
  bench::BenchOptions options_;
};

class RunTables : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("LLMPROF_CACHE_DIR", (folder_ / "cache").c_str(), 1);
    config_ = model::open_model("llama3-8b")->config;
  }
  void TearDown() override { ::unsetenv("LLMPROF_CACHE_DIR"); }

  // The plan of llama3-8b as a run.
  trace::Run measured(std::vector<std::string> command = {"llmprof", "bench", "--for", "llama3-8b"}) {
    ForRequest request{
        .config = config_, .device = bench::DeviceKind::kGpu, .max_tokens = 64, .max_batch = 8, .max_context = 512};
    bench::Sweep sweep;
    sweep.device = "cuda";
    sweep.command = std::move(command);
    sweep.points = plan_for_model(request)->points;
    const auto open = [this](const std::string&, const bench::BenchOptions& options) {
      return Result<std::unique_ptr<bench::Bench>>(std::make_unique<SlowBench>(options, &ran_));
    };
    const auto outcome = bench::run_sweep(sweep, run_, true, open, base::no_progress);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
    return std::move(*trace::Run::open(run_));
  }

  trace::TestFolder folder_;
  std::string run_ = folder_ / "x.llmprof";
  std::vector<std::string> ran_;
  model::Config config_;
};

double at(const OperatorTables& tables, std::string_view op, std::vector<double> place) {
  const Grid* grid = tables.find(op);
  EXPECT_NE(grid, nullptr) << op;
  if (grid == nullptr) return 0;
  Grid settled = *grid;
  settled.settle(nullptr);
  const Answer answer = settled.ask(place);
  EXPECT_EQ(answer.basis, Basis::kMeasured) << op;
  return answer.ns;
}

TEST_F(RunTables, PointsStandWhereTheirPartsAre) {
  const trace::Run run = measured();
  const auto tables = tables_from_run(run);
  ASSERT_TRUE(tables) << tables.error().message;
  // 4096 x 6144 weights, 8 rows in and out, 2 bytes each.
  EXPECT_NEAR(at(*tables, "qkv_proj", {8}), 1000 + 2.0 * (4096.0 * 6144 + 8 * (4096 + 6144)), 1);
  EXPECT_GT(at(*tables, "lm_head", {8}), at(*tables, "lm_head", {1}));
  EXPECT_EQ(at(*tables, "layernorm", {64}), at(*tables, "final_layernorm", {64}));
  EXPECT_EQ(tables->find("kv_write"), nullptr);
  EXPECT_EQ(tables->source.model, "llama3-8b");
  EXPECT_EQ(tables->source.device, "Abacus");
  EXPECT_EQ(tables->source.tensor, 1);
  EXPECT_THAT(tables->source.engine, HasSubstr("llmprof "));
  const auto in_graph = tables_from_run(run, TimesOf::kInGraph);
  ASSERT_TRUE(in_graph);
  EXPECT_NEAR(at(*in_graph, "qkv_proj", {8}) - at(*tables, "qkv_proj", {8}), 500, 1e-3);
}

TEST_F(RunTables, AttentionWritesItsCache) {
  const auto tables = tables_from_run(measured());
  ASSERT_TRUE(tables) << tables.error().message;
  const bench::Operator& decode = *bench::find_operator("attention_decode");
  const auto problem = bench::make_problem(
      decode, bench::Type::kBfloat16,
      std::vector<std::pair<std::string, std::int64_t>>{
          {"batch", 8}, {"context", 512}, {"heads", 32}, {"kv_heads", 8}, {"head_dim", 128}, {"page", 16}});
  const double alone_ns = 1000 + decode.work(*problem).bytes();
  EXPECT_GT(at(*tables, "attention", {0, 0, 8, 512}), alone_ns + 1000);  // the launch of the write, and its bytes
}

TEST_F(RunTables, AnotherKernelsTimesAreScaledAndSumsAreCompared) {
  const trace::Run run = measured();
  const auto measured = measured_tables(run);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_THAT(measured->notes, Contains(HasSubstr("times scaled by 0.50 to 0.50")));
  // Two calls have 1 us each, the mixed one has 1 us together: a little less than the sum.
  EXPECT_THAT(measured->notes, Contains(HasSubstr("of the sum of both, ")));
  EXPECT_EQ(measured->launch.launch_ns, 3000);
  EXPECT_EQ(measured->launch.queued_ns, 2000);
  EXPECT_EQ(measured->launch.graph_node_ns, 1000);
  const auto tables = to_tables(*measured);
  ASSERT_TRUE(tables);
  // By the slow kernel it would be more than twice as long.
  EXPECT_LT(at(*tables, "attention", {64, 256, 0, 0}), 2 * at(*tables, "attention", {64, 0, 0, 0}) + 1.2e6);
}

TEST_F(RunTables, AStepStandsOnThem) {
  auto tables = tables_from_run(measured());
  ASSERT_TRUE(tables) << tables.error().message;
  auto cost = TableStepCost::make({.config = config_, .tables = std::move(*tables)});
  ASSERT_TRUE(cost) << cost.error().message;
  Batch batch{.contexts = {512, 512}, .sampled = 2, .padded_tokens = 2};
  EXPECT_GT((*cost)->of(batch).device_ns, 16e9 * 0.9);  // 16 GB of weights, 1 ns for each byte
  EXPECT_NEAR((*cost)->stands_on().share(Basis::kMeasured), 1, 1e-9);
  for (const OpTime& row : (*cost)->explain(batch)) EXPECT_EQ(row.source, "table") << row.op;
}

TEST_F(RunTables, KeptPerDeviceModelAndType) {
  const trace::Run run = measured();
  const auto measured = measured_tables(run);
  ASSERT_TRUE(measured);
  hw::Device device;
  device.kind = "gpu";
  device.name = "Abacus";
  const TablesKey key{.device = device, .config = config_, .tensor = 1, .type = kept_type(config_, device, "")};
  EXPECT_EQ(key.type, "bfloat16");
  const auto nothing = kept_tables(key);
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().hint, HasSubstr("llmprof bench --for"));
  const auto folder = keep_tables(key, *measured);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_THAT(*folder, HasSubstr("/operators/" + hw::fingerprint(device) + "/llama-4096x32-"));
  const auto kept = kept_tables(key);
  ASSERT_TRUE(kept) << kept.error().message;
  const auto direct = to_tables(*measured);
  ASSERT_TRUE(direct);
  EXPECT_EQ(kept->operators(), direct->operators());
  EXPECT_NEAR(at(*kept, "qkv_proj", {8}), at(*direct, "qkv_proj", {8}), 0.1);
  EXPECT_EQ(kept->source.device, "Abacus");
  EXPECT_EQ(kept->source.tensor, 1);
  const auto in_graph = kept_tables(key, TimesOf::kInGraph);
  ASSERT_TRUE(in_graph) << in_graph.error().message;
  EXPECT_NEAR(at(*in_graph, "qkv_proj", {8}) - at(*kept, "qkv_proj", {8}), 500, 0.2);
  EXPECT_EQ(kept_launch_costs(*folder).graph_node_ns, 1000);
  EXPECT_EQ(kept_launch_costs(folder_ / "nowhere").source, "");
  TablesKey other = {.device = device, .config = config_, .tensor = 2, .type = "bfloat16"};
  EXPECT_FALSE(kept_tables(other));
}

TEST_F(RunTables, OtherRunsAreRefused) {
  const auto refused = tables_from_run(measured({"llmprof", "bench", "linear"}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is no run of `llmprof bench --for MODEL`"));
}

TEST(ForCommand, FromTheWords) {
  const auto found = for_command({"llmprof", "bench", "--for=gpt2", "--tp", "4", "--dtype", "bfloat16"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->model, "gpt2");
  EXPECT_EQ(found->tensor, 4);
  EXPECT_EQ(found->dtype, "bfloat16");
  EXPECT_FALSE(for_command({"llmprof", "bench", "gemm"}));
  EXPECT_FALSE(for_command({"llmprof", "bench", "--for"}));
  EXPECT_FALSE(for_command({"llmprof", "bench", "--for", "x", "--tp", "no"}));
}

TEST(ShapeKey, NamesAndTypesDoNotMatter) {
  model::Config a = model::open_model("llama3-8b")->config, b = a;
  b.name = "my-finetune";
  EXPECT_TRUE(model::set_types(b, {.weights = "float16"}));
  EXPECT_EQ(shape_key(a), shape_key(b));
  b.kinds.front().attention.kv_heads = 4;
  EXPECT_NE(shape_key(a), shape_key(b));
}

}  // namespace
}  // namespace llmprof::predict

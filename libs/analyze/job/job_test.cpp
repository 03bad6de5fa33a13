// Numbers of jobs of several ranks, against values derived by hand.

#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "analyze/context.h"
#include "analyze/derive.h"
#include "analyze/job/job.h"
#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {

namespace {

using testing::HasSubstr;

TEST(ParallelGroups, AreReadInTheOrderOfRanks) {
  const auto groups = parse_groups("tp=2,pp=4,dp=3,ep=6");
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->tensor, 2);
  EXPECT_EQ(groups->pipeline, 4);
  EXPECT_EQ(groups->data, 3);
  EXPECT_EQ(groups->expert, 6);
  EXPECT_EQ(groups->words(), "tensor parallel 2, pipeline parallel 4, expert parallel 6, data parallel 3");
  for (const char* bad : {"", "tp", "tp=", "tp=0", "tp=-1", "tp=2x", "2", "xp=2", "tp=99999999999999999999"})
    EXPECT_FALSE(parse_groups(bad)) << bad;
}

// Rank 5 of tp=2, pp=2, dp=2: tensor rank 1 of the pair (4, 5).
TEST(ParallelGroups, PlacesOfRanks) {
  const RankPlace engine = place_of(*parse_groups("tp=2,pp=2,dp=2"), 5);  // pairs: pp 0 and 1 of copy 0, then of copy 1
  EXPECT_EQ(engine.tensor, 1);
  EXPECT_EQ(engine.pipeline, 0);
  EXPECT_EQ(engine.data, 1);
  const RankPlace trainer =
      place_of(*parse_groups("tp=2,dp=2,pp=2"), 5);  // pairs: copies 0 and 1 of pp 0, then of pp 1
  EXPECT_EQ(trainer.tensor, 1);
  EXPECT_EQ(trainer.pipeline, 1);
  EXPECT_EQ(trainer.data, 0);
  EXPECT_EQ(place_of(*parse_groups("tp=2,dp=2,ep=4"), 3).expert, 3);
}

TEST(ParallelGroups, OfCommandLines) {
  const auto said = [](const char* line) { return said_by_commands({line}); };
  const SaidSizes vllm = said("python -m vllm serve org/model --tensor-parallel-size 4 -pp=2 --port 80");
  EXPECT_EQ(vllm.tensor, 4);
  EXPECT_EQ(vllm.pipeline, 2);
  EXPECT_TRUE(vllm.complete);
  EXPECT_EQ(vllm.words, "--tensor-parallel-size 4 -pp 2");
  const SaidSizes megatron = said("pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4");
  EXPECT_EQ(megatron.tensor, 2);
  EXPECT_EQ(megatron.pipeline, 4);
  EXPECT_TRUE(megatron.data_before_pipeline);
  EXPECT_EQ(said("vllm serve m -tp 2 -dp 2 --enable-expert-parallel").expert, 4);
  EXPECT_EQ(said("python train.py model.tensor_model_parallel_size=4").tensor, 4);
  EXPECT_EQ(said("python -m sglang.launch_server --tp 8").tensor, 8);
  EXPECT_EQ(said("trtllm-serve m --tp_size 2 --pp_size=2").words, "--tp_size 2 --pp_size 2");
  EXPECT_EQ(said("vllm serve tp 2").words, "");
  EXPECT_EQ(said("convert -tp 2 --dp 4 a.png").words, "");
  EXPECT_EQ(said("vllm serve --tensor-parallel-size many").words, "");
}

TEST(ParallelGroups, RanksOfLaunchers) {
  EXPECT_EQ(ranks_of_command("/usr/bin/torchrun --nnodes 2 --nproc-per-node=8 train.py -n 3"), 16);
  EXPECT_EQ(ranks_of_command("python -m torch.distributed.run --nproc_per_node 4 train.py"), 4);
  EXPECT_EQ(ranks_of_command("torchrun --nnodes 1:4 --nproc-per-node 8 train.py"), 0);  // elastic
  EXPECT_EQ(ranks_of_command("torchrun --nproc-per-node gpu train.py"), 0);
  EXPECT_EQ(ranks_of_command("mpirun -np 6 ./train"), 6);
  EXPECT_EQ(ranks_of_command("srun --ntasks=4 python train.py -n 3"), 4);
  EXPECT_EQ(ranks_of_command("srun python train.py -n 3"), 0);
  EXPECT_EQ(ranks_of_command("train.py -np 3 --nnodes 2"), 0);
}

// One layer: 4 x 64 x 64 of attention, 3 x 64 x 128 of the MLP; 64 x 256 logits. 57,344 weights are 114,688 FLOP a
// token; attention over 4 positions is 4 x 4 x 64 = 1,024. Each of up to 8 tensor ranks has an even part of all of
// them.
constexpr const char* kModel =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "bfloat16"})";
constexpr double kFlops = 114'688 + 1'024, kLogits = 2 * 64 * 256;
constexpr double kPeak = kFlops / 100e-9;  // a step of the whole model takes one device 100 ns

// Ranks that make two decode steps of 1 us at the same time, each with a kernel of 500 ns of which the logits take 100.
struct Ranks {
  int ranks = 1, devices = 1;
  bool numbered = true;
  std::vector<std::string> variables = {};  // of the second rank, the third, …
  std::vector<std::string> commands = {};
};

void add_mark(RuleRun& run, std::string_view category, std::string_view text) {
  trace::RangeRow mark{.id = run.next_id(), .begin_ns = 500, .end_ns = 500, .name = run.name(text)};
  mark.kind = run.name("mark"), mark.domain = run.name("llmprof"), mark.category = run.name(category);
  mark.process_id = mark.thread_id = 1, mark.source = run.name("nvtx");
  run.add(mark);
}

void add_device(RuleRun& run, std::int64_t id) {
  if (id != kGpu) run.gpu(id);
  run.peak("flops", "bfloat16", kPeak, id);
  run.peak("bandwidth", "read", 1e18, id);
}

void add_kernel(RuleRun& run, std::int64_t device, std::int64_t thread, std::int64_t begin, std::int64_t end) {
  trace::KernelRow kernel = run.kernel_row("gemm", begin, begin, end);
  kernel.device_id = device, kernel.thread_id = thread;
  run.add(kernel);
}

void add_ranks(RuleRun& run, const Ranks& of) {
  add_mark(run, "model", kModel);
  for (int device = 0; device < of.devices; ++device) add_device(run, kGpu + device);
  for (int rank = 0; rank < of.ranks; ++rank) {
    const std::int64_t thread = rank == 0 ? 1 : 10 * rank, device = kGpu + rank % of.devices;
    if (rank > 0) {
      trace::ProcessRow row{.id = 1 + rank, .pid = 101 + rank, .executable = run.name("/bin/serve")};
      if (of.numbered) row.rank = rank;
      const auto at = static_cast<std::size_t>(rank - 1);
      if (at < of.variables.size()) {
        row.variables = run.name(of.variables[at]);
        if (of.variables[at].starts_with("WORLD_SIZE=")) row.world = std::stoll(of.variables[at].substr(11));
      }
      if (at < of.commands.size()) row.arguments = run.name(of.commands[at]);
      row.end_ns = 1'000'000, row.injected = true;
      run.add(row);
      run.thread(thread, 1 + rank);
    }
    for (const std::int64_t begin : {1000, 2000}) {
      run.step("decode", begin, begin + 1000, {.batch = 1, .tokens = 1, .context = 4}, thread);
      run.range("module", "lm_head", begin + 500, begin + 700, {}, thread);
      add_kernel(run, device, thread, begin + 100, begin + 500);
      add_kernel(run, device, thread, begin + 500, begin + 600);
    }
  }
}

const Part& logits(const Summary& summary) { return *std::ranges::find(summary.ops, "lm_head", &Part::name); }

// Busy time of the devices of each step.
std::vector<std::int64_t> busy_of_steps(const RuleRun& run) {
  auto opened = trace::Run::open(run.path());
  if (!opened) return {};
  const auto analysis = find_context(*opened, {});
  if (!analysis || !ensure_derived(*opened, *analysis, base::no_progress)) return {};
  const auto rows = opened->query("SELECT device_busy_ns FROM step ORDER BY id");
  std::vector<std::int64_t> busy;
  for (const auto& row : rows->rows) busy.push_back(row[0].as_int());
  return busy;
}

// What holds for any number of ranks with a copy of the model and a device each.
TEST(Job, OneTwoAndEightDataParallelRanks) {
  for (const int ranks : {1, 2, 8}) {
    RuleRun run;
    add_ranks(run, {.ranks = ranks, .devices = ranks});
    if (ranks > 1) add_mark(run, "parallel", "tp=1");
    const Summary summary = run.summary();
    SCOPED_TRACE(ranks);
    ASSERT_EQ(summary.stages.size(), 1u);
    const Stage& stage = summary.stages[0];
    EXPECT_EQ(summary.busy_devices, ranks);
    EXPECT_EQ(std::ssize(summary.job.ranks), ranks);
    EXPECT_EQ(summary.job.groups.data, ranks);
    EXPECT_EQ(stage.time_ns, 2000);
    EXPECT_EQ(stage.tokens, 2 * ranks);
    EXPECT_DOUBLE_EQ(*stage.tokens_per_s, ranks * 1e6);
    EXPECT_DOUBLE_EQ(*stage.efficiency.flops, 2 * ranks * kFlops);
    EXPECT_DOUBLE_EQ(*stage.efficiency.mfu, 0.1);       // 100 of 1000 ns
    EXPECT_DOUBLE_EQ(*stage.efficiency.floor_ns, 200);  // all ranks at once
    EXPECT_DOUBLE_EQ(*stage.efficiency.of_floor, 0.1);
    EXPECT_EQ(stage.device_busy_ns, ranks * 1000);
    EXPECT_EQ(busy_of_steps(run), std::vector<std::int64_t>(static_cast<std::size_t>(2 * ranks), 500));
    EXPECT_EQ(stage.idle_ns, ranks * 1000);
    EXPECT_EQ(logits(summary).time_ns, 2 * ranks * 100);
    EXPECT_DOUBLE_EQ(*logits(summary).efficiency.mfu, kLogits / kPeak / 100e-9);
    EXPECT_DOUBLE_EQ(*logits(summary).efficiency.floor_ns, 2 * ranks * kLogits / kPeak * 1e9);
    ASSERT_EQ(summary.waterfalls.size(), 1u);
    EXPECT_DOUBLE_EQ(summary.waterfalls[0].mean_ns(*summary.waterfalls[0].floor_ns), 100);
  }
}

TEST(Job, TwoAndEightTensorParallelRanks) {
  for (const int ranks : {2, 8}) {
    RuleRun run;
    add_ranks(run, {.ranks = ranks, .devices = ranks});
    const Summary summary = run.summary({.parallel = "tp=" + std::to_string(ranks)});
    SCOPED_TRACE(ranks);
    const Stage& stage = summary.stages[0];
    EXPECT_EQ(summary.job.groups.data, 1);
    EXPECT_EQ(summary.job.origin, "--parallel tp=" + std::to_string(ranks));
    EXPECT_EQ(stage.tokens, 2);
    EXPECT_DOUBLE_EQ(*stage.tokens_per_s, 1e6);
    EXPECT_DOUBLE_EQ(*stage.efficiency.flops, 2 * kFlops);
    EXPECT_DOUBLE_EQ(*stage.efficiency.mfu, 0.1 / ranks);
    EXPECT_DOUBLE_EQ(*stage.efficiency.floor_ns, 200.0 / ranks);
    EXPECT_DOUBLE_EQ(*logits(summary).efficiency.mfu, kLogits / ranks / kPeak / 100e-9);
    EXPECT_DOUBLE_EQ(summary.waterfalls[0].mean_ns(*summary.waterfalls[0].floor_ns), std::llround(200.0 / ranks) / 2.0);
    EXPECT_EQ(summary.parameters, 57'344 + 64 * 256 + 3 * 64);  // of the whole model: untied embeddings, norms
  }
}

std::string two_layers() {
  std::string model = kModel;
  return model.replace(model.find("_layers\": 1"), 11, "_layers\": 2");
}

TEST(Job, ADivisionThatCannotBeIsUnknown) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  const Summary summary = run.summary({.parallel = "pp=2"});
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("pipeline parallelism of 2 is not possible"));
  EXPECT_FALSE(summary.stages[0].efficiency.mfu);
}

// Two ranks of two layers: the first has one layer, the second the other and the logits.
TEST(Job, PipelineRanksHaveTheirLayers) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_mark(run, "model", two_layers());
  const Summary summary = run.summary({.parallel = "pp=2"});
  const Stage& stage = summary.stages[0];
  const double layer = kFlops - kLogits;
  EXPECT_EQ(stage.tokens, 2);
  EXPECT_DOUBLE_EQ(*stage.efficiency.flops, 2 * (2 * layer + kLogits));
  EXPECT_DOUBLE_EQ(*stage.efficiency.mfu, (2 * layer + kLogits) / 1000e-9 / (2 * kPeak));
}

// Of four ranks two share each model: two copies.
TEST(Job, CopiesOfTensorParallelPairs) {
  RuleRun run;
  add_ranks(run, {.ranks = 4, .devices = 4});
  const Summary summary = run.summary({.parallel = "tp=2"});
  EXPECT_EQ(summary.job.groups.data, 2);
  EXPECT_EQ(summary.stages[0].tokens, 4);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.flops, 4 * kFlops);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.05);
}

// Processes that share a device share its peak.
TEST(Job, TwoRanksOnOneDevice) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 1});
  const Summary summary = run.summary({.parallel = "dp=2"});
  EXPECT_EQ(summary.busy_devices, 1);
  EXPECT_EQ(summary.stages[0].tokens, 4);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.2);
  EXPECT_DOUBLE_EQ(*logits(summary).efficiency.mfu, kLogits / kPeak / 100e-9);
}

TEST(Job, OneProcessWithTwoDevicesComputesAllOfTheModel) {
  RuleRun run;
  add_ranks(run, {.ranks = 1, .devices = 2});
  for (const std::int64_t begin : {1000, 2000}) add_kernel(run, kGpu + 1, 1, begin + 600, begin + 900);
  const Summary summary = run.summary({.parallel = "tp=2"});
  EXPECT_EQ(summary.busy_devices, 2);
  EXPECT_EQ(summary.job.ranks.size(), 1u);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.flops, 2 * kFlops);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.05);
  EXPECT_THAT(summary.job.note, HasSubstr("whole model"));
}

TEST(Job, ADeviceWithNegligibleWorkIsIdle) {
  RuleRun run;
  add_ranks(run, {.ranks = 1, .devices = 2});
  add_kernel(run, kGpu + 1, 1, 1200, 1209);  // 0.9 % of 1000 ns
  const Summary summary = run.summary();
  EXPECT_EQ(summary.busy_devices, 1);
  EXPECT_FALSE(summary.devices[0].idle);
  EXPECT_TRUE(summary.devices[1].idle);
  EXPECT_EQ(summary.devices[1].kernel_ns, 9);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.1);
}

TEST(Job, UnknownGroupsLeaveNumbersUnknown) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  const Summary summary = run.summary();
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("2 ranks; how the model is divided among them is unknown"));
  EXPECT_FALSE(summary.stages[0].tokens_per_s);
  EXPECT_FALSE(summary.stages[0].efficiency.mfu);
  EXPECT_EQ(summary.stages[0].efficiency.why, summary.job.why);
}

TEST(Job, ProcessesWithoutRankAndCollectivesWorkOnTheirOwn) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2, .numbered = false});
  const Summary summary = run.summary();
  EXPECT_TRUE(summary.job.known);
  EXPECT_EQ(summary.stages[0].tokens, 4);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.1);
}

// The matrix products of a pass over one of `parts` parts.
void add_products(RuleRun& run, std::int64_t thread, std::int64_t parts, bool logits) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes{{64, 64 / parts},  {64, 64 / parts},  {64, 64 / parts},
                                                           {64 / parts, 64},  {64, 128 / parts}, {64, 128 / parts},
                                                           {128 / parts, 64}, {64, 256 / parts}};
  if (!logits) sizes.pop_back();
  for (const auto& [in, out] : sizes) {
    trace::GemmRow gemm = run.gemm_row(1100, out, 1, in);
    gemm.thread_id = thread;
    run.add(gemm);
  }
}

TEST(Job, SizesOfProductsTellTheDivision) {
  for (const std::int64_t parts : {1, 2}) {
    RuleRun run;
    add_ranks(run, {.ranks = 2, .devices = 2});
    for (const std::int64_t thread : {1, 10}) add_products(run, thread, parts, true);
    const Summary summary = run.summary();
    SCOPED_TRACE(parts);
    EXPECT_TRUE(summary.job.known) << summary.job.why;
    EXPECT_EQ(summary.job.groups.tensor, parts);
    EXPECT_EQ(summary.job.groups.data, 2 / parts);
    EXPECT_THAT(summary.job.origin, HasSubstr("sizes of its matrix products"));
    EXPECT_EQ(summary.stages[0].tokens, 4 / parts);
    EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.1 / static_cast<double>(parts));
  }
}

// One of them alone makes logits: a pipeline, or something else.
TEST(Job, RanksThatDifferAreNotGuessed) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_products(run, 1, 1, false);
  add_products(run, 10, 1, true);
  const Summary summary = run.summary();
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("only 1 of them compute logits"));
}

TEST(Job, CollectivesTellWhatSizesDoNot) {
  for (const bool forward : {true, false}) {
    RuleRun run;
    add_ranks(run, {.ranks = 2, .devices = 2});
    for (const std::int64_t thread : {1, 10}) {
      const std::int64_t begin = forward ? 1700 : 3100;
      run.range("step", "backward", 3000, 4000, {}, thread);
      trace::KernelRow reduce =
          run.kernel_row("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin, begin + 10, begin + 60);
      reduce.thread_id = thread, reduce.device_id = thread == 1 ? kGpu : kGpu + 1;
      run.add(reduce);
    }
    const Summary summary = run.summary();
    SCOPED_TRACE(forward);
    EXPECT_TRUE(summary.job.known) << summary.job.why;
    EXPECT_EQ(summary.job.groups.tensor, forward ? 2 : 1);
    const auto decode = std::ranges::find(summary.stages, "decode", &Stage::name);
    ASSERT_NE(decode, summary.stages.end());
    EXPECT_EQ(decode->tokens, forward ? 2 : 4);
  }
}

// Of a pipeline only the last rank says what it works on.
TEST(Job, TokensAreThoseOfTheFirstRankThatSaysThem) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_mark(run, "model", two_layers());
  for (const std::int64_t begin : {3000, 4000}) {
    run.step("prefill", begin, begin + 1000, {}, 1);
    run.step("prefill", begin, begin + 1000, {.batch = 1, .tokens = 4, .context = 4}, 10);
  }
  const Summary summary = run.summary({.parallel = "pp=2"});
  EXPECT_EQ(std::ranges::find(summary.stages, "prefill", &Stage::name)->tokens, 8);
  EXPECT_EQ(std::ranges::find(summary.stages, "decode", &Stage::name)->tokens, 2);
}

// 100 W each, for the two seconds of the stage: of the two devices of the job, not of one that does nothing.
TEST(Job, EnergyIsThatOfAllItsDevices) {
  for (const std::string parallel : {"dp=2", "tp=2"}) {
    RuleRun run(4'000'000'000);
    add_mark(run, "model", kModel);
    for (const std::int64_t device : {kGpu, kGpu + 1, kGpu + 2}) add_device(run, device);
    run.process(2, 4'000'000'000, 1);
    run.thread(10, 2);
    for (const std::int64_t thread : {1, 10}) {
      for (const std::int64_t begin : {1'000'000'000, 2'000'000'000}) {
        run.step("decode", begin, begin + 1'000'000'000, {.batch = 1, .tokens = 1, .context = 4}, thread);
        add_kernel(run, thread == 1 ? kGpu : kGpu + 1, thread, begin + 100, begin + 500'000'000);
      }
    }
    for (const std::int64_t device : {kGpu, kGpu + 1, kGpu + 2}) {
      for (std::int64_t at_ns = 0; at_ns <= 4'000'000'000; at_ns += 100'000'000)
        run.add(trace::TelemetryRow{
            .ts_ns = at_ns, .device_id = device, .metric = run.name("power_w"), .value = 100, .unit = run.name("W")});
    }
    const Summary summary = run.summary({.parallel = parallel});
    SCOPED_TRACE(parallel);
    ASSERT_EQ(summary.telemetry.stages.size(), 1u);
    const StageTelemetry& stage = summary.telemetry.stages[0];
    ASSERT_TRUE(stage.energy_j) << stage.energy_why;
    EXPECT_NEAR(*stage.energy_j, 400, 1e-6);
    EXPECT_NEAR(*stage.joules_per_token, parallel == "dp=2" ? 100 : 200, 1e-6);
  }
}

// Two traces of rank 1, one after the other.
TEST(Job, ProcessesOfOneRankOnOneDeviceAreOneRank) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  run.process(3, 1'000'000, 1);
  run.thread(20, 3);
  for (const std::int64_t begin : {3000, 4000}) {
    run.step("decode", begin, begin + 1000, {.batch = 1, .tokens = 1, .context = 4}, 20);
    add_kernel(run, kGpu + 1, 20, begin + 100, begin + 600);
  }
  const Summary summary = run.summary({.parallel = "dp=2"});
  EXPECT_EQ(summary.job.ranks.size(), 2u);
  EXPECT_EQ(summary.job.ranks[0].processes.size() + summary.job.ranks[1].processes.size(), 3u);
  EXPECT_EQ(summary.stages[0].tokens, 6);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.flops, 6 * kFlops);
}

// ---- pipelines and experts ---------------------------------------------------------------------------------------

// Nobody says that it is a pipeline: the first rank makes one of two layers, the last the other and the logits.
TEST(Job, ProductsTellStagesOfAPipeline) {
  RuleRun run(1'000'000, 0);
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_mark(run, "model", two_layers());
  add_products(run, 1, 1, false);
  add_products(run, 10, 1, true);
  const Summary summary = run.summary();
  EXPECT_TRUE(summary.job.known) << summary.job.why;
  EXPECT_EQ(summary.job.groups.pipeline, 2);
  EXPECT_THAT(summary.job.origin, HasSubstr("each rank has the layers of its stage"));
  const double layer = kFlops - kLogits;
  EXPECT_EQ(summary.stages[0].tokens, 2);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.flops, 2 * (2 * layer + kLogits));
}

// The last of its ranks alone: it has the sizes of the whole model, and one layer for each time it makes logits.
TEST(Job, ARankWithFewerLayersIsNotTheWholeModel) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_mark(run, "model", two_layers());
  for (const std::int64_t thread : {1, 10}) add_products(run, thread, 1, true);
  const Summary summary = run.summary();
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("a rank computes 1.0 of 2 layers for each time it computes logits"));
  EXPECT_FALSE(summary.stages[0].efficiency.mfu);
}

TEST(Job, RanksThatSendRowsAndMakeNoLogitsAreNotTheWholeModel) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  for (const std::int64_t thread : {1, 10}) add_products(run, thread, 1, false);
  run.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 1700, 1710, 1720);
  const Summary summary = run.summary();
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("no logits were seen, and ranks send each other rows"));
}

// A pass of one sequence of four tokens over `layers` layers without a single range: products of 20 ns, one each 40 ns.
void add_pass(RuleRun& run, std::int64_t thread, std::int64_t device, std::int64_t begin, int layers, bool logits) {
  const auto add = [&](std::int64_t out, std::int64_t in, std::int64_t batch = 1, std::int64_t rows = 4) {
    trace::KernelRow kernel = run.kernel_row("gemm", begin + 1, begin + 5, begin + 25);
    trace::GemmRow gemm = run.gemm_row(begin, out, rows, in);
    gemm.batch = batch;
    kernel.gemm_id = gemm.id, gemm.kernel_id = kernel.id, kernel.device_id = device;
    kernel.thread_id = gemm.thread_id = thread;
    run.add(kernel);
    run.add(gemm);
    begin += 40;
  };
  for (int layer = 0; layer < layers; ++layer) {
    for (int i = 0; i < 3; ++i) add(64, 64);  // q, k, v
    add(4, 8, 8), add(8, 4, 8);               // attention of 8 heads
    add(64, 64), add(128, 64), add(128, 64), add(64, 128);
  }
  if (logits) add(256, 64, 1, 1);  // of the last token
}

// Four passes of a pipeline of two stages with two layers each. Costed as the whole model, or taken two by two for one
// pass over it, ranks would have other FLOPs than those of their layers.
TEST(Job, PipelineRanksWithoutRangesAreMatchedToTheirStage) {
  for (const bool numbered : {true, false}) {
    for (const char* parallel : {"pp=2", ""}) {
      SCOPED_TRACE(std::string(parallel) + (numbered ? ", numbered" : ""));
      RuleRun run(1'000'000, numbered ? std::optional<std::int64_t>(0) : std::nullopt);
      std::string model = kModel;
      add_mark(run, "model", model.replace(model.find("_layers\": 1"), 11, "_layers\": 4"));
      for (const std::int64_t device : {kGpu, kGpu + 1}) add_device(run, device);
      run.process(2, 1'000'000, 1);
      run.thread(10, 2);
      for (std::int64_t pass = 0; pass < 4; ++pass) {
        add_pass(run, 1, kGpu, 10'000 + 4000 * pass, 2, false);
        add_pass(run, 10, kGpu + 1, 12'000 + 4000 * pass, 2, true);
      }
      const Summary summary = run.summary({.parallel = parallel});
      double flops = 0;
      std::int64_t steps = 0;
      for (const Stage& stage : summary.stages) flops += stage.efficiency.flops.value_or(0), steps += stage.steps;
      if (!numbered) {  // which stage is the first is not known
        const bool said = *parallel != '\0';
        EXPECT_EQ(summary.job.known, said);
        EXPECT_EQ(flops > 0, said);
        continue;
      }
      ASSERT_TRUE(summary.job.known) << summary.job.why;
      EXPECT_EQ(summary.job.groups.pipeline, 2);
      EXPECT_EQ(steps, 8);
      // Four tokens, of which the first sees one key and the last sees four.
      const double layer = 4 * 2 * (4 * 64 * 64 + 3 * 64 * 128) + 4 * 64 * (1 + 2 + 3 + 4);
      EXPECT_DOUBLE_EQ(flops, 4 * (4 * layer + kLogits));
    }
  }
}

// Four experts of width 32, two for a token: 3 x 64 x 32 weights each. Router 64 x 4; attention and logits as above.
constexpr const char* kExperts =
    R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2,
        "vocab_size": 256, "torch_dtype": "bfloat16"})";

// Each of two data parallel ranks has two experts, and all else. Its router sends half of its pairs of token and expert
// to the other rank and gets as many: a rank computes one row of each of its two experts where the other one does the
// same, so a job of two ranks has the FLOPs of two copies.
TEST(Job, ExpertParallelRanksHaveTheirExperts) {
  const double expert = 2.0 * 3 * 64 * 32, rest = 2.0 * (4 * 64 * 64 + 64 * 4) + 1024 + kLogits;
  const auto stage_of = [&](const char* parallel, std::int64_t place) {
    SCOPED_TRACE(parallel);
    RuleRun run(1'000'000, 0);
    add_ranks(run, {.ranks = 2, .devices = 2});
    add_mark(run, "model", kExperts);
    const Summary summary = run.summary({.parallel = parallel});
    EXPECT_TRUE(summary.job.known) << summary.job.why;
    EXPECT_EQ(summary.job.ranks[1].place.expert, place);
    const Stage& stage = summary.stages[0];
    EXPECT_EQ(stage.tokens, 4);
    EXPECT_DOUBLE_EQ(stage.efficiency.flops.value_or(0), 4 * (rest + 2 * expert));  // four steps of one token
    return stage;
  };
  const Stage copies = stage_of("dp=2", 0), experts = stage_of("dp=2,ep=2", 1);
  // Weights of experts that a step reads: two of four by a token of its own; of the two that a rank holds, each is
  // asked for by either token with probability 1/2, so 2 x (1 - 1/4). 3 x 64 x 32 weights of 2 bytes, four steps.
  EXPECT_NEAR(*copies.efficiency.bytes - *experts.efficiency.bytes, 4 * (2 - 1.5) * (3 * 64 * 32 * 2), 1);
}

// ---- what environments, command lines and communicators say ------------------------------------------------------

TEST(Job, AnEnvironmentThatNamesAllRanksSaysTheDivision) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2, .variables = {"WORLD_SIZE=2 VLLM_DP_RANK=1 VLLM_DP_SIZE=2"}});
  const Summary summary = run.summary();
  EXPECT_TRUE(summary.job.known) << summary.job.why;
  EXPECT_EQ(summary.job.origin, "environment of the ranks: VLLM_DP_SIZE=2");
  EXPECT_EQ(summary.job.groups.data, 2);
  EXPECT_EQ(summary.stages[0].tokens, 4);
  EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.mfu, 0.1);
}

// Two copies of a model that two ranks share: how is not said.
TEST(Job, AnEnvironmentThatNamesCopiesOnlyIsNotEnough) {
  RuleRun run;
  add_ranks(run, {.ranks = 4, .devices = 4, .variables = {"VLLM_DP_SIZE=2", "VLLM_DP_SIZE=2", "VLLM_DP_SIZE=2"}});
  const Summary summary = run.summary();
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("all that is said is environment of the ranks: VLLM_DP_SIZE=2"));
  EXPECT_FALSE(summary.stages[0].efficiency.mfu);
}

TEST(Job, CommandLineAndEnvironmentComplementEachOther) {
  RuleRun run;
  add_ranks(run, {.ranks = 4,
                  .devices = 4,
                  .variables = {"VLLM_DP_SIZE=2"},
                  .commands = {"vllm serve m --tensor-parallel-size 2"}});
  const Summary summary = run.summary();
  EXPECT_TRUE(summary.job.known) << summary.job.why;
  EXPECT_EQ(summary.job.groups.tensor, 2);
  EXPECT_EQ(summary.job.groups.data, 2);
  EXPECT_EQ(summary.job.origin,
            "command line of the program: --tensor-parallel-size 2, environment of the ranks: VLLM_DP_SIZE=2");
}

TEST(Job, RanksThatWereNotRecordedAreKnownByTheirLauncher) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2, .variables = {"WORLD_SIZE=8"}});
  const Summary summary = run.summary({.parallel = "tp=2"});
  EXPECT_EQ(summary.job.world, 8);
  EXPECT_EQ(summary.job.groups.data, 4);
}

TEST(Job, SizesThatDisagreeAreSaid) {
  const Ranks worlds{.ranks = 3, .devices = 3, .variables = {"WORLD_SIZE=3", "WORLD_SIZE=4"}};
  {
    RuleRun run;
    add_ranks(run, worlds);
    for (const std::int64_t thread : {1, 10, 20}) add_products(run, thread, 1, true);
    const Summary summary = run.summary();
    EXPECT_FALSE(summary.job.known);
    EXPECT_THAT(summary.job.why, HasSubstr("some ranks were told of 3 ranks in all, others of 4"));
    EXPECT_FALSE(summary.stages[0].efficiency.mfu);
  }
  {
    RuleRun run;
    add_ranks(run, worlds);
    const Summary summary = run.summary({.parallel = "dp=3"});  // the user is believed
    EXPECT_TRUE(summary.job.known);
    EXPECT_THAT(summary.job.note, HasSubstr("some ranks were told of 3 ranks in all, others of 4"));
  }
  {
    RuleRun run;
    add_ranks(run, {.ranks = 3, .devices = 3, .commands = {"vllm serve m -tp 2", "vllm serve m -tp 4"}});
    const Summary summary = run.summary();
    EXPECT_FALSE(summary.job.known);
    EXPECT_THAT(summary.job.why, HasSubstr("command line of the program: -tp 2, and -tp 4"));
  }
  {
    RuleRun run;
    add_ranks(run, {.ranks = 2, .devices = 2, .variables = {"WORLD_SIZE=1"}});
    const Summary summary = run.summary({.parallel = "dp=2"});
    EXPECT_THAT(summary.job.note, HasSubstr("they were told of 1 in all, but 2 executed kernels"));
  }
}

void add_communicator(RuleRun& run, std::int64_t process, std::string_view description, std::int64_t size) {
  run.add(trace::CommunicatorRow{
      .process_id = process, .name = run.name(description), .description = run.name(description), .size = size});
}

// One that all ranks are in may add up parts or gradients.
TEST(Job, ACommunicatorSaysHowManyRanksThereAreNotWhatFor) {
  RuleRun run;
  add_ranks(run, {.ranks = 2, .devices = 2});
  add_communicator(run, 1, "default_pg", 4);
  const Summary summary = run.summary();
  EXPECT_EQ(summary.job.world, 4);
  EXPECT_FALSE(summary.job.known);
  EXPECT_THAT(summary.job.why, HasSubstr("4 ranks; how the model is divided among them is unknown"));
}

TEST(Job, CommunicatorsNamedAfterADimensionSayTheDivision) {
  for (const bool megatron : {true, false}) {
    RuleRun run;
    add_ranks(run, {.ranks = 4, .devices = 4});
    for (const std::int64_t process : {1, 2, 3, 4}) {
      add_communicator(run, process, "default_pg", 4);
      add_communicator(run, process, megatron ? "TENSOR_MODEL_PARALLEL_GROUP" : "mesh_tp", 2);
      add_communicator(run, process, megatron ? "DATA_PARALLEL_GROUP" : "mesh_dp", 2);
    }
    const Summary summary = run.summary();
    EXPECT_TRUE(summary.job.known) << summary.job.why;
    EXPECT_EQ(summary.job.groups.tensor, 2);
    EXPECT_EQ(summary.job.groups.data, 2);
    EXPECT_THAT(summary.job.origin, HasSubstr("communicators: "));
    EXPECT_EQ(summary.stages[0].tokens, 4);
    EXPECT_DOUBLE_EQ(*summary.stages[0].efficiency.flops, 4 * kFlops);
  }
}

TEST(Job, CommunicatorsThatLeaveRanksUnexplainedOrDisagreeAreNotBelieved) {
  const auto why = [](std::string_view description, std::int64_t size, std::int64_t other) {
    RuleRun run;
    add_ranks(run, {.ranks = 4, .devices = 4});
    add_communicator(run, 1, description, size);
    add_communicator(run, 2, description, other);
    const Summary summary = run.summary();
    EXPECT_FALSE(summary.job.known);
    EXPECT_FALSE(summary.stages[0].efficiency.mfu);
    return summary.job.why;
  };
  EXPECT_THAT(why("mesh_tp", 2, 2), HasSubstr("all that is said is communicators: mesh_tp of 2"));
  EXPECT_THAT(why("mesh_tp", 2, 4), HasSubstr("communicators: mesh_tp of 2 and of 4 ranks"));
  EXPECT_THAT(why("mesh_cp", 4, 4), HasSubstr("4 of them share the tokens of a sequence"));
}

// What rules are shown is one rank, whatever the number of them.
TEST(Job, RulesSeeAMeanRank) {
  RuleRun one, eight;
  add_ranks(one, {.ranks = 1, .devices = 1});
  add_ranks(eight, {.ranks = 8, .devices = 8});
  const Summary alone = one.summary(), job = eight.summary({.parallel = "dp=8"});
  ASSERT_EQ(alone.diagnosis.findings.size(), job.diagnosis.findings.size());
  ASSERT_FALSE(alone.diagnosis.findings.empty());
  for (std::size_t i = 0; i < alone.diagnosis.findings.size(); ++i) {
    const Finding &a = alone.diagnosis.findings[i], &b = job.diagnosis.findings[i];
    EXPECT_EQ(a.rule, b.rule);
    ASSERT_EQ(a.gain.has_value(), b.gain.has_value()) << a.rule;
    if (!a.gain) continue;
    EXPECT_DOUBLE_EQ(a.gain->ns, b.gain->ns) << a.rule;
    EXPECT_DOUBLE_EQ(a.gain->of_ns, b.gain->of_ns) << a.rule;
  }
  EXPECT_EQ(alone.diagnosis.headline, job.diagnosis.headline);
}

}  // namespace

}  // namespace llmprof::analyze

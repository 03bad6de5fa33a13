// Rules about several requests, devices and processes, on runs written by hand.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

TEST(EmptyRun, IsNothingThatTheseRulesAreAbout) {
  RuleRun run;
  const Diagnosis said = run.diagnosis();
  for (const char* rule : {"allocator_churn", "graph_padding", "load_time", "logits_sampling", "low_l2_hits",
                           "missing_overlap", "moe_imbalance", "occupancy_limit", "prefill_interference",
                           "stall_reasons", "straggling_rank", "throttled_clocks", "unfused_chains"})
    expect_nothing(said, rule, "not applicable");
}

// Hidden 4, 2 heads of 2, one of them for keys and values, MLP 8, vocabulary 10: 144 weights of the layer's products
// are 288 FLOPs a new token, a pair of attention is 16, the logits of a sequence are 80.
constexpr std::string_view kModel =
    R"({"model_type": "llama", "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 8, "vocab_size": 10, "max_position_embeddings": 64,
        "torch_dtype": "float32", "tie_word_embeddings": false})";

TEST(ServingEngines, StepsSayWhatTheyCostAtLeast) {
  RuleRun run;
  trace::RangeRow mark{.id = run.next_id(), .begin_ns = 500, .end_ns = 500, .name = run.name(kModel)};
  mark.kind = run.name("mark"), mark.domain = run.name("llmprof"), mark.category = run.name("model");
  mark.process_id = mark.thread_id = 1, mark.source = run.name("nvtx");
  run.add(mark);
  const auto step = [&](std::string_view name, std::int64_t begin) {
    trace::RangeRow row{.id = run.next_id(), .begin_ns = begin, .end_ns = begin + 5000, .name = run.name(name)};
    row.kind = run.name("push_pop"), row.process_id = row.thread_id = 1, row.source = run.name("nvtx");
    run.add(row);
    run.kernel("flash_fwd_kernel", begin + 10, begin + 20, begin + 4000);
  };
  step("execute_context_1(6)_generation_2(2)", 10'000);
  step("step[DECODE bs=2 g_sq=2 g_sqsq=2 g_sqsk=20 g_sk=20]", 20'000);
  const Summary summary = run.summary();
  ASSERT_EQ(summary.stages.size(), 2u);
  const Efficiency &mixed = summary.stages[0].efficiency, &decode = summary.stages[1].efficiency;
  EXPECT_EQ(summary.stages[0].name, "mixed");
  EXPECT_EQ(summary.stages[0].tokens, 8);
  EXPECT_TRUE(mixed.at_least);
  EXPECT_EQ(mixed.flops, 8 * 288 + (6 * 7 / 2 + 2) * 16 + 3 * 80);  // what was there before is not known
  EXPECT_FALSE(mixed.flops_most);
  EXPECT_NE(mixed.why.find("lengths of the sequences are not known"), std::string::npos);
  EXPECT_EQ(summary.stages[1].name, "decode");
  EXPECT_FALSE(decode.at_least);
  EXPECT_EQ(decode.flops, 2 * 288 + 20 * 16 + 2 * 80);
}

// Four experts, the first with most tokens; times in proportion, experts 2 and 3 on the second device.
Diagnosis four_experts(std::int64_t busiest, bool two_devices) {
  RuleRun run;
  if (two_devices) run.gpu(kGpu + 1);
  for (const std::int64_t b : {10'000, 20'000}) {
    run.step("decode", b, b + 5000, {32, 1, 8});
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = b + 10 + 100 * i, tokens = i == 0 ? busiest : 4;
      run.range("module", "layers.0.mlp.experts." + std::to_string(i) + ".up_proj", at, at + 50);
      run.product("nvjet_a", at + 5, b + 500 + 1000 * i, b + 500 + 1000 * i + 50 * tokens, {256, tokens, 64},
                  two_devices && i >= 2 ? kGpu + 1 : kGpu);
    }
  }
  return run.diagnosis();
}

TEST(MoeImbalance, FourExpertsOnTwoDevices) {
  const Diagnosis said = four_experts(12, true);
  const Finding* found = find(said, "moe_imbalance");
  ASSERT_NE(found, nullptr) << outcome(said, "moe_imbalance").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.expert_most_tokens"), 12);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.expert_mean_tokens"), 6);  // 12 + 3 x 4 over 4
  EXPECT_EQ(found->part, "layers.0.mlp");
  // A step: (12 + 4) x 50 = 800 on the first device, 400 on the second, 600 on a mean one: 200. Two steps.
  EXPECT_DOUBLE_EQ(found->gain->ns, 400);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 10'000);
}

TEST(MoeImbalance, OnOneDeviceItIsANote) {
  const Diagnosis said = four_experts(12, false);
  const Finding* found = find(said, "moe_imbalance");
  ASSERT_NE(found, nullptr) << outcome(said, "moe_imbalance").why;
  EXPECT_EQ(found->severity, Severity::kNote);
}

TEST(MoeImbalance, BalancedExpertsAreFine) { expect_nothing(four_experts(5, true), "moe_imbalance"); }

// Twenty tokens, 100 ns each; before every fifth a prefill of `prefill_ns`. Contexts grow, or begin anew.
Diagnosis served(std::int64_t prefill_ns, bool anew = false) {
  RuleRun run;
  std::int64_t now = 10'000, context = 10;
  for (int i = 0; i < 20; ++i) {
    if (i > 0 && i % 5 == 0 && prefill_ns > 0) {
      run.step("prefill", now, now + prefill_ns, {1, 64, 64});
      run.kernel("nvjet_p", now, now, now + prefill_ns);
      now += prefill_ns;
      if (anew) context = 10;
    }
    run.step("decode", now, now + 100, {4, 1, context++});
    run.kernel("nvjet_d", now, now, now + 100);
    now += 100;
  }
  return run.diagnosis();
}

TEST(PrefillInterference, TokensWaitForPrefills) {
  const Diagnosis said = served(400);
  const Finding* found = find(said, "prefill_interference");
  ASSERT_NE(found, nullptr) << outcome(said, "prefill_interference").why;
  // 19 times between tokens: 16 of 100, 3 of 500; 3 x 400 above the median, of 16 x 100 + 3 x 500.
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.interrupted"), 3.0 / 19);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.clean_interval_p50"), 100e-9);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.interval_p99"), 500e-9);
  EXPECT_DOUBLE_EQ(found->gain->ns, 1200);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 3100);
}

TEST(PrefillInterference, NobodyWaits) {
  expect_nothing(served(0), "prefill_interference");
  expect_nothing(served(20), "prefill_interference");         // 1.2 times the others
  expect_nothing(served(400, true), "prefill_interference");  // a new batch after the last one was done
}

TEST(PrefillInterference, MixedStepsAndOtherThreads) {
  using Kind = PassStep::Kind;
  std::vector<PassStep> steps;
  for (std::int64_t i = 0; i < 10; ++i)
    steps.push_back({1, 100 * i, 100 * i + 100, 0, 0, i == 4 ? Kind::kMixed : Kind::kDecode});
  steps.push_back({2, 650, 680, 0, 0, Kind::kPrefill});  // beside the seventh
  const InterferenceFacts seen = interference_of(steps);
  EXPECT_EQ(seen.intervals, 9);
  EXPECT_EQ(seen.interrupted, 2);
  EXPECT_EQ(seen.prefills, 2);
}

// Graphs of 4 and 8 rows, 1000 and 1400 ns; ten steps launch the larger one with `batch` sequences.
Diagnosis padded(std::int64_t batch, bool second_size = true) {
  RuleRun run;
  for (const std::int64_t rows : {4, 8}) {
    trace::GemmRow gemm = run.gemm_row(100 * rows, 256, rows, 64);
    run.add(gemm);
    trace::GraphNodeRow node{.id = rows, .graph = rows, .node = rows, .name = run.name("nvjet_a")};
    node.gemm_id = gemm.id, node.kind = run.name("kernel"), node.captured_ns = 100 * rows + 1, node.thread_id = 1;
    run.add(node);
  }
  for (std::int64_t i = 0; i < (second_size ? 12 : 10); ++i) {
    const std::int64_t b = 10'000 + 2000 * i, rows = i < 10 ? 8 : 4;
    run.step("decode", b, b + 50, {i < 10 ? batch : 4, 1, 8 + i});
    trace::GraphLaunchRow row{.id = run.next_id(),
                              .begin_ns = b + 100,
                              .end_ns = b + 100 + (rows == 8 ? 1400 : 1000),
                              .graph = rows,
                              .device_id = kGpu,
                              .stream = 7,
                              .thread_id = 1};
    row.launch_begin_ns = b + 10, row.launch_end_ns = b + 20, row.nodes_recorded = true;
    run.add(row);
    trace::KernelRow kernel = run.kernel_row("nvjet_a", b + 10, row.begin_ns, row.end_ns);
    kernel.graph_launch_id = row.id, kernel.graph_node_id = rows;
    run.add(kernel);
  }
  return run.diagnosis();
}

TEST(GraphPadding, RowsThatNobodyNeeds) {
  const Diagnosis said = padded(5);
  const Finding* found = find(said, "graph_padding");
  ASSERT_NE(found, nullptr) << outcome(said, "graph_padding").why;
  // Computed 10 x 8 + 2 x 4 = 88 rows, needed 10 x 5 + 2 x 4 = 58. A row costs (1400 - 1000) / (8 - 4) = 100; 30 too
  // many.
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.padding"), 1 - 58.0 / 88);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.time_per_row"), 100e-9);
  EXPECT_DOUBLE_EQ(found->gain->ns, 3000);
  EXPECT_FALSE(found->gain->upper_bound);
  // Windows: from the begin of a step to the end of its graph, 10 x 1500 + 2 x 1100.
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 17'200);
}

TEST(GraphPadding, OneSizeDoesNotTellTheCost) {
  const Diagnosis said = padded(5, false);
  const Finding* found = find(said, "graph_padding");
  ASSERT_NE(found, nullptr) << outcome(said, "graph_padding").why;
  EXPECT_EQ(found->severity, Severity::kNote);
}

TEST(GraphPadding, FullGraphsAreFine) { expect_nothing(padded(8), "graph_padding"); }

// Two ranks, five steps; rank 1 computes for `slow_ns`, rank 0 for 500 and waits for it in the collective.
Diagnosis two_ranks(std::int64_t slow_ns) {
  RuleRun run(1'000'000);
  run.process(2, 1'000'000, 0);
  run.process(3, 1'000'000, 1);
  run.thread(10, 2);
  run.thread(20, 3);
  run.gpu(kGpu + 1);
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::int64_t b = 10'000 + 2000 * i, end = b + slow_ns + 100;
    for (const bool slow : {false, true}) {
      const std::int64_t thread = slow ? 20 : 10, own = slow ? slow_ns : 500;
      run.step("decode", b, end, {1, 1, 8 + i}, thread);
      trace::KernelRow compute = run.kernel_row("nvjet_a", b, b, b + own);
      trace::KernelRow wait = run.kernel_row("ncclDevKernel_AllReduce", b + 1, b + own, end);
      for (trace::KernelRow* row : {&compute, &wait}) {
        row->thread_id = thread, row->device_id = slow ? kGpu + 1 : kGpu;
        run.add(*row);
      }
    }
  }
  return run.diagnosis();
}

TEST(StragglingRank, TheOthersWaitForOne) {
  const Diagnosis said = two_ranks(900);
  const Finding* found = find(said, "straggling_rank");
  ASSERT_NE(found, nullptr) << outcome(said, "straggling_rank").why;
  EXPECT_EQ(found->part, "rank 1");
  // Four steps after the first: own work 900 against a mean of 700. Five steps of 1000 are the stage.
  EXPECT_DOUBLE_EQ(found->gain->ns, 800);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 5000);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.slowest_steps"), 1);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.rank_0_collectives"), 500e-9);  // 100 and 400 of waiting
}

TEST(StragglingRank, EqualRanksAreFine) { expect_nothing(two_ranks(501), "straggling_rank"); }

}  // namespace
}  // namespace llmprof::analyze

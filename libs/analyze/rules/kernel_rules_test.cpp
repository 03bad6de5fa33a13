// Rules about the order of kernels and copies: chains, overlap, logits. Every run is written by hand; the arithmetic
// stands beside it.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

constexpr std::string_view kElementwise =
    "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >";
constexpr std::string_view kLayerNorm = "at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>";

TEST(KernelNames, TellWhatTheyDo) {
  EXPECT_TRUE(moves_elements(kElementwise));
  EXPECT_TRUE(moves_elements(kLayerNorm));
  EXPECT_TRUE(moves_elements("at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"));
  EXPECT_TRUE(moves_elements("triton_poi_fused_add_mul_0"));
  // A reduction that chooses the token belongs to sampling; products and attention are what chains lie between.
  EXPECT_FALSE(
      moves_elements("at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >"));
  EXPECT_FALSE(moves_elements("nvjet_sm90_tst_64x8_64x16_2x1_v_bz_TNT"));
  EXPECT_FALSE(moves_elements("cublasLt::splitKreduce_kernel<32>"));
  EXPECT_FALSE(moves_elements("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16"));
  EXPECT_FALSE(moves_elements("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"));
}

// Two steps of 1000 ns. In each a product 0…400, then element-wise kernels, then a product.
void two_steps(RuleRun& run, const std::vector<std::pair<std::int64_t, std::int64_t>>& between) {
  for (const std::int64_t b : {10'000, 20'000}) {
    run.step("decode", b, b + 1000, {1, 1, 8});
    run.product("nvjet_a", b, b + 10, b + 400, {64, 1, 64});
    for (const auto& [begin, end] : between) run.kernel(kElementwise, b + 20, b + begin, b + end);
    run.product("nvjet_b", b + 30, b + 900, b + 1000, {64, 1, 64});
  }
}

TEST(UnfusedChains, ThreeKernelsCouldBeOne) {
  RuleRun run;
  two_steps(run, {{410, 460}, {480, 580}, {590, 640}});
  const Diagnosis said = run.diagnosis();
  const Finding* found = find(said, "unfused_chains");
  ASSERT_NE(found, nullptr) << outcome(said, "unfused_chains").why;
  EXPECT_EQ(found->stage, "decode");
  // A step: durations 50 + 100 + 50, pauses 20 + 10, the longest 100: 130 to gain, of 1000. Two steps.
  EXPECT_DOUBLE_EQ(found->gain->ns, 260);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 2000);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.chain_kernels_per_step"), 3);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.chains_per_step"), 1);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.chain_time_per_step"), 200e-9);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.chain_idle_per_step"), 30e-9);
  EXPECT_EQ(found->part, "between a matrix product and a matrix product");
}

TEST(UnfusedChains, OneFusedKernelIsNoChain) {
  RuleRun run;
  two_steps(run, {{410, 510}});
  expect_nothing(run.diagnosis(), "unfused_chains");
}

// The nodes of a launch that was not recorded one by one: their shares tell the chain.
TEST(UnfusedChains, NodesOfGraphsCount) {
  RuleRun run;
  // Captured: product, two element-wise kernels, product. One launch by node (0…400, 400…600, 600…800, 800…1000), one
  // whole.
  for (std::int64_t node = 1; node <= 4; ++node) {
    trace::GraphNodeRow row{
        .id = node, .graph = 3, .node = node, .name = run.name(node == 1 || node == 4 ? "nvjet_a" : kElementwise)};
    row.kind = run.name("kernel"), row.captured_ns = 100 + node, row.thread_id = 1;
    run.add(row);
  }
  for (const std::int64_t b : {10'000, 20'000}) {
    run.step("decode", b, b + 50, {1, 1, 8});
    trace::GraphLaunchRow launch{
        .id = b, .begin_ns = b + 100, .end_ns = b + 1100, .graph = 3, .device_id = kGpu, .stream = 7, .thread_id = 1};
    launch.launch_begin_ns = b + 10, launch.launch_end_ns = b + 20, launch.nodes_recorded = b == 10'000;
    run.add(launch);
    const std::int64_t edges[] = {0, 400, 600, 800, 1000};
    for (std::int64_t node = 1; node <= 4 && launch.nodes_recorded; ++node) {
      trace::KernelRow row = run.kernel_row(node == 1 || node == 4 ? "nvjet_a" : kElementwise, b + 10,
                                            b + 100 + edges[node - 1], b + 100 + edges[node]);
      row.graph_launch_id = b, row.graph_node_id = node;
      run.add(row);
    }
  }
  const Diagnosis said = run.diagnosis();
  const Finding* found = find(said, "unfused_chains");
  ASSERT_NE(found, nullptr) << outcome(said, "unfused_chains").why;
  // Two launches, each with 400 in a chain whose longest takes 200. Step windows: 0…1100 each.
  EXPECT_NEAR(found->gain->ns, 400, 2);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 2200);
  EXPECT_EQ(found->evidence[0].source, "inferred");
}

// A step of 1000 with a copy 0…300 and a kernel 300…1000, or the copy beside the kernel.
Diagnosis copied(bool beside, std::string_view memory = "pinned") {
  RuleRun run;
  for (const std::int64_t b : {10'000, 20'000}) {
    run.step("decode", b, b + 1000, {1, 1, 8});
    run.copy("host_to_device", b, b + (beside ? 400 : 0), b + (beside ? 700 : 300), 3000, memory);
    run.kernel("nvjet_a", b + 2, b + 300, b + 1000);
  }
  return run.diagnosis();
}

TEST(MissingOverlap, CopiesBeforeTheKernels) {
  const Diagnosis said = copied(false);
  const Finding* found = find(said, "missing_overlap");
  ASSERT_NE(found, nullptr) << outcome(said, "missing_overlap").why;
  // 300 of each step without a kernel, 700 of kernels: 300 each can be hidden.
  EXPECT_DOUBLE_EQ(found->gain->ns, 600);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 2000);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.exposed_copies"), 600e-9);
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.exposed_copies_share"), 1);
  EXPECT_EQ(found->advice.size(), 1u);
  EXPECT_EQ(find(copied(false, "pageable"), "missing_overlap")->advice.size(), 2u);  // pin it first
}

TEST(MissingOverlap, CopiesBesideTheKernels) { expect_nothing(copied(true), "missing_overlap"); }

TEST(MissingOverlap, CollectivesCountForTheirDevice) {
  RuleRun run;
  run.step("decode", 10'000, 11'000, {1, 1, 8});
  run.kernel("nvjet_a", 10'001, 10'100, 10'600);
  trace::KernelRow row = run.kernel_row("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 10'002, 10'500, 11'000);
  row.stream = 9;
  run.add(row);
  const Diagnosis said = run.diagnosis();
  const Finding* found = find(said, "missing_overlap");
  ASSERT_NE(found, nullptr) << outcome(said, "missing_overlap").why;
  // The collective takes 500, 100 of it beside the product; busy 100…1000, 400 of that not the collective.
  EXPECT_EQ(found->part, "collectives");
  EXPECT_DOUBLE_EQ(evidence(*found, "decode.exposed_collectives"), 400e-9);
  EXPECT_DOUBLE_EQ(found->gain->ns, 400);
}

// A grouped call is one row per group at the same time; its kernel belongs to one of them.
void grouped_call(RuleRun& run, std::int64_t launched, std::int64_t begin, std::int64_t end,
                  const std::vector<std::array<std::int64_t, 4>>& groups, bool executes = true) {
  trace::KernelRow kernel = run.kernel_row("grouped_kernel", launched + 1, begin, end);
  bool first = true;
  for (const auto& [m, n, k, batch] : groups) {
    trace::GemmRow row = run.gemm_row(launched, m, n, k);
    row.function = run.name("cublasGemmGroupedBatchedEx"), row.batch = batch, row.end_ns = launched + 3;
    if (first && executes) kernel.gemm_id = row.id, row.kernel_id = kernel.id;
    first = false;
    run.add(row);
  }
  if (executes) run.add(kernel);
}

const GemmShape* find_shape(const Summary& summary, std::int64_t m) {
  for (const GemmShape& shape : summary.gemms) {
    if (shape.m == m) return &shape;
  }
  return nullptr;
}

TEST(GroupedProducts, ShareTheTimeOfTheirKernelByFlops) {
  RuleRun run;
  run.step("decode", 10'000, 12'000, {1, 1, 8});
  run.product("nvjet_a", 10'010, 10'100, 10'300, {64, 64, 64});
  // FLOPs 2·8·10·10 = 1600, 2·16·10·10·2 = 6400, none, 2·24·10·10 = 4800: an eighth, a half, none, three eighths of
  // 1001.
  grouped_call(run, 10'020, 10'400, 11'401, {{8, 10, 10, 1}, {16, 10, 10, 2}, {99, 10, 10, 0}, {24, 10, 10, 1}});
  const Summary summary = run.summary();
  ASSERT_EQ(summary.gemms.size(), 5u);
  std::int64_t total = 0;
  for (const GemmShape& shape : summary.gemms) {
    EXPECT_EQ(shape.stage, "decode") << shape.m;
    EXPECT_EQ(shape.calls, 1) << shape.m;
    total += shape.time_ns;
  }
  EXPECT_EQ(total, 200 + 1001);
  EXPECT_EQ(find_shape(summary, 8)->time_ns, 125);   // 125.1
  EXPECT_EQ(find_shape(summary, 16)->time_ns, 501);  // up to 625.6
  EXPECT_EQ(find_shape(summary, 99)->time_ns, 0);
  EXPECT_EQ(find_shape(summary, 24)->time_ns, 375);
  EXPECT_EQ(find_shape(summary, 24)->shared_ns, 375);
  EXPECT_EQ(find_shape(summary, 64)->shared_ns, 0);
  // The kernel did the work of all groups.
  const auto kernel = std::find_if(summary.gpu.kernels.begin(), summary.gpu.kernels.end(),
                                   [](const KernelTime& k) { return k.name == "grouped_kernel"; });
  ASSERT_NE(kernel, summary.gpu.kernels.end());
  EXPECT_NEAR(*kernel->flops_per_s, 12800 / 1001e-9, 1);
}

TEST(GroupedProducts, WithoutAKernelNoGroupHasATime) {
  RuleRun run;
  run.step("decode", 10'000, 12'000, {1, 1, 8});
  grouped_call(run, 10'020, 10'400, 11'400, {{8, 10, 10, 1}, {16, 10, 10, 2}}, false);
  const Summary summary = run.summary();
  ASSERT_EQ(summary.gemms.size(), 2u);
  for (const GemmShape& shape : summary.gemms) EXPECT_EQ(shape.time_ns, 0) << shape.m;
}

// One step: lm_head for `rows` rows of 1000 logits, then a reduction.
Diagnosis with_logits(std::string_view stage, StepSizes size, std::int64_t rows, std::int64_t after_ns) {
  RuleRun run;
  run.peak("bandwidth", "read", 1e12);
  run.step(stage, 10'000, 20'000, size);
  run.kernel("nvjet_a", 10'010, 10'100, 14'000);
  run.kernel("fill", 10'015, 10'000, 10'050);  // the shortest
  run.range("module", "lm_head", 10'020, 10'060);
  run.product("nvjet_head", 10'030, 14'000, 18'000, {1000, rows, 64});
  run.kernel("at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >", 10'070,
             18'000, 18'000 + after_ns);
  return run.diagnosis();
}

TEST(LogitsSampling, LogitsOfEveryPosition) {
  const Diagnosis said = with_logits("prefill", {2, 50, 50}, 100, 1000);
  const Finding* found = find(said, "logits_sampling");
  ASSERT_NE(found, nullptr) << outcome(said, "logits_sampling").why;
  // 2 of 100 rows are needed: 98 % of the 4000 of lm_head and the 1000 behind it; the stage takes 10000.
  EXPECT_DOUBLE_EQ(found->gain->ns, 4900);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 10'000);
  EXPECT_EQ(found->part, "lm_head");
}

TEST(LogitsSampling, SamplingThatTakesLongerThanOnePass) {
  const Diagnosis said = with_logits("decode", {2, 1, 50}, 2, 1000);
  const Finding* found = find(said, "logits_sampling");
  ASSERT_NE(found, nullptr) << outcome(said, "logits_sampling").why;
  // 2 rows of 1000 logits of 2 bytes: 4000 B at 1 TB/s are 4 ns, but no kernel takes less than 50: 950 of 10000.
  EXPECT_DOUBLE_EQ(found->gain->ns, 950);
  EXPECT_EQ(found->part, "sampling");
  EXPECT_NE(found->text.find("argmax"), std::string::npos) << found->text;
}

TEST(LogitsSampling, LastPositionsAndAFastChoiceAreFine) {
  expect_nothing(with_logits("prefill", {2, 50, 50}, 2, 50), "logits_sampling");
}

}  // namespace
}  // namespace llmprof::analyze

// Rules about bytes, products and batches, on summaries written by hand.

#include <gtest/gtest.h>

#include "analyze/rules/rule.h"
#include "analyze/rules/tools.h"

namespace llmprof::analyze {
namespace {

std::optional<Finding> find(const RuleResult& checked, std::string_view stage = "decode") {
  for (const Finding& finding : checked.findings) {
    if (finding.stage == stage) return finding;
  }
  return std::nullopt;
}

RuleResult check(std::string_view rule, const Summary& summary, const Facts& facts) {
  return find_rule(rule)->check({summary, facts});
}

WaterfallTerm term(std::string name, std::int64_t ns) { return {.name = std::move(name), .ns = ns}; }

// A GPU with 100 GB/s and 10 TFLOP/s of float32, 100 of tf32 and bfloat16; ten decode steps of 1 ms. Each has one
// product of 20 MB of weights (floor 200 us at 100 GB/s) that takes 400 us, other kernels that take 300 us; gaps of
// `gaps_ns` and the rest between steps.
struct Decode {
  Summary summary;
  Facts facts;

  explicit Decode(std::int64_t gaps_ns, double weight_bytes_each = 4, double batch = 1) {
    summary.on_gpu = true, summary.busy_devices = 1, summary.model = "{}";
    summary.peak_bandwidth = 100e9, summary.peak_flops = 10e12;
    summary.devices = {{.kind = "gpu", .name = "Toy", .chip = "sm_90", .units = 10}};
    Stage stage{.name = "decode", .steps = 10, .kernels = 500, .time_ns = 10'000'000, .device_busy_ns = 7'000'000};
    stage.efficiency.bound = "memory", stage.efficiency.bytes = 250e6, stage.efficiency.floor_ns = 2.5e6;
    summary.stages = {stage};
    Waterfall waterfall{.stage = "decode", .quantity = "TPOT", .samples = 9, .on_cpu = false, .measured_ns = 9'000'000};
    waterfall.terms = {term("gaps", 9 * gaps_ns), term("queued", 0), term("between_steps", 9 * (300'000 - gaps_ns))};
    summary.waterfalls = {waterfall};
    summary.ops = {
        {.name = "mlp.up_proj", .stage = "decode", .calls = 10, .kernel_ns = 4'000'000, .time_ns = 4'000'000}};
    facts.model = {.known = true,
                   .weight_type = weight_bytes_each == 4 ? "float32" : "bfloat16",
                   .kv_type = "bfloat16",
                   .weight_bytes_each = weight_bytes_each,
                   .kv_bytes_each = 2,
                   .layers = 1,
                   .heads = 8,
                   .kv_heads = 8,
                   .weights_read_bytes = 20e6,
                   .kv_bytes_per_token = 1000};
    facts.peaks = {{"float32", 10e12, "spec"}, {"tf32", 100e12, "spec"}, {"bfloat16", 100e12, "spec"}};
    // 20 MB x 10 of weights; 10 MFLOP for each sequence and step.
    facts.bytes = {{.stage = "decode",
                    .operators = {{.op = "mlp.up_proj", .flops = 1e8 * batch, .weight_bytes = 200e6},
                                  {.op = "self_attn.attention", .kv_bytes = 50e6}},
                    .batch = batch,
                    .tokens = 1,
                    .context = 100,
                    .largest_context = 110}};
    facts.waits.recorded = true;
  }
};

TEST(WideWeights, HalfTheBytesAtTheBandwidthReachedNow) {
  const Decode run(0);
  const std::optional<Finding> found = find(check("wide_weights", run.summary, run.facts));
  ASSERT_TRUE(found);
  // The product reaches 200 / 400 us of its floor; with half the bytes it takes 200 us: 2 ms of 4 ms over ten steps.
  // Other kernels execute 10 ms x 0.7 - 4 ms = 3 ms, at most half of which goes.
  ASSERT_TRUE(found->gain);
  EXPECT_NEAR(found->gain->ns, 2e6 + 1.5e6, 1);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 10e6);
  EXPECT_FALSE(found->gain->upper_bound);
  EXPECT_EQ(found->lever, "bfloat16 weights");
}

TEST(WideWeights, SixteenBitsSaveOnlyWeights) {
  const Decode run(0, 2);
  const std::optional<Finding> found = find(check("wide_weights", run.summary, run.facts));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->gain->ns, 2e6, 1);
  EXPECT_NE(found->advice.at(0).find("Quality"), std::string::npos);
}

TEST(WideWeights, LaunchesHideIt) {
  const Decode run(300'000);  // 30 % of the step: more than 25 %
  const std::optional<Finding> found = find(check("wide_weights", run.summary, run.facts));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->gain);
  EXPECT_TRUE(check("wide_weights", Decode(300'000, 2).summary, Decode(300'000, 2).facts).findings.empty());
  EXPECT_TRUE(check("wide_weights", run.summary, Decode(0, 0.5).facts).findings.empty());  // 4 bits already
}

TEST(BandwidthFloor, FarTheProductsNearANote) {
  Decode run(0);
  const std::optional<Finding> far = find(check("bandwidth_floor", run.summary, run.facts));
  ASSERT_TRUE(far);
  // 250 MB in 7 ms: 35.7 GB/s of 100. The product at 50 % of its floor; the least that good kernels reach is 70 %.
  EXPECT_NEAR(*far->evidence.at(0).value, 0.357, 0.001);
  EXPECT_NEAR(far->gain->ns, 4e6 * (1 - 0.5 / 0.7), 1);
  run.summary.stages[0].efficiency.bytes = 560e6;  // 80 GB/s
  const std::optional<Finding> near = find(check("bandwidth_floor", run.summary, run.facts));
  ASSERT_TRUE(near);
  EXPECT_FALSE(near->gain);
  EXPECT_NE(near->title.find("only moving fewer bytes helps"), std::string::npos);
  run.summary.stages[0].efficiency.bytes = 250e6;
  run.summary.stages[0].efficiency.mbu = 0.98;  // steps of several threads at once: together they use the bandwidth
  const std::optional<Finding> shared = find(check("bandwidth_floor", run.summary, run.facts));
  ASSERT_TRUE(shared);
  EXPECT_FALSE(shared->gain);
  EXPECT_NEAR(*shared->evidence.at(0).value, 0.98, 1e-9);
  run.summary.stages[0].efficiency.bound = "compute";
  EXPECT_FALSE(check("bandwidth_floor", run.summary, run.facts).applicable);
}

TEST(KvCacheTraffic, FoundFromAFifthOn) {
  Decode run(0);
  const std::optional<Finding> found = find(check("kv_cache_traffic", run.summary, run.facts));
  ASSERT_TRUE(found);  // 50 of 250 MB = 20 %
  // Half of 50 MB, at 250 MB / 7 ms: 0.7 ms.
  EXPECT_NEAR(found->gain->ns, 0.7e6, 1);
  EXPECT_NEAR(*found->evidence.at(2).value, 20e6 / 1000, 1e-6);  // weights / cache of a token
  EXPECT_NE(found->advice.at(1).find("MHA"), std::string::npos);
  run.facts.model.kv_heads = 2;
  EXPECT_NE(find(check("kv_cache_traffic", run.summary, run.facts))->advice.at(1).find("MLA"), std::string::npos);
  run.facts.bytes[0].operators[1].kv_bytes = 40e6;
  const RuleResult little = check("kv_cache_traffic", run.summary, run.facts);
  EXPECT_TRUE(little.findings.empty());
  EXPECT_NE(little.why.find("20000 tokens"), std::string::npos) << little.why;
}

TEST(SmallBatch, TokensPerSecondAtALargerBatch) {
  const Decode run(0);
  const std::optional<Finding> found = find(check("small_batch", run.summary, run.facts));
  ASSERT_TRUE(found);
  // Weights 20 MB / 100 GB/s = 200 us; FLOPs of a sequence 10 M / 10 T = 1 us: the ridge is at 200 sequences.
  EXPECT_FALSE(found->gain);
  EXPECT_NEAR(*found->evidence.at(3).value, 200, 1e-6);
  // At 32: the floor goes from 25 MB to 20 + 32 x 5 = 180 MB: 1800 us instead of 250. 1000 us + 1550 us for 32 tokens.
  EXPECT_NEAR(*found->evidence.at(2).value, 32 / 2550e-6, 0.1);
  // At 200: 20 + 200 x 5 = 1020 MB: 10200 us instead of 250.
  EXPECT_EQ(found->evidence.at(4).name, "decode.tokens_per_s_at_ridge");
  EXPECT_NEAR(*found->evidence.at(4).value, 200 / 10950e-6, 0.1);
  EXPECT_TRUE(check("small_batch", run.summary, Decode(0, 4, 64).facts).findings.empty());
}

TEST(SmallBatch, ARidgeBelow32IsTheBatchProposed) {
  Decode run(0);
  run.summary.peak_flops = 1e12;  // FLOPs of a sequence take 10 us, the weights 200 us: the ridge is at 20 sequences
  const std::optional<Finding> found = find(check("small_batch", run.summary, run.facts));
  ASSERT_TRUE(found);
  // 20 + 20 x 5 = 120 MB: 1200 us instead of 250. 1000 us + 950 us for 20 tokens; not what 32 would make.
  ASSERT_EQ(found->evidence.size(), 4u);
  EXPECT_NEAR(*found->evidence.at(2).value, 20, 1e-9);
  EXPECT_NEAR(*found->evidence.at(3).value, 20 / 1950e-6, 0.1);
  EXPECT_NE(found->text.find("with 20 sequences it would make up to 10256 tokens/s"), std::string::npos) << found->text;
}

ProductKernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::string kernel, std::int64_t time_ns) {
  return {.stage = "decode",
          .type = "float32",
          .compute_type = "float32",
          .kernel = std::move(kernel),
          .m = m,
          .n = n,
          .k = k,
          .executions = 10,
          .time_ns = time_ns};
}

TEST(IdleTensorCores, Float32WithoutTf32) {
  Decode run(0);
  // 2 x 1024^3 x 10 = 21.5 GFLOP: 2.147 ms at 10 TFLOP/s, 0.2147 ms at 100; bytes 12.6 MB x 10 = 1.258 ms at 100 GB/s.
  // So the floor goes from 2.147 to 1.258 ms, and the 4 ms it takes now to 4 x 1.258 / 2.147.
  run.facts.products = {product(1024, 1024, 1024, "ampere_sgemm_128x64_tn", 4'000'000)};
  const std::optional<Finding> found = find(check("idle_tensor_cores", run.summary, run.facts));
  ASSERT_TRUE(found);
  const double then = 3.0 * 1024 * 1024 * 4 * 10 / 100e9 / (2.0 * 1024 * 1024 * 1024 * 10 / 10e12);
  EXPECT_NEAR(found->gain->ns, 4e6 * (1 - then), 1);
  run.facts.products[0].compute_type = "tf32";
  EXPECT_TRUE(check("idle_tensor_cores", run.summary, run.facts).findings.empty());
  run.facts.products = {product(1024, 1, 1024, "gemv", 4'000'000)};
  EXPECT_TRUE(check("idle_tensor_cores", run.summary, run.facts).findings.empty());
}

TEST(IdleTensorCores, SizesThatAreNoMultipleOfEight) {
  Decode run(0);
  run.summary.peak_bandwidth = 1e15;  // bytes do not count here
  ProductKernel even = product(1024, 1024, 1024, "good", 429'497), odd = product(1023, 1024, 1024, "bad", 3'000'000);
  even.type = odd.type = "bfloat16";
  run.facts.products = {odd, even};
  const std::optional<Finding> found = find(check("idle_tensor_cores", run.summary, run.facts));
  ASSERT_TRUE(found);
  // The even one reaches 21.475 GFLOP / 0.429497 ms = 50 % of 100 TFLOP/s: the odd one could take 0.4291 ms.
  EXPECT_NEAR(found->gain->ns, 3e6 - 2.0 * 1023 * 1024 * 1024 * 10 / 100e12 / 0.5 * 1e9, 100);
  run.facts.products = {even};
  EXPECT_TRUE(check("idle_tensor_cores", run.summary, run.facts).findings.empty());
}

TEST(Tiles, NamesOfKernels) {
  const auto tile = [](const char* name) {
    const std::optional<Tile> out = tile_of(name);
    return out ? std::pair(out->m, out->n) : std::pair<std::int64_t, std::int64_t>(0, 0);
  };
  EXPECT_EQ(tile("nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_TNN"), (std::pair<std::int64_t, std::int64_t>(192, 192)));
  EXPECT_EQ(tile("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x128x8_stage3"),
            (std::pair<std::int64_t, std::int64_t>(32, 128)));
  EXPECT_EQ(tile("ampere_sgemm_128x64_tn"), (std::pair<std::int64_t, std::int64_t>(128, 64)));
  EXPECT_EQ(tile("gemv2T_kernel_val"), (std::pair<std::int64_t, std::int64_t>(0, 0)));
  EXPECT_TRUE(splits_inner("nvjet_sm90_tst_64x32_64x16_4x1_v_bz_splitK_TNT"));
}

TEST(TileWaves, ACheaperNeighbour) {
  // 8200 x 128 in tiles of 128 x 128: 65 tiles; 64 execute at once: two waves, 64.06 useful of 128: half is lost.
  const ProductKernel odd = product(8200, 128, 512, "gemm_128x128_tn", 2'000'000);
  const std::optional<Tiling> tiling = tiling_of(odd, 64, 1);
  ASSERT_TRUE(tiling);
  EXPECT_EQ(tiling->tiles, 65);
  EXPECT_EQ(tiling->waves(), 2);
  EXPECT_NEAR(tiling->loss(), 1 - 8200.0 / 128 / 128, 1e-9);
  const std::optional<Neighbour> less = cheaper_neighbour(odd, *tiling);
  ASSERT_TRUE(less);
  EXPECT_EQ(less->size, 8192);
  EXPECT_EQ(less->waves, 1);
  Decode run(0);
  run.summary.devices[0].units = 64;
  run.facts.products = {odd};
  const std::optional<Finding> found = find(check("tile_waves", run.summary, run.facts));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->gain->ns, 2e6 * (1 - 8200.0 / 128 / 128), 1);
  run.facts.products = {product(8192, 256, 512, "gemm_128x128_tn", 2'000'000)};  // 128 tiles: two full waves
  EXPECT_TRUE(check("tile_waves", run.summary, run.facts).findings.empty());
  run.facts.products = {product(8200, 1, 512, "gemm_128x128_tn", 2'000'000)};  // a vector waits for bytes
  EXPECT_TRUE(check("tile_waves", run.summary, run.facts).findings.empty());
}

// Blocks tell which side of the result a tile's first number belongs to.
TEST(Tiles, TurnedAndPersistent) {
  ProductKernel turned = product(8192, 32, 2048, "tilesize32x128x8", 1);
  turned.blocks = 64;
  EXPECT_EQ(tiling_of(turned, 132, 1)->tile.m, 128);
  turned.blocks = 64 * 8;  // eight blocks share each tile
  EXPECT_FALSE(tiling_of(turned, 132, 1));
  ProductKernel persistent = product(8192, 16384, 2048, "nvjet_192x192", 1);
  persistent.blocks = 132;
  EXPECT_EQ(tiling_of(persistent, 132, 2)->slots, 132);  // 43 x 86 = 3698 tiles
  EXPECT_EQ(tiling_of(persistent, 132, 2)->waves(), 29);
}

}  // namespace
}  // namespace llmprof::analyze

#include "bench/sweep/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/checkpoint/open_model.h"
#include "trace/test_run.h"

namespace llmprof::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> lines(const std::vector<Point>& points) {
  std::vector<std::string> all;
  for (const Point& point : points) {
    EXPECT_EQ(point.impossible, "") << point.problem.key();
    all.push_back(point.name + ": " + point.problem.key());
  }
  return all;
}

LikePlan like(const std::string& name, LikeRequest request) {
  if (request.batches.empty()) request.batches = {1};
  const auto opened = model::open_model(name);
  EXPECT_TRUE(opened) << opened.error().message;
  auto plan = plan_like(opened->config, request);
  EXPECT_TRUE(plan) << plan.error().message;
  return std::move(*plan);
}

// Llama-3-8B: hidden 4096, 32 heads and 8 of keys and values of 128, MLP 14336, vocabulary 128256.
TEST(Presets, ADenseModelsDecode) {
  const LikePlan plan =
      like("llama3-8b", {.operators = {"linear", "attention_decode"}, .batches = {4}, .contexts = {2048}});
  EXPECT_THAT(lines(plan.points),
              ElementsAre("q_proj, o_proj: linear float32 batch=4 seq=1 in=4096 out=4096",
                          "k_proj, v_proj: linear float32 batch=4 seq=1 in=4096 out=1024",
                          "core: attention_decode float32 batch=4 context=2048 heads=32 kv_heads=8 head_dim=128 page=0",
                          "mlp.gate_proj, mlp.up_proj: linear float32 batch=4 seq=1 in=4096 out=14336",
                          "mlp.down_proj: linear float32 batch=4 seq=1 in=14336 out=4096",
                          "lm_head: linear float32 batch=4 seq=1 in=4096 out=128256"));
}

TEST(Presets, APrefillNeedsLogitsOfTheLastTokenOnly) {
  const LikePlan plan = like("llama3-8b", {.seqs = {512}});
  EXPECT_THAT(lines(plan.points), Contains("lm_head: linear float32 batch=1 seq=1 in=4096 out=128256"));
  EXPECT_THAT(lines(plan.points), Contains("q_proj, o_proj: linear float32 batch=1 seq=512 in=4096 out=4096"));
  EXPECT_THAT(lines(plan.points),
              Contains("core: attention_prefill float32 batch=1 seq=512 heads=32 kv_heads=8 head_dim=128"));
  EXPECT_THAT(lines(plan.points), Contains("rope: rope float32 batch=1 seq=512 heads=32 kv_heads=8 head_dim=128"));
  EXPECT_THAT(lines(plan.points), Contains("mlp.act: silu_mul float32 batch=1 seq=512 intermediate=14336"));
  EXPECT_THAT(lines(plan.points), Contains("residual: residual_add float32 batch=1 seq=512 hidden=4096"));
  EXPECT_THAT(lines(plan.points), Contains("embed_tokens: embedding float32 batch=1 seq=512 vocab=128256 hidden=4096"));
  EXPECT_THAT(lines(plan.points),
              Contains("input_layernorm, post_attention_layernorm: rmsnorm float32 batch=1 seq=512 hidden=4096"));
}

TEST(Presets, AModelsOwnTypesOnAGpu) {
  const LikePlan plan = like("llama3-8b", {.operators = {"rmsnorm"}, .contexts = {16}, .device = DeviceKind::kGpu});
  EXPECT_EQ(plan.points.front().problem.type, Type::kBfloat16);
}

TEST(Presets, ExpertsAndLatents) {
  const LikePlan mixtral = like("mixtral-8x7b", {.operators = {"moe"}, .contexts = {64}});
  EXPECT_THAT(lines(mixtral.points), ElementsAre(HasSubstr("hidden=4096 intermediate=14336 experts=8")));
  const LikePlan deepseek = like("deepseek-v3", {.operators = {"mla_decode"}, .contexts = {64}});
  EXPECT_THAT(lines(deepseek.points),
              ElementsAre("core: mla_decode float32 batch=1 context=64 heads=128 rank=512 rope=64 page=0"));
  EXPECT_THAT(like("deepseek-v3", {.seqs = {64}}).left_out, Contains(HasSubstr("keys of 192 and values of 128")));
}

TEST(Presets, EveryShapeOfTheKnownFamiliesCanBe) {
  for (const char* name :
       {"gpt2", "llama3-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "gemma-2-9b"}) {
    if (!model::open_model(name)) continue;
    EXPECT_THAT(lines(like(name, {.batches = {1, 8}, .seqs = {128}, .contexts = {1024}}).points), Not(IsEmpty()))
        << name;
  }
}

TEST(Presets, WhatTheModelLacksIsAnError) {
  const auto opened = model::open_model("llama3-8b");
  EXPECT_FALSE(plan_like(opened->config, {.operators = {"conv2d"}, .batches = {1}, .seqs = {8}}));
  EXPECT_FALSE(plan_like(opened->config, {.batches = {0}, .seqs = {8}}));
  EXPECT_FALSE(plan_like(opened->config, {.operators = {"gemmm"}, .batches = {1}, .seqs = {8}}));
}

TEST(FromRun, NeighboursArePowersAndMultiples) {
  EXPECT_THAT(neighbours_of(1), ElementsAre(2, 64));
  EXPECT_THAT(neighbours_of(64), ElementsAre(32, 128));
  EXPECT_THAT(neighbours_of(100), ElementsAre(64, 128));
  EXPECT_THAT(neighbours_of(512), ElementsAre(256, 448, 576, 1024));
  EXPECT_THAT(neighbours_of(0), IsEmpty());
  EXPECT_THAT(neighbours_of(INT64_MAX), IsEmpty());
}

TEST(FromRun, TheMostTimeFirstAndTokensAreRows) {
  trace::TestFolder folder;
  const std::string path = folder / "x.llmprof";
  {
    auto writer = trace::RunWriter::create(path);
    const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
    const auto add = [&](std::int64_t id, std::int64_t ns, std::int64_t m, std::int64_t n, const char* layout) {
      writer->add(trace::GemmRow{.id = id,
                                 .begin_ns = 0,
                                 .end_ns = ns,
                                 .thread_id = 1,
                                 .m = m,
                                 .n = n,
                                 .k = 32,
                                 .type_a = name("float32"),
                                 .layout = name(layout)});
    };
    add(1, 100, 8, 64, "row");
    add(2, 200, 64, 8, "column");  // the same product, stored by columns
    add(3, 100, 128, 1, "row");    // a matrix times a vector: one row
    ASSERT_TRUE(writer->finish({}));
  }
  const auto run = trace::Run::open(path);
  ASSERT_TRUE(run);
  const auto points = plan_from_run(*run, {});
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_THAT(
      lines(*points),
      ElementsAre("75.0 % of the run's products: gemm float32 m=8 n=64 k=32 batch=1",
                  "near m=8: gemm float32 m=4 n=64 k=32 batch=1", "near m=8: gemm float32 m=16 n=64 k=32 batch=1",
                  "near m=8: gemm float32 m=64 n=64 k=32 batch=1",
                  "25.0 % of the run's products: gemm float32 m=1 n=128 k=32 batch=1",
                  "near m=1: gemm float32 m=2 n=128 k=32 batch=1", "near m=1: gemm float32 m=64 n=128 k=32 batch=1"));
  EXPECT_EQ(points->front().used_calls, 2);
  EXPECT_EQ(points->front().used_ns, 300);
  EXPECT_THAT(lines(*plan_from_run(*run, {.top = 1, .neighbours = false})),
              ElementsAre("75.0 % of the run's products: gemm float32 m=8 n=64 k=32 batch=1"));
}

}  // namespace
}  // namespace llmprof::bench

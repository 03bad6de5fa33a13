#include "predict/measured/for_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/checkpoint/open_model.h"
#include "predict/tables/parts.h"

namespace llmprof::predict {
namespace {

using bench::Cache;
using bench::DeviceKind;
using bench::Point;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ForPlan plan(const std::string& name, ForRequest request = {}) {
  auto opened = model::open_model(name);
  EXPECT_TRUE(opened) << name;
  request.config = std::move(opened->config);
  auto planned = plan_for_model(std::move(request));
  EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
  return planned ? std::move(*planned) : ForPlan{};
}

std::vector<std::string> lines(const ForPlan& plan, const std::string& part) {
  std::vector<std::string> all;
  for (const Point& point : plan.points) {
    EXPECT_EQ(point.impossible, "") << point.problem.key();
    if (point.name == part) all.push_back(point.key());
  }
  return all;
}

TEST(ForModel, ProductsAsEnginesRunThem) {
  const ForPlan planned = plan("llama3-8b", {.max_tokens = 2, .max_batch = 1, .max_context = 64});
  EXPECT_THAT(planned.left_out, IsEmpty());
  EXPECT_THAT(lines(planned, "qkv_proj"), ElementsAre("linear float32 batch=1 seq=1 in=4096 out=6144 cold ",
                                                      "linear float32 batch=1 seq=2 in=4096 out=6144 cold "));
  EXPECT_THAT(lines(planned, "gate_up_proj"), Contains("linear float32 batch=1 seq=1 in=4096 out=28672 cold "));
  EXPECT_THAT(lines(planned, "lm_head"), ElementsAre("linear float32 batch=1 seq=1 in=4096 out=128256 cold "));
  EXPECT_THAT(lines(planned, "layernorm, final_layernorm"),
              Contains("residual_rmsnorm float32 batch=1 seq=1 hidden=4096 hot "));
  EXPECT_THAT(lines(planned, "rotary_emb"),
              Contains("rope float32 batch=1 seq=2 heads=32 kv_heads=8 head_dim=128 hot "));
  EXPECT_THAT(lines(planned, "sampler"), ElementsAre("sampling float32 batch=1 vocab=128256 k=1 hot "));
  EXPECT_THAT(
      lines(planned, "attention"),
      AllOf(Contains("attention_decode float32 batch=1 context=64 heads=32 kv_heads=8 head_dim=128 page=16 cold "),
            Contains("attention_prefill float32 batch=1 seq=2 heads=32 kv_heads=8 head_dim=128 cold "),
            Contains(HasSubstr("attention_mixed float32 chunk=2 prior=32 batch=0 "))));
}

// Every part of the model has its points, under the name that predictions look up.
TEST(ForModel, NamesAreThoseOfTheParts) {
  for (const char* name : {"llama3-8b", "gpt2", "qwen3-8b", "mixtral-8x7b"}) {
    const auto opened = model::open_model(name);
    ASSERT_TRUE(opened) << name;
    std::set<std::string> measured;
    for (const Point& point : plan(name, {.device = DeviceKind::kGpu}).points) {
      std::string names = point.name + ", ";
      for (std::size_t at = 0; (at = names.find(", ")) != std::string::npos; names.erase(0, at + 2)) {
        measured.insert(names.substr(0, at));
      }
    }
    for (const Part& part : parts_of(model::Graph(opened->config))) {
      EXPECT_THAT(measured, Contains(part.name)) << name;
    }
  }
}

TEST(ForModel, OneRankOfSeveral) {
  const ForPlan planned =
      plan("llama3-8b", {.parallel = {.tensor = 4}, .max_tokens = 1, .max_batch = 1, .max_context = 16});
  EXPECT_THAT(lines(planned, "qkv_proj"), ElementsAre("linear float32 batch=1 seq=1 in=4096 out=1536 cold "));
  EXPECT_THAT(lines(planned, "down_proj"), ElementsAre("linear float32 batch=1 seq=1 in=3584 out=4096 cold "));
  EXPECT_THAT(lines(planned, "sampler"), ElementsAre(HasSubstr("vocab=128256")));  // of all ranks
}

TEST(ForModel, HeadNormsAreOneCallOfAllHeads) {
  const ForPlan planned = plan("qwen3-8b", {.max_tokens = 1, .max_batch = 1, .max_context = 16});
  EXPECT_THAT(lines(planned, "qk_norm"), ElementsAre("rmsnorm float32 batch=1 seq=40 hidden=128 hot "));
}

TEST(ForModel, ALayerNormHasItsResidual) {
  const ForPlan planned = plan("gpt2", {.max_tokens = 1, .max_batch = 1, .max_context = 16});
  EXPECT_THAT(lines(planned, "layernorm, final_layernorm"),
              ElementsAre("layernorm float32 batch=1 seq=1 hidden=768 hot ",
                          "residual_add float32 batch=1 seq=1 hidden=768 hot "));
  EXPECT_THAT(lines(planned, "rotary_emb"), IsEmpty());
}

TEST(ForModel, FewerExpertsStandForFewerActiveOnes) {
  const ForPlan planned = plan("mixtral-8x7b", {.max_tokens = 8, .max_batch = 1, .max_context = 16});
  EXPECT_THAT(lines(planned, "moe"),
              AllOf(Contains(HasSubstr("seq=8 hidden=4096 intermediate=14336 experts=8 top_k=2")),
                    Contains(HasSubstr("seq=8 hidden=4096 intermediate=14336 experts=2 top_k=2")),
                    Not(Contains(HasSubstr("seq=4 hidden=4096 intermediate=14336 experts=4")))));
}

TEST(ForModel, AGpuHasTheModelsTypesAndMinutes) {
  const ForPlan planned = plan("llama3-8b", {.device = DeviceKind::kGpu});
  EXPECT_LT(planned.points.size(), 600u);
  std::size_t by_kernel = 0;
  for (const Point& point : planned.points) {
    EXPECT_EQ(point.problem.type, bench::Type::kBfloat16) << point.key();
    by_kernel += point.implementation == "kernel";
  }
  EXPECT_EQ(by_kernel, 10u);  // chunks of 16 to 8192 by the kernel that knows tokens before them
}

TEST(ForModel, WhatCannotBeMeasuredIsSaid) {
  const ForPlan planned = plan("deepseek-v3", {.max_tokens = 8, .max_batch = 1, .max_context = 16});
  EXPECT_THAT(planned.left_out, Contains(HasSubstr("a latent cache has no operator for prompts")));
  EXPECT_THAT(lines(planned, "attention"), IsEmpty());
  ForRequest absurd;
  absurd.config = model::open_model("gpt2")->config;
  absurd.max_batch = -1;
  EXPECT_FALSE(plan_for_model(absurd));
}

TEST(ForModel, Sizes) {
  EXPECT_THAT(product_rows(1), ElementsAre(1));
  EXPECT_THAT(product_rows(20), ElementsAre(1, 2, 4, 8, 16, 20));
  EXPECT_EQ(product_rows(8192).back(), 8192);
  EXPECT_THAT(product_rows(8192), AllOf(Contains(256), Contains(768), Contains(6144)));
  EXPECT_LE(product_rows(8192).size(), 34u);
  EXPECT_THAT(doubling(16, 100), ElementsAre(16, 32, 64, 100));
  EXPECT_THAT(doubling(16, 16), ElementsAre(16));
}

TEST(ForModel, LessTimeMeansShorterPoints) {
  const bench::BenchOptions minutes = options_within(300, 500), seconds = options_within(10, 500);
  EXPECT_NEAR(minutes.measure.limit_seconds, 0.24, 1e-9);
  EXPECT_EQ(seconds.measure.limit_seconds, 0.02);
  EXPECT_TRUE(minutes.small_checks);
  EXPECT_LE(minutes.measure.warm_up_seconds + minutes.measure.least_seconds, minutes.measure.limit_seconds);
}

}  // namespace
}  // namespace llmprof::predict

#include "predict/implementation/as_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::predict {
namespace {

using ::testing::HasSubstr;

StepKernel kernel(std::string name, std::string module) {
  return {.name = std::move(name), .blocks = 4, .threads = 128, .op = "mlp.up_proj", .module = std::move(module)};
}

// Two kernels of the same kind at the border of layers: the block that repeats does not begin with a layer.
Implementation made(int layers) {
  StageSteps stage{.stage = "decode", .step_id = 7, .batch = 2, .rows = 2, .contexts = 900, .graph = true};
  stage.launches = 1, stage.variants = 3;
  stage.host = {{1.5, 1, 2, 1.75, 9}, {}, {4000, 3500, 5000.25, 4100, 12}};
  stage.kernels.push_back(kernel("embed", ""));
  for (int i = 0; i < layers; ++i) {
    stage.kernels.push_back(kernel("norm", fmt::format("layers.{}.input_layernorm", i)));
    StepKernel up = kernel("gemm", fmt::format("layers.{}.mlp.up_proj", i));
    up.product = WeightProduct{2, 14336, 4096, "bfloat16"};
    stage.kernels.push_back(up);
    StepKernel rest = kernel("splitk", fmt::format("layers.{}.mlp.up_proj", i));
    rest.follows = true;
    stage.kernels.push_back(rest);
    StepKernel attention = kernel("flash_fwd", fmt::format("layers.{}.self_attn", i));
    attention.attention = attention.grows = true, attention.blocks = 8;
    stage.kernels.push_back(attention);
    stage.kernels.push_back(kernel("copy", ""));
    stage.kernels.push_back(kernel("norm", fmt::format("layers.{}.input_layernorm", i)));
  }
  stage.kernels.push_back(kernel("head", "lm_head"));
  return {.run = "folder/of/base_1.llmprof", .command = {"python", "secret.py"}, .stages = {stage}};
}

std::string words(const StepKernel& k) {
  std::string out = fmt::format("{} {} {} {} {} {} {} {}", k.name, k.blocks, k.threads, k.op, k.module, k.follows,
                                k.attention, k.grows);
  if (k.product) out += fmt::format(" {} {} {} {}", k.product->rows, k.product->n, k.product->k, k.product->type);
  return out;
}

TEST(ImplementationJson, ComesBackAsItWas) {
  const Implementation before = made(3);
  const auto after = parse_implementation(to_json_text(before), "test");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->run, "base_1.llmprof");  // no folder of the machine
  EXPECT_TRUE(after->command.empty());
  ASSERT_EQ(after->stages.size(), 1u);
  const StageSteps &a = before.stages[0], &b = after->stages[0];
  EXPECT_EQ(std::tuple(a.stage, a.step_id, a.batch, a.rows, a.contexts, a.graph, a.launches, a.variants),
            std::tuple(b.stage, b.step_id, b.batch, b.rows, b.contexts, b.graph, b.launches, b.variants));
  EXPECT_EQ(b.host.launch_ns.value, 1.5);
  EXPECT_EQ(b.host.launch_ns.mean, 1.75);
  EXPECT_EQ(b.host.around_ns.high, 5000.25);
  EXPECT_EQ(b.host.around_ns.samples, 12);
  EXPECT_FALSE(b.host.latency_ns.known());
  ASSERT_EQ(b.kernels.size(), 20u);
  for (std::size_t i = 0; i < b.kernels.size(); ++i) EXPECT_EQ(words(a.kernels[i]), words(b.kernels[i])) << i;
}

TEST(ImplementationJson, LayersThatRepeatAreWrittenOnce) {
  EXPECT_LT(to_json_text(made(100)).size(), to_json_text(made(3)).size() + 100);
  const auto back = parse_implementation(to_json_text(made(100)), "test");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->stages[0].kernels.size(), 602u);
  EXPECT_EQ(back->stages[0].kernels[600].module, "layers.99.input_layernorm");
}

TEST(ImplementationJson, DamagedTextsAreErrors) {
  const std::string good = to_json_text(made(2));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string("[]"), std::string("{}"), changed("llmprof.implementation", "something"),
        changed("\"schema\":\"llmprof.implementation\"", "\"schema\":5"), changed("\"batch\":2", "\"batch\":0"),
        changed("\"kernels\":[[1,", "\"kernels\":[[2000000,"), changed("\"kernels\":[[1,-1,0", "\"kernels\":[[1,-1,99"),
        changed("\"kernels\":[[1,-1,0", "\"kernels\":[[1,-1,\"x\""), changed("\"texts\":[", "\"words\":["),
        changed("\"launch_ns\":[1.5", "\"launch_ns\":[\"a\"")}) {
    const auto parsed = parse_implementation(text, "bad.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("bad.json"));
  }
}

}  // namespace
}  // namespace llmprof::predict

#include <gtest/gtest.h>

#include "analyze/names/grammar.h"
#include "analyze/names/range_words.h"

namespace llmprof::analyze {

namespace {

TEST(Grammar, OperatorIsWhatFollowsTheLastNumber) {
  EXPECT_EQ(operator_of("layers.3.mlp.up_proj"), "mlp.up_proj");
  EXPECT_EQ(operator_of("h.0.attn.core"), "attn.core");
  EXPECT_EQ(operator_of("blocks.1.experts.12.up"), "up");
  EXPECT_EQ(operator_of("embed_tokens"), "embed_tokens");
  EXPECT_EQ(operator_of("layers.3"), "layers");
  EXPECT_EQ(operator_of("blocks.1.experts.12"), "experts");
  EXPECT_EQ(operator_of("7"), "7");
  EXPECT_EQ(operator_of("conv2d.w"), "conv2d.w");  // a component must be all digits
}

TEST(Grammar, ModulePaths) {
  EXPECT_EQ(module_path("", "lm_head"), "lm_head");
  EXPECT_EQ(module_path("layers.3", "mlp"), "layers.3.mlp");
  EXPECT_EQ(module_path("layers.3", "layers.3.mlp"), "layers.3.mlp");
  EXPECT_EQ(module_path("layers.3", "layers.30"), "layers.3.layers.30");  // a prefix of the text, not of the path
  EXPECT_EQ(module_path("norm", "norm"), "norm");
  EXPECT_EQ(module_path("", "model.layers.3"), "layers.3");
}

TEST(RangeWords, NamesAreReadByWordsAndNumbers) {
  const RangeName train = read_name("Train step 5");
  EXPECT_EQ(train.label, "Train step");
  EXPECT_EQ(train.number, 5);
  EXPECT_EQ(train.words, (std::vector<std::string>{"train", "step"}));
  EXPECT_EQ(read_name("LlamaForCausalLM.forward").words,
            (std::vector<std::string>{"llama", "for", "causal", "lm", "forward"}));
  EXPECT_EQ(read_name("gpt2_forward").number, std::nullopt);  // a part of a word
  EXPECT_EQ(read_name("XlaModule:#hlo_module=jit_step,program_id=37#").label, "jit_step");
  EXPECT_EQ(shape_of("Layer 12 of 40"), "Layer # of #");
}

TEST(RangeWords, ClassesAreGivenToPassesNotToParts) {
  const auto stage = [](std::string_view name) { return meaning_by_words(name, "").stage; };
  EXPECT_EQ(stage("gpt2_forward"), "forward");
  EXPECT_EQ(stage("GPT2LMHeadModel.forward"), "forward");
  EXPECT_EQ(stage("layernorm_forward"), "");
  EXPECT_EQ(stage("LlamaAttention.forward"), "");
  EXPECT_EQ(stage("forward-backward"), "");
  EXPECT_EQ(stage("loss.backward"), "backward");
  EXPECT_EQ(stage("AdamW.step"), "optimizer");
  EXPECT_EQ(stage("decoder"), "");
  EXPECT_EQ(stage("Evaluate"), "validation");
  EXPECT_EQ(stage("load weights"), "load");
  EXPECT_EQ(stage("load balance"), "");
}

TEST(RangeWords, NumberedBlocks) {
  EXPECT_EQ(block_path("Layer 3"), "Layer.3");
  EXPECT_EQ(block_path("block_3"), "block.3");
  EXPECT_EQ(block_path("h.3"), "h.3");
  EXPECT_EQ(block_path("model.layers.3"), "model.layers.3");
  EXPECT_EQ(block_path("Layer"), "");
  EXPECT_EQ(block_path("step 3"), "");
  EXPECT_EQ(block_path(""), "");
}

TEST(Grammar, PayloadFields) {
  const StepSize none = unpack(std::nullopt);
  EXPECT_FALSE(none.batch || none.tokens || none.context);
  // context 2^23 + 1 sets the sign bit of the 64-bit payload
  const auto bits = std::uint64_t{3} | std::uint64_t{5} << 16 | std::uint64_t{0x800001} << 40;
  const StepSize size = unpack(static_cast<std::int64_t>(bits));
  EXPECT_EQ(size.batch, 3);
  EXPECT_EQ(size.tokens, 5);
  EXPECT_EQ(size.context, 0x800001);
}

TEST(Grammar, Wildcards) {
  EXPECT_TRUE(matches("decode_step_*", "decode_step_12"));
  EXPECT_TRUE(matches("a*b*c", "a--b--b--c"));
  EXPECT_FALSE(matches("a*b*c", "a--c--b"));
  EXPECT_FALSE(matches("decode", "decode2"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*ab", "aab"));
  EXPECT_FALSE(matches("ab*", "a"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
}

// Trying every way to divide the text among the stars would take 2^60 steps here.
TEST(Grammar, ManyWildcardsTakeNoTime) {
  std::string pattern, text(1000, 'a');
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", text));
  EXPECT_TRUE(matches(pattern, text));
}

TEST(Grammar, PatternsWithMembersOfTheWrongType) {
  const auto rows = parse_patterns(
      R"([{"pattern": "x", "kind": "step", "stage": "decode", "source": "s", "container": "yes"}])", "test");
  ASSERT_TRUE(rows);
  EXPECT_FALSE(rows->front().container);
  EXPECT_FALSE(parse_patterns(R"([5])", "test"));
  EXPECT_FALSE(parse_patterns(R"([{"pattern": 1, "kind": 2, "source": 3}])", "test"));
}

TEST(Grammar, MeaningByDomainThenByPattern) {
  const std::vector<RangePattern> patterns = *built_in_patterns();
  EXPECT_EQ(meaning_of("decode", "llmprof", "stage", patterns).kind, RangeKind::kStage);
  EXPECT_EQ(meaning_of("decode", "llmprof", "no such", patterns).kind, RangeKind::kPlain);
  EXPECT_EQ(meaning_of("decode", "", "", patterns).confidence, kPatternConfidence);
  EXPECT_EQ(meaning_of("generate", "app", "", patterns).kind, RangeKind::kStage);
  EXPECT_EQ(meaning_of("warmup", "", "", patterns).stage, "warm-up");
  EXPECT_EQ(meaning_of("anything", "", "", patterns).kind, RangeKind::kPlain);
}

TEST(Grammar, NamesOfServingEngines) {
  const std::vector<RangePattern> patterns = *built_in_patterns();
  EXPECT_EQ(meaning_of("execute_context_0(0)_generation_64(64)", "", "", patterns).stage, "decode");
  EXPECT_EQ(meaning_of("execute_context_0(0)_generation_8(24)", "", "", patterns).stage, "verify");
  EXPECT_EQ(meaning_of("execute_context_1(512)_generation_0(0)", "", "", patterns).stage, "prefill");
  EXPECT_EQ(meaning_of("execute_context_1(512)_generation_63(63)", "", "", patterns).stage, "mixed");
  EXPECT_EQ(
      meaning_of("execute_3_context_0(sq0sk0sqsq0sqsk0)_generation_3(sq3sk36sqsq3sqsk36)", "", "", patterns).stage,
      "decode");
  EXPECT_EQ(
      meaning_of("execute_9_context_1(sq9sk9sqsq81sqsk81)_generation_0(sq0sk0sqsq0sqsk0)", "", "", patterns).stage,
      "prefill");
  EXPECT_EQ(
      meaning_of("execute_12_context_1(sq9sk9sqsq81sqsk81)_generation_3(sq3sk36sqsq3sqsk36)", "", "", patterns).stage,
      "mixed");
  EXPECT_EQ(meaning_of("_forward_step", "TensorRT-LLM", "", patterns).stage, "mixed");
  EXPECT_EQ(meaning_of("step[DECODE bs=8]", "", "", patterns).stage, "decode");
  EXPECT_EQ(meaning_of("step[EXTEND bs=2 toks=107]", "", "", patterns).stage, "prefill");
  EXPECT_EQ(meaning_of("step[MIXED bs=2]", "", "", patterns).stage, "mixed");
}

TEST(Grammar, SizesInNames) {
  const std::vector<RangePattern> patterns = *built_in_patterns();
  const StepSize decode = meaning_of("execute_context_0(0)_generation_64(64)", "", "", patterns).size;
  EXPECT_EQ(decode.batch, 64);
  EXPECT_EQ(decode.tokens, 1);
  EXPECT_EQ(meaning_of("step[DECODE bs=8]", "", "", patterns).size.batch, 8);
  EXPECT_FALSE(meaning_of("step[DECODE bs=x]", "", "", patterns).size.batch);
  EXPECT_FALSE(meaning_of("step[DECODE bs=99999999999999999999]", "", "", patterns).size.batch);
  EXPECT_FALSE(meaning_of("decode", "", "", patterns).size.batch);
  EXPECT_FALSE(meaning_of("execute_new_1_cached_7", "", "", patterns).size.batch);  // requests, not tokens
}

// Sums over the sequences of a batch, as far as the engine says them.
TEST(Grammar, SumsInNamesOfServingEngines) {
  const StepSize prompt = engine_step_size("execute_context_2(700)_generation_0(0)");
  EXPECT_EQ(prompt.batch, 2);
  EXPECT_EQ(prompt.rows, 700);
  EXPECT_EQ(prompt.contexts, 700);  // at least: a prompt may have begun before
  EXPECT_FALSE(prompt.tokens || prompt.contexts_most || prompt.pairs);
  const StepSize mixed = engine_step_size("execute_context_1(512)_generation_63(63)");
  EXPECT_EQ(mixed.batch, 64);
  EXPECT_EQ(mixed.rows, 575);
  EXPECT_EQ(mixed.generating, 63);
  // 100 and 7 new tokens of prompts, 3 sequences of 11, 12 and 13 that generate.
  const StepSize detailed =
      engine_step_size("execute_110_context_2(sq107sk107sqsq10049sqsk10049)_generation_3(sq3sk36sqsq3sqsk36)");
  EXPECT_EQ(detailed.batch, 5);
  EXPECT_EQ(detailed.rows, 110);
  EXPECT_EQ(detailed.contexts, 143);
  EXPECT_EQ(detailed.contexts_most, 143);
  EXPECT_EQ(detailed.pairs, 100 * 101 / 2 + 7 * 8 / 2 + 36);
  const StepSize extend = engine_step_size("step[EXTEND bs=2 toks=107]");
  EXPECT_EQ(extend.batch, 2);
  EXPECT_EQ(extend.rows, 107);
  const StepSize sglang = engine_step_size("step[DECODE bs=3 g_sq=3 g_sqsq=3 g_sqsk=36 g_sk=36]");
  EXPECT_EQ(sglang.tokens, 1);
  EXPECT_EQ(sglang.contexts_most, 36);
  const StepSize both = engine_step_size(
      "step[MIXED bs=5 toks=110 c_sq=107 c_sqsq=10049 c_sqsk=10049 c_sk=107 g_sq=3 g_sqsq=3 g_sqsk=36 g_sk=36]");
  EXPECT_EQ(both.batch, 5);
  EXPECT_EQ(both.generating, 3);
  EXPECT_EQ(both.pairs, detailed.pairs);
  for (const char* wrong : {"execute_context_x(1)_generation_0(0)", "execute_context_2(1)_generation_0(0)",
                            "execute_generation_1(1)_context_1(1)", "step[EXTEND bs=2]", "step[MIXED bs=1 g_sq=3]",
                            "execute_context_1(9999999999999999999)_generation_0(0)", "step[", "execute_", ""}) {
    EXPECT_FALSE(engine_step_size(wrong).batch) << wrong;
  }
}

TEST(Grammar, PatternRowsAreChecked) {
  EXPECT_FALSE(parse_patterns("{}", "x"));
  EXPECT_FALSE(parse_patterns(R"([{"pattern": "a", "kind": "step", "stage": "nonsense", "source": "s"}])", "x"));
  EXPECT_FALSE(parse_patterns(R"([{"pattern": "a", "kind": "step", "stage": "decode"}])", "x"));
  EXPECT_TRUE(parse_patterns(R"([{"pattern": "a", "kind": "module", "source": "s"}])", "x"));
}

}  // namespace

}  // namespace llmprof::analyze

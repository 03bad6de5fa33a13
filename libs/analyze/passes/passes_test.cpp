#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analyze/names/ranges.h"
#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/ranges.h"
#include "analyze/passes/sums.h"

namespace llmprof::analyze {
namespace {

using testing::ElementsAre;

// A few ranges written down as a person would: {begin, end, name, category ("" = a plain range of no domain), thread}.
struct Spec {
  std::int64_t begin, end;
  std::string name;
  std::string category;
  std::int64_t thread = 1;
  std::int64_t payload = kNull;
};

Ranges make(const std::vector<Spec>& specs) {
  Ranges ranges;
  ranges.texts = {""};
  const auto code = [&](const std::string& text) -> std::int64_t {
    if (text.empty()) return 0;
    for (std::size_t i = 1; i < ranges.texts.size(); ++i) {
      if (ranges.texts[i] == text) return static_cast<std::int64_t>(i);
    }
    ranges.texts.push_back(text);
    return static_cast<std::int64_t>(ranges.texts.size() - 1);
  };
  for (const Spec& spec : specs) {
    ranges.id.push_back(100 + static_cast<std::int64_t>(ranges.id.size()));
    ranges.begin_ns.push_back(spec.begin);
    ranges.end_ns.push_back(spec.end);
    ranges.thread_id.push_back(spec.thread);
    ranges.process_id.push_back(1);
    ranges.depth.push_back(0);
    ranges.name.push_back(code(spec.name));
    ranges.domain.push_back(code(spec.category.empty() ? "" : "llmprof"));
    ranges.category.push_back(code(spec.category));
    ranges.payload.push_back(spec.payload);
  }
  sort_for_sweep(ranges);
  return ranges;
}

struct Fixture {
  explicit Fixture(const std::vector<Spec>& specs) : ranges(make(specs)), patterns(*built_in_patterns()) {
    classified = classify(ranges, patterns, strings);
  }
  std::string_view stage(std::size_t i) const { return strings.text(classified.places[i].stage); }
  std::string_view module(std::size_t i) const { return strings.text(classified.places[i].module); }
  std::string_view step_stage(std::size_t i) const { return strings.text(classified.steps[i].stage); }

  trace::Strings strings;
  Ranges ranges;
  std::vector<RangePattern> patterns;
  Classified classified;
};

TEST(SortForSweep, GroupsThreadsAndPutsTheOuterRangeFirst) {
  // Logged in order of their ends, as a collector does: inner ranges first.
  const Ranges ranges = make({{20, 30, "c", "", 2}, {0, 5, "b", "", 1}, {0, 10, "a", "", 1}, {12, 14, "d", "", 1}});
  EXPECT_THAT(ranges.id, ElementsAre(102, 101, 103, 100));
}

TEST(Sweep, OverlappingRangesAreNotParents) {
  const Ranges ranges = make({{0, 100, "outer", ""}, {10, 50, "a", ""}, {40, 60, "b", ""}, {45, 48, "c", ""}});
  std::vector<std::int32_t> parents;
  sweep(ranges, [&](std::int32_t, std::int32_t parent) { parents.push_back(parent); });
  EXPECT_THAT(parents, ElementsAre(kNone, 0, 0, 2));  // b begins in a but outlives it: its parent is outer
}

TEST(Classify, StepsInAStageAndModulePaths) {
  const std::int64_t payload = 2 | std::int64_t{1} << 16 | std::int64_t{9} << 40;
  const Fixture f({{0, 100, "decode", "stage"},
                   {10, 40, "decode", "step", 1, payload},
                   {12, 30, "layers.3", "module"},
                   {14, 20, "mlp", "module"},
                   {15, 18, "layers.3.mlp.up_proj", "module"},
                   {50, 90, "decode", "step"}});
  ASSERT_EQ(f.classified.steps.size(), 2u);
  EXPECT_EQ(f.classified.steps[0].size.batch, 2);
  EXPECT_EQ(f.classified.steps[0].size.tokens, 1);
  EXPECT_EQ(f.classified.steps[0].size.context, 9);
  EXPECT_EQ(f.classified.steps[1].number, 1);
  EXPECT_FALSE(f.classified.steps[1].size.batch.has_value());
  EXPECT_EQ(f.module(2), "layers.3");
  EXPECT_EQ(f.module(3), "layers.3.mlp");
  EXPECT_EQ(f.module(4), "layers.3.mlp.up_proj");
  EXPECT_EQ(f.stage(0), "decode");
  EXPECT_EQ(f.classified.places[0].step, kNone);  // a container is no step
  EXPECT_EQ(f.classified.places[4].step, 0);
}

// The names of llm.c, which nobody here wrote.
TEST(Classify, TrainingProgramByTheWordsOfItsRanges) {
  const Fixture f({{0, 100, "Train step 1", ""},
                   {0, 20, "validation", ""},
                   {1, 19, "gpt2_forward", ""},
                   {20, 50, "gpt2_forward", ""},
                   {21, 25, "encoder_forward", ""},
                   {26, 40, "Layer 3", ""},
                   {27, 30, "attention_forward", ""},
                   {50, 90, "gpt2_backward_and_reduce", ""},
                   {52, 60, "Layer 3", ""},
                   {53, 55, "matmul_backward", ""},
                   {90, 92, "gpt2_calculate_grad_norm", ""},
                   {93, 99, "gpt2_update", ""},
                   {200, 300, "Train step 2", ""},
                   {200, 290, "generation", ""},
                   {200, 240, "Generation step 1", ""},
                   {201, 230, "gpt2_forward", ""},
                   {240, 280, "Generation step 2", ""},
                   {241, 270, "gpt2_forward", ""}});
  std::vector<std::string_view> stages;
  for (std::size_t i = 0; i < f.classified.steps.size(); ++i) stages.push_back(f.step_stage(i));
  EXPECT_THAT(stages, ElementsAre("validation", "forward", "backward", "optimizer", "generation", "generation"));
  EXPECT_EQ(f.module(5), "Layer.3");
  EXPECT_EQ(f.module(6), "Layer.3.attention_forward");
  EXPECT_EQ(f.module(9), "Layer.3.matmul_backward");
  EXPECT_EQ(f.stage(10), "training");  // in no pass of the training step
  EXPECT_EQ(f.classified.places[10].step, kNone);
  EXPECT_EQ(f.stage(2), "validation");  // a forward pass, but not of training
  const auto told = std::ranges::find_if(f.classified.meanings, [&](const trace::RangeMeaningRow& row) {
    return f.strings.text(row.name) == "gpt#_update";
  });
  ASSERT_NE(told, f.classified.meanings.end());
  EXPECT_EQ(f.strings.text(told->kind), "step");
  EXPECT_THAT(std::string(f.strings.text(told->why)), testing::HasSubstr("'update' in its name"));
}

TEST(Classify, UpdateAloneIsNothing) {
  const Fixture f({{0, 10, "cache_update", ""}, {20, 30, "cache_update", ""}});
  EXPECT_TRUE(f.classified.steps.empty());
}

TEST(Classify, OutermostRangesThatComeAgainAreStepsByTheirOwnName) {
  std::vector<Spec> specs{{0, 1000, "XlaCompileBackend:#module=jit_step,program_id=3#", "", 2},
                          {1000, 1010, "XlaModule:#hlo_module=gemm_fusion_dot.1#", "", 2},
                          {1010, 1020, "XlaModule:#hlo_module=gemm_fusion_dot.2#", "", 2},
                          {1020, 1030, "XlaModule:#hlo_module=gemm_fusion_dot.3#", "", 2}};
  for (std::int64_t i = 0; i < 4; ++i) {
    specs.push_back({2000 + 100 * i, 2090 + 100 * i, "XlaModule:#hlo_module=jit_step,program_id=3#", "", 1});
    specs.push_back({2010 + 100 * i, 2020 + 100 * i, "Thunk:#hlo_op=loop_gather_fusion.2,unique_hlo_op_id=7#", "", 1});
  }
  const Fixture f(specs);
  ASSERT_EQ(f.classified.steps.size(), 5u);
  EXPECT_EQ(f.step_stage(0), "compile");
  EXPECT_EQ(f.step_stage(1), "jit_step");
  EXPECT_EQ(f.step_stage(4), "jit_step");
  EXPECT_EQ(f.module(1), "loop_gather_fusion");
  EXPECT_LT(f.classified.steps[1].confidence, kWordConfidence);
}

TEST(Classify, OperatorsThatComeAgainAreNoSteps) {
  std::vector<Spec> specs;
  for (std::int64_t i = 0; i < 9; ++i) specs.push_back({10 * i, 10 * i + 5, i % 2 == 0 ? "aten::mm" : "aten::add", ""});
  EXPECT_TRUE(Fixture(specs).classified.steps.empty());
}

TEST(Classify, RulesOfUsersWin) {
  const Ranges ranges = make({{0, 100, "forward", ""}, {10, 20, "phase A", ""}, {30, 40, "nothing to see", ""}});
  const auto rules = parse_range_rules(R"([ranges]
rules = [ { name = "forward", is = "container" }, { name = "phase *", is = "step", stage = "rollout" },
          { name = "nothing*", is = "nothing" } ])",
                                       "rules.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  trace::Strings strings;
  const Classified classified = classify(ranges, rules->rules, strings);
  ASSERT_EQ(classified.steps.size(), 1u);
  EXPECT_EQ(strings.text(classified.steps[0].stage), "rollout");
  EXPECT_EQ(classified.steps[0].confidence, kDeclaredConfidence);
  for (const char* wrong : {"[:]", "[ranges", "[ranges]\nrules = 3", "[ranges]\nrules = [{ name = 'x', is = 'y' }]",
                            "[ranges]\nrules = [{ name = 'x', is = 'step' }]", "[ranges]\nrules = [{ is = 'part' }]",
                            "[ranges]\nrules = [{ name = 'x', is = 'part', when = 'now' }]"}) {
    EXPECT_FALSE(parse_range_rules(wrong, "rules.toml")) << wrong;
  }
  EXPECT_TRUE(parse_range_rules("[other]\nx = 1", "rules.toml")->rules.empty());
}

TEST(Classify, NumberedStepsBelongToTheStageAroundThem) {
  const Fixture f({{0, 10, "e2e", ""},
                   {0, 4, "prefill", ""},
                   {4, 10, "decode", ""},
                   {4, 6, "step_0", ""},
                   {6, 10, "step_1", ""},
                   {20, 30, "step_2", ""}});
  ASSERT_EQ(f.classified.steps.size(), 4u);
  EXPECT_EQ(f.step_stage(0), "prefill");
  EXPECT_EQ(f.step_stage(1), "decode");
  EXPECT_EQ(f.step_stage(2), "decode");
  EXPECT_EQ(f.step_stage(3), "other");  // nothing around it says
}

TEST(Classify, AStageWithoutStepsIsAStep) {
  const Fixture f({{0, 10, "load", "stage"}, {2, 4, "embed_tokens", "module"}});
  ASSERT_EQ(f.classified.steps.size(), 1u);
  EXPECT_EQ(f.step_stage(0), "load");
  EXPECT_EQ(f.classified.places[1].step, 0);
}

TEST(Classify, PlainNamesMatchPatterns) {
  const Fixture f({{0, 50, "decode", ""},
                   {0, 20, "decode_step_1", ""},
                   {20, 50, "decode_step_2", ""},
                   {60, 90, "step_7", ""},
                   {61, 70, "forward", ""},
                   {70, 80, "backward", ""},
                   {80, 90, "optimizer", ""},
                   {95, 99, "my own", ""}});
  // "decode" holds steps of its own stage, so it is their container; step_7 is a container by its row.
  ASSERT_EQ(f.classified.steps.size(), 5u);
  EXPECT_EQ(f.step_stage(0), "decode");
  EXPECT_EQ(f.step_stage(2), "forward");
  EXPECT_EQ(f.step_stage(3), "backward");
  EXPECT_EQ(f.step_stage(4), "optimizer");
  EXPECT_EQ(f.classified.steps[0].confidence, kPatternConfidence);
  EXPECT_EQ(f.stage(7), "");
}

TEST(Classify, TrainingStepsHoldTheirStages) {
  // Declared as the embedded model does, then as plain names, the optimizer as PyTorch calls its own.
  const Fixture f({{0, 40, "train_step", "stage"},
                   {1, 10, "forward", "step"},
                   {10, 30, "backward", "step"},
                   {30, 39, "optimizer", "step"},
                   {50, 90, "train_step_7", ""},
                   {51, 60, "forward", ""},
                   {60, 80, "backward", ""},
                   {80, 89, "optimizer", ""},
                   {81, 88, "Optimizer.step#AdamW.step", ""}});
  ASSERT_EQ(f.classified.steps.size(), 6u);
  for (const std::size_t first : {0u, 3u}) {
    EXPECT_EQ(f.step_stage(first), "forward");
    EXPECT_EQ(f.step_stage(first + 1), "backward");
    EXPECT_EQ(f.step_stage(first + 2), "optimizer");
  }
  EXPECT_EQ(f.classified.steps[5].begin_ns, 81);  // "optimizer" holds a step of its own stage: a container
}

TEST(Classify, DeclaredStepsWinOverPatterns) {
  // The plain "forward" inside a declared step is no step; the plain "forward" around a declared one is a container.
  const Fixture f(
      {{0, 20, "decode", "step"}, {2, 10, "forward", ""}, {30, 90, "forward", ""}, {40, 80, "prefill", "step"}});
  ASSERT_EQ(f.classified.steps.size(), 2u);
  EXPECT_EQ(f.step_stage(0), "decode");
  EXPECT_EQ(f.step_stage(1), "prefill");
  EXPECT_EQ(f.stage(1), "decode");
}

std::int64_t sized(std::int64_t batch, std::int64_t tokens, std::int64_t context) {
  return batch | tokens << 16 | context << 40;
}

TEST(Classify, CallsOfAModelAreStepsWhereTheProgramNamesNone) {
  const Fixture f({{0, 10, "prefill", "pass", 1, sized(2, 24, 24)},
                   {1, 9, "layers.0", "module"},
                   {20, 30, "decode", "pass", 1, sized(2, 1, 25)},
                   {40, 50, "steps", "pass"}});
  ASSERT_EQ(f.classified.steps.size(), 3u);
  EXPECT_EQ(f.step_stage(0), "prefill");
  EXPECT_EQ(f.classified.steps[0].size.tokens, 24);
  EXPECT_EQ(f.step_stage(1), "decode");
  EXPECT_EQ(f.classified.steps[1].size.context, 25);
  EXPECT_EQ(f.step_stage(2), "steps");
  EXPECT_EQ(f.classified.places[1].step, 0);
}

TEST(Classify, TheProgramsOwnStepsWinOverCallsOfAModel) {
  const Fixture f({{0, 10, "decode", "step", 1, sized(4, 1, 9)},  // declared
                   {1, 9, "decode", "pass", 1, sized(2, 1, 25)},
                   {20, 30, "forward", ""},  // by words, of unknown size
                   {21, 29, "forward", "pass", 1, sized(8, 64, 64)},
                   {40, 60, "warm-up", "stage"},
                   {41, 49, "decode", "pass"},
                   {50, 59, "decode", "pass"},
                   {70, 90, "decode", "stage", 1, sized(1, 3, 12)},  // a draft and its check
                   {71, 79, "decode", "pass"},
                   {80, 89, "steps", "pass"}});
  ASSERT_EQ(f.classified.steps.size(), 5u);
  EXPECT_EQ(f.classified.steps[0].range, 0);
  EXPECT_EQ(f.classified.steps[0].size.batch, 4);
  EXPECT_EQ(f.classified.steps[1].range, 2);
  EXPECT_EQ(f.classified.steps[1].size.batch, 8);
  EXPECT_EQ(f.step_stage(2), "warm-up");
  EXPECT_EQ(f.classified.steps[3].range, 6);
  EXPECT_EQ(f.classified.steps[4].range, 7);
}

TEST(Classify, CallsOfAModelInsideStagesThatHoldOthers) {
  const Fixture f({{0, 50, "Train step 1", ""},
                   {1, 9, "forward", "pass"},
                   {10, 29, "backward", "pass"},
                   {30, 40, "optimizer", "pass"},
                   {60, 90, "generate", ""},
                   {61, 69, "prefill", "pass"},
                   {70, 79, "decode", "pass"},
                   {100, 150, "steps", "pass"},  // a wrapper that holds the program's own steps
                   {101, 109, "decode", "step"},
                   {110, 119, "decode", "step"}});
  std::vector<std::string_view> stages;
  for (std::size_t i = 0; i < f.classified.steps.size(); ++i) stages.push_back(f.step_stage(i));
  EXPECT_THAT(stages, ElementsAre("forward", "backward", "optimizer", "prefill", "decode", "decode", "decode"));
}

TEST(Classify, CallsOfAModelSetAside) {
  Fixture f(
      {{0, 10, "decode", "pass"}, {1, 9, "norm", "module"}, {20, 30, "prefill", "step"}, {21, 29, "norm", "module"}});
  set_calls_aside(f.classified);
  ASSERT_EQ(f.classified.steps.size(), 1u);
  EXPECT_EQ(f.step_stage(0), "prefill");
  EXPECT_EQ(f.classified.places[1].step, kNone);
  EXPECT_EQ(f.stage(1), "");
  EXPECT_EQ(f.module(1), "norm");
  EXPECT_EQ(f.classified.places[3].step, 0);
}

TEST(Adopt, ModulesOfAThreadWithoutStepsBelongToTheStepOfTheirTime) {
  Fixture f({{0, 100, "backward", "pass", 1}, {10, 40, "layers.1", "module", 2}, {120, 130, "layers.1", "module", 2}});
  adopt_ranges(f.ranges, f.classified);
  EXPECT_EQ(f.classified.places[1].step, 0);
  EXPECT_EQ(f.stage(1), "backward");
  EXPECT_EQ(f.classified.places[2].step, kNone);
}

TEST(Classify, UnknownStepNamesTakeTheStageAroundThemOrOther) {
  const Fixture f({{0, 20, "decode", "stage"}, {2, 10, "token 17", "step"}, {30, 40, "token 18", "step"}});
  EXPECT_EQ(f.step_stage(0), "decode");
  EXPECT_EQ(f.step_stage(1), "other");
}

TEST(Classify, AModuleInsideItselfCountsOnce) {
  const Fixture f({{0, 20, "decode", "step"}, {2, 10, "norm", "module"}, {3, 9, "norm", "module"}});
  EXPECT_EQ(f.classified.places[1].kind, RangeKind::kModule);
  EXPECT_EQ(f.classified.places[2].kind, RangeKind::kPlain);
}

TEST(Timelines, InnermostRangeIsHalfOpenAndPerThread) {
  const Ranges ranges = make({{0, 100, "a", ""}, {10, 20, "b", ""}, {20, 30, "c", ""}, {5, 6, "d", "", 2}});
  Timelines timelines(ranges);
  EXPECT_EQ(timelines.innermost(1, -1), kNone);
  EXPECT_EQ(timelines.innermost(1, 0), 0);
  EXPECT_EQ(timelines.innermost(1, 10), 1);
  EXPECT_EQ(timelines.innermost(1, 19), 1);
  EXPECT_EQ(timelines.innermost(1, 20), 2);
  EXPECT_EQ(timelines.innermost(1, 99), 0);
  EXPECT_EQ(timelines.innermost(1, 100), kNone);
  EXPECT_EQ(timelines.innermost(1, 15), 1);  // back in time
  EXPECT_EQ(timelines.innermost(2, 5), 3);
  EXPECT_EQ(timelines.innermost(3, 5), kNone);
}

TEST(Timelines, OverlappingRangesLeaveNoGhost) {
  const Ranges ranges = make({{0, 10, "a", ""}, {5, 15, "b", ""}});
  Timelines timelines(ranges);
  EXPECT_EQ(timelines.innermost(1, 7), 1);
  EXPECT_EQ(timelines.innermost(1, 12), 1);
  EXPECT_EQ(timelines.innermost(1, 15), kNone);  // not back to a, which ended at 10
}

// Random nested and overlapping ranges against the definition: the open range that began last (of equals, the
// shortest).
TEST(Timelines, AgreesWithTheDefinition) {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Spec> specs;
    for (int i = 0; i < 12; ++i) {
      const std::int64_t begin = below(40);
      specs.push_back({begin, begin + below(30), "r", "", 1 + below(2)});
    }
    const Ranges ranges = make(specs);
    Timelines timelines(ranges);
    for (int question = 0; question < 80; ++question) {
      const std::int64_t at = below(80) - 5;
      std::int32_t expected = kNone;
      for (std::size_t i = 0; i < ranges.size(); ++i) {  // sweep order: a later one began later or is shorter
        const bool open = ranges.begin_ns[i] <= at && at < ranges.end_ns[i];
        if (ranges.thread_id[i] == 1 && open) expected = static_cast<std::int32_t>(i);
      }
      ASSERT_EQ(timelines.innermost(1, at), expected) << "round " << round << " at " << at;
    }
  }
}

TEST(FindLastAtMost, EveryQuestionFromEveryCursor) {
  const std::vector<std::int64_t> keys{2, 4, 6, 8, 10, 12, 14};
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::int64_t wanted = 0; wanted < 17; ++wanted) {
      std::size_t cursor = start;
      const std::size_t expected =
          wanted < 2 ? kNotFound : static_cast<std::size_t>(std::min<std::int64_t>(wanted, 14) / 2 - 1);
      EXPECT_EQ(find_last_at_most(keys.data(), keys.size(), wanted, cursor), expected) << wanted << " from " << start;
    }
  }
}

TEST(Attribution, RangeStepStageModuleOperatorAndGemm) {
  Fixture f({{0, 100, "decode", "step"}, {10, 50, "layers.0.mlp.up_proj", "module"}, {20, 30, "copy loop", ""}});
  const GemmOfKernel gemms{{8}, {77}};
  const std::unordered_map<std::int64_t, std::int64_t> processes{{1, 1}, {9, 1}, {7, 2}};
  const ShapeMatches no_matches;
  Attribution attribution(f.ranges, f.classified, gemms, no_matches, processes, f.strings);
  // 7: launched at 25 in the plain range, executed later. 8: a CPU call, by its begin. 9: worker thread of the process.
  // 10: the same moment in another process. 11: after the step.
  const Kernels kernels{.id = {7, 8, 9, 10, 11},
                        .begin_ns = {200, 40, 60, 60, 150},
                        .end_ns = {230, 45, 70, 70, 160},
                        .thread_id = {1, 1, 9, 7, 1},
                        .launch_begin_ns = {25, kNull, kNull, kNull, kNull},
                        .device_id = {1, 1, 1, 1, 1}};
  std::vector<trace::AttributionRow> rows;
  attribution.attribute(kernels, rows);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].range_id, f.ranges.id[2]);
  EXPECT_EQ(f.strings.text(rows[0].module), "layers.0.mlp.up_proj");
  EXPECT_EQ(f.strings.text(rows[0].op), "mlp.up_proj");
  EXPECT_EQ(f.strings.text(rows[0].source), "declared");
  EXPECT_EQ(rows[0].confidence, 1);
  EXPECT_FALSE(rows[0].gemm_id.has_value());
  EXPECT_EQ(rows[1].gemm_id, 77);
  EXPECT_EQ(rows[1].range_id, f.ranges.id[1]);
  EXPECT_EQ(rows[2].step_id, 1);
  EXPECT_EQ(f.strings.text(rows[2].stage), "decode");
  EXPECT_EQ(f.strings.text(rows[2].source), "inferred");
  EXPECT_EQ(rows[2].confidence, kInferredConfidence);
  EXPECT_FALSE(rows[3].step_id.has_value());
  EXPECT_FALSE(rows[4].step_id.has_value());
  EXPECT_EQ(rows[4].source.id, 0u);
  EXPECT_THAT(attribution.range_kernel_ns, ElementsAre(0, 5, 30));
  EXPECT_THAT(attribution.step_kernels, ElementsAre(3));
  EXPECT_THAT(attribution.step_kernel_ns, ElementsAre(30 + 5 + 10));
}

TEST(Attribution, TheFirstKernelOfABlasCallStandsForItNotItsMemset) {
  Fixture f({{0, 50, "warm-up", "step"}});
  const GemmOfKernel gemms;
  const std::unordered_map<std::int64_t, std::int64_t> processes{{1, 1}};
  const ShapeMatches no_matches;
  Attribution attribution(f.ranges, f.classified, gemms, no_matches, processes, f.strings);
  GraphNodes nodes{.id = {5, 6, 8},
                   .graph = {7, 7, 7},
                   .captured_node = {1, 2, 3},
                   .captured_ns = {30, 31, 32},
                   .thread_id = {1, 1, 1}};
  nodes.gemm_id = {77, 77, 77};
  nodes.kind = {NodeKind::kCopy, NodeKind::kKernel, NodeKind::kKernel};
  const std::vector<trace::NodePlaceRow> places = attribution.place_nodes(nodes);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_FALSE(places[0].gemm_call);
  EXPECT_TRUE(places[1].gemm_call);
  EXPECT_FALSE(places[2].gemm_call);
}

// Captured at 30 in a warm-up, in a module; replayed at 110 by the decode step, node by node, and at 210 as one
// interval of 100 ns, of which the node has 0 to 0.6 and another, of the same BLAS call, the rest.
TEST(Attribution, AKernelOfAGraphHasItsLaunchsStepAndItsNodesModule) {
  Fixture f({{0, 50, "warm-up", "step"},
             {20, 40, "layers.0.mlp.up_proj", "module"},
             {100, 150, "decode", "step"},
             {200, 250, "decode", "step"}});
  const GemmOfKernel gemms;
  const std::unordered_map<std::int64_t, std::int64_t> processes{{1, 1}};
  const ShapeMatches no_matches;
  Attribution attribution(f.ranges, f.classified, gemms, no_matches, processes, f.strings);
  GraphNodes nodes{
      .id = {5, 6}, .graph = {7, 7}, .captured_node = {1, 2}, .captured_ns = {30, 35}, .thread_id = {1, 1}};
  nodes.gemm_id = {77, 77};
  nodes.kind = {NodeKind::kKernel, NodeKind::kKernel};
  const std::vector<trace::NodePlaceRow> places = attribution.place_nodes(nodes);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].range_id, f.ranges.id[1]);
  EXPECT_TRUE(places[0].gemm_call);
  EXPECT_FALSE(places[1].gemm_call);  // the call counts once

  Kernels kernels{
      .id = {9}, .begin_ns = {130}, .end_ns = {180}, .thread_id = {1}, .launch_begin_ns = {110}, .device_id = {2}};
  kernels.gemm_id = {kNull};
  kernels.graph_node_id = {5};
  std::vector<trace::AttributionRow> rows;
  attribution.attribute(kernels, rows);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(f.strings.text(rows[0].stage), "decode");
  EXPECT_EQ(rows[0].step_id, 2);
  EXPECT_EQ(f.strings.text(rows[0].op), "mlp.up_proj");
  EXPECT_EQ(f.strings.text(rows[0].module_source), "range");
  EXPECT_EQ(rows[0].gemm_id, 77);
  EXPECT_TRUE(rows[0].gemm_call);

  GraphLaunches launches{.id = {3, 4}, .begin_ns = {130, 230}, .end_ns = {180, 330}, .thread_id = {1, 1}};
  launches.launch_begin_ns = {110, 210};
  launches.device_id = {2, 2};
  launches.graph = {7, 7};
  launches.nodes_recorded = {1, 0};
  SharesOfGraphs shares;
  shares[7] = {.nodes = {{5, 0, 0.6, 3}, {6, 0.6, 1, 3}}, .kernels = 2, .kernel_time = 1, .busy = 1};
  std::vector<trace::LaunchPlaceRow> of_launches;
  attribution.place_launches(launches, shares, of_launches);
  ASSERT_EQ(of_launches.size(), 2u);
  EXPECT_EQ(of_launches[1].step_id, 3);
  EXPECT_THAT(attribution.step_kernels, ElementsAre(0, 1, 2));
  EXPECT_THAT(attribution.step_kernel_ns, ElementsAre(0, 50, 100));
}

TEST(StepWindows, TheLatestBegunStepThatStillRuns) {
  std::vector<Step> steps(3);
  steps[0] = {.begin_ns = 0, .end_ns = 100, .process_id = 1};
  steps[1] = {.begin_ns = 10, .end_ns = 20, .process_id = 1};
  steps[2] = {.begin_ns = 200, .end_ns = 210, .process_id = 1};
  const StepWindows windows(steps);
  EXPECT_EQ(windows.containing(1, 15), 1);
  EXPECT_EQ(windows.containing(1, 20), 0);
  EXPECT_EQ(windows.containing(1, 150), kNone);
  EXPECT_EQ(windows.containing(2, 15), kNone);
}

TEST(Adopt, InferredStepsTakeInTheModulesOfTheirPass) {
  std::vector<Spec> specs;
  for (const std::int64_t at : {0, 100}) {
    specs.push_back({at + 1, at + 9, "embed_tokens", "module"});
    specs.push_back({at + 10, at + 60, "layers.0", "module"});
    specs.push_back({at + 20, at + 30, "layers.0.q_proj", "module"});
    specs.push_back({at + 61, at + 80, "lm_head", "module"});
  }
  Fixture f(specs);
  ASSERT_TRUE(f.classified.steps.empty());
  const trace::Name decode = f.strings.intern("decode");
  std::vector<Step> steps{{.begin_ns = 22, .end_ns = 122, .thread_id = 1, .process_id = 1, .stage = decode},
                          {.begin_ns = 122, .end_ns = 180, .thread_id = 1, .process_id = 1, .stage = decode}};
  add_steps(steps, f.classified);  // told from products: the first is in q_proj
  adopt_ranges(f.ranges, f.classified);
  EXPECT_EQ(f.classified.steps[0].begin_ns, 1);
  EXPECT_EQ(f.classified.steps[0].end_ns, 101);
  EXPECT_EQ(f.classified.steps[1].begin_ns, 101);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(f.classified.places[i].step, i < 4 ? 0 : 1) << i;
    EXPECT_EQ(f.stage(i), "decode");
  }
}

TEST(RangeTimes, SelfIsTotalLessDirectChildren) {
  Fixture f({{0, 100, "decode", "step"},
             {10, 60, "layers.0.mlp", "module"},
             {20, 30, "up_proj", "module"},
             {40, 50, "x", ""}});
  std::vector<trace::RangeTimeRow> rows;
  for_each_range_time(f.ranges, f.classified, {0, 0, 7, 0}, f.strings, [&](const auto& row) { rows.push_back(row); });
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].self_ns, 50);  // 100 - 50
  EXPECT_EQ(rows[1].self_ns, 30);  // 50 - 10 - 10
  EXPECT_EQ(rows[2].self_ns, 10);
  EXPECT_EQ(rows[2].kernel_ns, 7);
  EXPECT_EQ(f.strings.text(rows[2].op), "mlp.up_proj");
  EXPECT_EQ(f.strings.text(rows[1].kind), "module");
  EXPECT_EQ(rows[3].kind.id, 0u);  // plain, but in the module
  EXPECT_EQ(f.strings.text(rows[3].module), "layers.0.mlp");
}

TEST(RangeTimes, OverlappingChildrenCountOnce) {
  Fixture f({{0, 100, "outer", ""}, {10, 50, "a", ""}, {40, 60, "b", ""}});
  std::vector<std::int64_t> self;
  for_each_range_time(f.ranges, f.classified, {0, 0, 0}, f.strings,
                      [&](const auto& row) { self.push_back(row.self_ns); });
  EXPECT_THAT(self, ElementsAre(50, 40, 20));  // 100 less 10-60
}

TEST(Busy, UnionPerDeviceClippedToWindows) {
  BusyTime busy({BusyLane({{0, 50}, {60, 100}}), BusyLane({{0, 1000}})});
  busy.add(1, {10, 20});
  busy.add(1, {15, 30});  // overlaps: 10-30
  busy.add(2, {10, 20});  // another device: counted apart
  busy.add(1, {45, 70});  // 5 in the first window, 10 in the second
  busy.add(1, {90, 200});
  const std::vector<BusyLane> lanes = busy.finish();
  EXPECT_THAT(lanes[0].busy_ns(), ElementsAre(20 + 5 + 10, 10 + 10));
  EXPECT_THAT(lanes[1].busy_ns(), ElementsAre(20 + 25 + 110 + 10));
}

TEST(Busy, UnionOfWindows) {
  const std::vector<Window> merged = union_of({{10, 20}, {0, 5}, {15, 30}, {30, 31}});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[1].begin_ns, 10);
  EXPECT_EQ(merged[1].end_ns, 31);
}

}  // namespace
}  // namespace llmprof::analyze

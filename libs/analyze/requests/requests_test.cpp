#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "analyze/requests/members.h"
#include "analyze/requests/shares.h"
#include "model/config.h"

namespace llmprof::analyze {
namespace {

using ::testing::ElementsAre;
using trace::StepMemberRow;

TEST(Divided, AddsUpToTheNanosecond) {
  EXPECT_THAT(divided(10, std::vector<double>{1, 1, 1}, 3), ElementsAre(3, 4, 3));
  EXPECT_THAT(divided(10, std::vector<double>{1, 0, 3}, 4), ElementsAre(3, 0, 7));
  EXPECT_THAT(divided(10, std::vector<double>{1, 1}, 4), ElementsAre(3, 2));  // half of it is nobody's
  EXPECT_THAT(divided(10, std::vector<double>{}, 0), ElementsAre());
  EXPECT_THAT(divided(10, std::vector<double>{0, 0}, 0), ElementsAre(0, 0));
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> weights(1 + random() % 300);
    for (double& weight : weights) weight = static_cast<double>(random() % 5000);
    const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (whole == 0) continue;
    const std::int64_t total = static_cast<std::int64_t>(random()) * 1000 + 7;
    const std::vector<std::int64_t> parts = divided(total, weights, whole);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), total);
    for (std::size_t k = 0; k < parts.size(); ++k)
      EXPECT_NEAR(static_cast<double>(parts[k]), static_cast<double>(total) * weights[k] / whole, 1.01);
  }
}

class RequestShares : public ::testing::Test {
 protected:
  trace::Strings strings;
  trace::Name name(std::string_view text) { return strings.intern(text); }
  trace::StepTimeRow row(std::string_view owner, std::string_view op, std::int64_t ns) {
    return {.step_id = 1, .owner = name(owner), .op = op.empty() ? trace::Name{} : name(op), .time_ns = ns};
  }
};

// One prompt of 96 new tokens behind 4 found ones, two requests that decode at 50 and 150 tokens, padded to 112 rows.
StepMembers mixed_step() {
  return {.members = {{.request_id = 11, .tokens = 96, .context = 100, .prefill = true, .sampled = true},
                      {.request_id = 12, .tokens = 1, .context = 50, .sampled = true},
                      {.request_id = 13, .tokens = 1, .context = 150, .sampled = false}},
          .padded = 112};
}

TEST_F(RequestShares, OfEveryKindOfWorkFollowItsRule) {
  const std::vector<trace::StepTimeRow> rows = {
      row("kernel", "mlp.up_proj", 1120),   // by tokens: 10 ns a row
      row("kernel", "self_attn.core", 516), // 96 x 100 - 96 x 95 / 2 = 5040 pairs, 50, 150: 5240
      row("kernel", "lm_head", 100),        // two get a token
      row("copy", "", 112),
      row("gap", "", 30),
      row("queued", "", 7),
      row("other_kernel", "", 5),
      row("kernel", "", 1),  // of no known operator: by tokens
  };
  DivisionOfOps ops(nullptr, strings);
  const std::vector<StepMemberRow> parts = shares_of(1, mixed_step(), rows, ops, {}, strings);
  ASSERT_EQ(parts.size(), 4u);
  const auto column = [&](std::int64_t StepMemberRow::*member) {
    std::vector<std::int64_t> out;
    for (const StepMemberRow& part : parts) out.push_back(part.*member);
    return out;
  };
  EXPECT_THAT(column(&StepMemberRow::products_ns), ElementsAre(961, 10, 10, 140));
  EXPECT_THAT(column(&StepMemberRow::attention_ns), ElementsAre(496, 5, 15, 0));
  EXPECT_THAT(column(&StepMemberRow::head_ns), ElementsAre(50, 50, 0, 0));
  EXPECT_THAT(column(&StepMemberRow::copies_ns), ElementsAre(96, 1, 1, 14));
  EXPECT_THAT(column(&StepMemberRow::idle_ns), ElementsAre(12, 13, 12, 0));
  EXPECT_THAT(column(&StepMemberRow::other_ns), ElementsAre(0, 0, 0, 5));
  EXPECT_THAT(column(&StepMemberRow::weights_ns), ElementsAre(0, 0, 0, 0));
  const std::vector<std::int64_t> times = column(&StepMemberRow::time_ns);
  EXPECT_EQ(std::accumulate(times.begin(), times.end(), std::int64_t{0}), 1120 + 516 + 100 + 112 + 30 + 7 + 5 + 1);
  EXPECT_FALSE(parts.back().request_id);
  EXPECT_EQ(parts.back().tokens, 14);
}

TEST_F(RequestShares, ReadingTheWeightsIsSharedEqually) {
  const std::vector<trace::StepTimeRow> rows = {row("kernel", "mlp.up_proj", 500), row("kernel", "mlp.up_proj", 700)};
  DivisionOfOps ops(nullptr, strings);
  const WeightTimes weights = {{name("mlp.up_proj").id, 600.0}};
  const std::vector<StepMemberRow> parts = shares_of(1, mixed_step(), rows, ops, weights, strings);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(static_cast<double>(parts[i].weights_ns), 200, 1);
  EXPECT_EQ(parts[0].weights_ns + parts[1].weights_ns + parts[2].weights_ns, 600);  // of both rows together
  EXPECT_NEAR(static_cast<double>(parts[0].products_ns), 600.0 * 96 / 112, 2);
  EXPECT_NEAR(static_cast<double>(parts[3].products_ns), 600.0 * 14 / 112, 2);
}

TEST_F(RequestShares, AStepThatNobodyIsSampledInLeavesLogitsToTheEngine) {
  StepMembers step = mixed_step();
  for (Member& member : step.members) member.sampled = false;
  DivisionOfOps ops(nullptr, strings);
  const std::vector<trace::StepTimeRow> rows = {row("kernel", "lm_head", 100)};
  const std::vector<StepMemberRow> parts = shares_of(1, step, rows, ops, {}, strings);
  EXPECT_EQ(parts.back().head_ns, 100);
}

// FLOPs of members alone add up to those of the pass, and so do bytes.
TEST_F(RequestShares, CostsOfMembersAddUpToThePass) {
  const Result<model::Config> config = model::parse_config(
      R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
          "intermediate_size": 1408, "vocab_size": 32000, "torch_dtype": "bfloat16"})",
      "test");
  ASSERT_TRUE(config) << config.error().message;
  const model::Graph graph(*config);
  std::vector<StepMemberRow> rows = {
      {.request_id = 11, .tokens = 96, .context = 100, .prefill = true, .sampled = true},
      {.request_id = 12, .tokens = 1, .context = 50, .sampled = true},
      {.request_id = 13, .tokens = 1, .context = 150, .sampled = true},
      {.tokens = 14}};
  cost_members(graph, 0, rows);
  const model::PassCosts pass =
      model::total(graph, model::mixed({{1, 96, 100, 1}, {1, 1, 50, 1}, {1, 1, 150, 1}}), {});
  EXPECT_NEAR(*rows[0].flops + *rows[1].flops + *rows[2].flops, pass.flops, 1e-9 * pass.flops);
  EXPECT_NEAR(*rows[0].bytes + *rows[1].bytes + *rows[2].bytes, pass.bytes(), 1e-9 * pass.bytes());
  EXPECT_FALSE(rows[3].flops);
}

TEST(Stalls, AreTimeBeyondStepsWithoutPrompts) {
  // Steps 1 to 3 decode two requests in 100, 110, 120; step 4 has a prompt beside them and takes 400; step 5 decodes one.
  std::vector<StepMemberRow> rows;
  for (std::int64_t step = 1; step <= 4; ++step) {
    for (const std::int64_t request : {1, 2}) rows.push_back({.step_id = step, .request_id = request, .tokens = 1, .context = 9});
  }
  rows.push_back({.step_id = 4, .request_id = 3, .tokens = 10, .context = 10, .prefill = true});
  rows.push_back({.step_id = 4, .request_id = 4, .tokens = 90, .context = 90, .prefill = true});
  rows.push_back({.step_id = 4});
  add_stalls({100, 110, 120, 400}, std::vector<bool>(4, false), rows);
  for (const StepMemberRow& row : rows) {
    const bool stalled = row.step_id == 4 && row.request_id && !row.prefill;
    EXPECT_EQ(row.stalled_ns, stalled ? trace::OptionalInt(290) : row.request_id && !row.prefill ? trace::OptionalInt(0) : std::nullopt);
    EXPECT_EQ(row.stalled_by, stalled ? trace::OptionalId(4) : std::nullopt);
  }
}

TEST(Stalls, AreUnknownWhereEveryStepHasPrompts) {
  std::vector<StepMemberRow> rows = {{.step_id = 1, .request_id = 1, .tokens = 1, .context = 9},
                                     {.step_id = 1, .request_id = 2, .tokens = 8, .context = 8, .prefill = true}};
  add_stalls({100}, {false}, rows);
  EXPECT_EQ(rows[0].stalled_ns, std::nullopt);
}

}  // namespace
}  // namespace llmprof::analyze

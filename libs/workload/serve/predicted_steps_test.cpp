// The engine that serves held against the one that predict simulates: the same arrivals, with the times that the live
// steps took, give the same steps. What is held are batches, launches, blocks, requests running and waiting, preemptions,
// cached tokens, and the time of every first and last token.

#include <gtest/gtest.h>

#include "serving/simulate.h"
#include "workload/serve/testing/served.h"

namespace llmprof::serving {
bool operator==(const Chunk& a, const Chunk& b);
bool operator==(const Chunk& a, const Chunk& b) { return a.tokens == b.tokens && a.computed == b.computed; }
}  // namespace llmprof::serving

namespace llmprof::workload {
namespace {

using serving::EngineRules;

// Times from the end of the step before. The host's part is what lies between: the engine takes requests at the end of a
// step in both.
class MeasuredTimes final : public serving::StepCost {
 public:
  explicit MeasuredTimes(const Served& served) {
    std::int64_t before = served.steps.front().scheduled_ns;
    for (const auto& step : served.steps) {
      times_.push_back({.device_ns = static_cast<double>(step.end_ns - step.begin_ns),
                        .host_ns = static_cast<double>(step.begin_ns - before)});
      before = step.end_ns;
    }
  }
  serving::StepTime of(const serving::Batch& /*batch*/) override {
    return next_ < times_.size() ? times_[next_++] : serving::StepTime{.device_ns = 1, .host_ns = 1};
  }

 private:
  std::vector<serving::StepTime> times_;
  std::size_t next_ = 0;
};

// What the simulation is told: lengths, priorities, the content of full blocks of the prompts, and when requests came.
serving::Workload workload_of(const std::vector<Arrival>& script, const Served& served, const EngineRules& rules) {
  serving::Workload workload;
  workload.content_tokens = rules.block_size;
  std::map<std::vector<Token>, std::uint64_t> contents;  // equal beginnings have equal numbers
  const std::int64_t start = served.steps.front().scheduled_ns;
  for (const Arrival& each : script) {
    const std::vector<Token>& prompt = each.request.prompt;
    serving::Request& request = workload.requests.emplace_back();
    request.prompt_tokens = static_cast<std::int32_t>(prompt.size());
    request.output_tokens = each.request.most_tokens;
    request.priority = each.request.priority;
    request.id_begin = workload.content_ids.size();
    for (auto end = prompt.begin(); prompt.end() - end >= rules.block_size;) {
      end += static_cast<std::ptrdiff_t>(rules.block_size);
      workload.content_ids.push_back(contents.try_emplace({prompt.begin(), end}, contents.size()).first->second);
      ++request.id_count;
    }
    request.arrival_ns = each.step == 0 ? 0 : static_cast<double>(served.steps[each.step - 1].end_ns - start);
  }
  return workload;
}

void expect_same(const EngineRules& rules, const std::vector<Arrival>& script, const Served& live, std::uint64_t seed) {
  const serving::Workload workload = workload_of(script, live, rules);
  MeasuredTimes times(live);
  std::vector<serving::Batch> batches;
  serving::SimulateOptions options;
  options.on_step = [&](const serving::LaunchedStep& step) { batches.push_back(step.batch); };
  const Result<serving::Simulation> simulated = serving::simulate(rules, workload, times, options);
  ASSERT_TRUE(simulated) << simulated.error().message;
  ASSERT_EQ(batches.size(), live.steps.size()) << "seed " << seed;
  const auto start = static_cast<double>(live.steps.front().scheduled_ns);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const serving::Step& step = live.steps[i].step;
    const serving::StepRecord& record = simulated->steps[i];
    ASSERT_EQ(batches[i].chunks, step.batch.chunks) << "seed " << seed << " step " << i;
    ASSERT_EQ(batches[i].contexts, step.batch.contexts) << "seed " << seed << " step " << i;
    ASSERT_EQ(batches[i].sampled, step.batch.sampled);
    ASSERT_EQ(batches[i].padded_tokens, step.batch.padded_tokens);
    ASSERT_EQ(batches[i].new_requests, step.batch.new_requests);
    ASSERT_EQ(record.preempted, step.preempted) << "seed " << seed << " step " << i;
    ASSERT_EQ(record.blocks_used, step.blocks_used);
    ASSERT_EQ(record.running, step.running);
    ASSERT_EQ(record.waiting, step.waiting);
    ASSERT_EQ(record.begin_ns + start, static_cast<double>(live.steps[i].begin_ns));
  }
  for (std::size_t i = 0; i < script.size(); ++i) {
    const auto& got = live.requests.at(script[i].request.ticket);
    const serving::RequestResult& result = simulated->requests[i];
    EXPECT_EQ(result.cached_tokens, got.cached) << "seed " << seed << " request " << i;
    EXPECT_EQ(result.first_token_ns + start, static_cast<double>(live.steps[got.steps.front()].end_ns));
    EXPECT_EQ(result.last_token_ns + start, static_cast<double>(live.steps[got.steps.back()].end_ns));
  }
}

struct Totals {
  std::int64_t preempted = 0, cached = 0, chunks = 0;
};

void hold(std::uint64_t seed, const EngineRules& rules, std::size_t gap, Totals& totals) {
  std::vector<Arrival> script = random_script(seed, 1 << 20, 24, gap);
  FakeRunner runner(rules);
  Served live;
  LiveEngine engine(rules, runner, live);
  ASSERT_TRUE(run_script(engine, live, script));
  expect_same(rules, script, live, seed);
  totals.preempted += live.preempted();
  for (const auto& [ticket, got] : live.requests) totals.cached += got.cached;
  for (const auto& step : live.steps) totals.chunks += std::ssize(step.step.batch.chunks);
}

// Rules that differ with the seed: a small cache (preemptions), chunks, both policies.
EngineRules rules_of(std::uint64_t seed) {
  EngineRules rules = small_engine(12 + static_cast<std::int64_t>(seed % 4) * 5, seed % 2 == 0 ? 9 : 48);
  if (seed % 3 == 1) rules.policy = serving::Policy::kPriority;
  if (seed % 5 == 2) rules.long_prefill_token_threshold = 6;
  if (seed % 5 == 3) rules.scheduler_reserve_full_isl = false;
  if (seed % 7 == 4) rules.enable_prefix_caching = false;
  if (seed % 7 == 5) rules.watermark = 0.1;
  return rules;
}

TEST(PredictedSteps, AreTheLiveOnesWhereAllComeAtOnce) {
  Totals totals;
  for (std::uint64_t seed = 0; seed < 40; ++seed) hold(seed, rules_of(seed), 0, totals);
  EXPECT_GT(totals.preempted, 40);
  EXPECT_GT(totals.cached, 400);
  EXPECT_GT(totals.chunks, 1000);
}

TEST(PredictedSteps, AreTheLiveOnesWhereRequestsComeStepByStep) {
  Totals totals;
  for (std::uint64_t seed = 100; seed < 140; ++seed) hold(seed, rules_of(seed), 1, totals);
  EXPECT_GT(totals.preempted, 20);
  EXPECT_GT(totals.cached, 400);
}

// The test can fail: another rule is another sequence of steps.
TEST(PredictedSteps, OfOtherRulesAreOthers) {
  const EngineRules rules = small_engine(14, 9);
  std::vector<Arrival> script = random_script(3, 1 << 20, 24, 0);
  FakeRunner runner(rules);
  Served live;
  LiveEngine engine(rules, runner, live);
  ASSERT_TRUE(run_script(engine, live, script));
  EngineRules other = rules;
  other.num_gpu_blocks += 4;
  MeasuredTimes times(live);
  const auto simulated = serving::simulate(other, workload_of(script, live, rules), times, {});
  ASSERT_TRUE(simulated);
  EXPECT_NE(simulated->step_count, std::ssize(live.steps));
}

}  // namespace
}  // namespace llmprof::workload

// The engine without a model: a fake one reads the tokens from the blocks that the scheduler gave out, so that every
// mistake in rows, positions, blocks or prefixes shows in what a request gets.

#include "workload/serve/live_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "workload/serve/testing/served.h"

namespace llmprof::workload {
namespace {

using serving::EngineRules;
using testing::ElementsAre;

struct Bench {
  explicit Bench(const EngineRules& with) : rules(with), runner(with), engine(with, runner, served) {}
  void add(std::uint64_t ticket, std::size_t prompt, std::int32_t outputs, std::int32_t priority = 0) {
    GenerationRequest request = request_for(ticket, prompt_of(ticket, prompt), outputs);
    request.priority = priority;
    engine.add(std::move(request));
  }
  static std::vector<Token> prompt_of(std::uint64_t ticket, std::size_t count) {
    std::vector<Token> prompt(count);
    std::iota(prompt.begin(), prompt.end(), static_cast<Token>(1000 * ticket));
    return prompt;
  }
  bool step() {
    const Result<bool> worked = engine.step();
    EXPECT_TRUE(worked);
    return worked && *worked;
  }
  void run() {
    while (step()) continue;
  }
  // Tokens of the members of the last step.
  std::vector<std::int32_t> tokens() const {
    std::vector<std::int32_t> counts;
    for (const auto& member : served.steps.back().members) counts.push_back(member.tokens);
    return counts;
  }

  EngineRules rules;
  FakeRunner runner;
  Served served;
  LiveEngine engine;
};

TEST(LiveEngine, AdmitsWhatFitsAndChunksWhatDoesNot) {
  Bench bench(small_engine(32, 8));
  bench.add(1, 18, 2);
  bench.add(2, 3, 2);
  bench.step();
  EXPECT_THAT(bench.tokens(), ElementsAre(8));
  EXPECT_FALSE(bench.served.steps.back().members[0].sampled);
  EXPECT_EQ(bench.served.steps.back().members[0].context, 8);
  EXPECT_EQ(bench.engine.waiting(), 1);
  bench.step();
  bench.step();
  EXPECT_THAT(bench.tokens(), ElementsAre(2, 3));  // the end of the first prompt, and the second beside it
  EXPECT_TRUE(bench.served.steps.back().members[0].sampled);
  EXPECT_THAT(bench.served.steps.back().ids, ElementsAre("r1", "r2"));
  bench.run();
  EXPECT_EQ(bench.served.requests[1].tokens, FakeRunner::alone(Bench::prompt_of(1, 18), 2));
  EXPECT_EQ(bench.served.requests[2].tokens, FakeRunner::alone(Bench::prompt_of(2, 3), 2));
  EXPECT_EQ(bench.served.requests[2].finish, Finish::kLength);
  EXPECT_TRUE(bench.engine.idle());
  EXPECT_EQ(bench.engine.blocks_used(), 0);
}

TEST(LiveEngine, APreemptedRequestComesBackThroughThePrefixCache) {
  Bench bench(small_engine(6));
  bench.add(1, 8, 9);
  bench.add(2, 8, 9);
  bench.run();
  ASSERT_EQ(bench.served.preempted(), 1);
  for (const std::uint64_t ticket : {1, 2})
    EXPECT_EQ(bench.served.requests[ticket].tokens, FakeRunner::alone(Bench::prompt_of(ticket, 8), 9)) << ticket;
  EXPECT_EQ(bench.served.requests[2].cached, 0) << "what it finds again is not a prefix that others left";
  // It had 8 or more tokens; some of their blocks were still there when the first had ended.
  bool again = false;
  for (const auto& step : bench.served.steps) {
    for (std::size_t i = 0; i < step.ids.size(); ++i) {
      const auto& member = step.members[i];
      if (step.ids[i] != "r2" || member.tokens == 1 || member.context <= 8) continue;
      again = true;
      EXPECT_LT(member.tokens, member.context);
    }
  }
  EXPECT_TRUE(again);
}

TEST(LiveEngine, SharesEqualBeginnings) {
  Bench bench(small_engine(32));
  std::vector<Token> prompt = Bench::prompt_of(7, 13);
  bench.engine.add(request_for(1, prompt, 3));
  bench.run();
  bench.engine.add(request_for(2, prompt, 3));
  prompt[5] = 1;  // of the second block
  bench.engine.add(request_for(3, prompt, 3));
  bench.run();
  EXPECT_EQ(bench.served.requests[2].cached, 12);
  EXPECT_EQ(bench.served.requests[3].cached, 4);
  EXPECT_EQ(bench.served.requests[2].tokens, bench.served.requests[1].tokens);
  EXPECT_EQ(bench.served.requests[3].tokens, FakeRunner::alone(prompt, 3));
}

TEST(LiveEngine, OutputsAreAPrefixOfTheNextTurn) {
  Bench bench(small_engine(32));
  std::vector<Token> conversation = Bench::prompt_of(1, 6);
  bench.engine.add(request_for(1, conversation, 7));
  bench.run();
  const std::vector<Token> said = bench.served.requests[1].tokens;
  conversation.insert(conversation.end(), said.begin(), said.end());
  bench.engine.add(request_for(2, conversation, 2));
  bench.run();
  EXPECT_EQ(bench.served.requests[2].cached, 12);  // 6 + 7 tokens, of which the last was never computed
  EXPECT_EQ(bench.served.requests[2].tokens, FakeRunner::alone(conversation, 2));
}

TEST(LiveEngine, WithoutPrefixCachingNothingIsFound) {
  EngineRules rules = small_engine(6);
  rules.enable_prefix_caching = false;
  Bench bench(rules);
  bench.engine.add(request_for(1, Bench::prompt_of(7, 8), 9));
  bench.engine.add(request_for(2, Bench::prompt_of(7, 8), 9));
  bench.run();
  EXPECT_GT(bench.served.preempted(), 0);
  EXPECT_EQ(bench.served.requests[2].cached, 0);
  EXPECT_EQ(bench.served.requests[2].tokens, bench.served.requests[1].tokens);
}

TEST(LiveEngine, AbortedRequestsGiveTheirBlocksBack) {
  EngineRules rules = small_engine(16);
  rules.max_num_seqs = 2;
  Bench bench(rules);
  for (const std::uint64_t ticket : {1, 2, 3}) bench.add(ticket, 5, 6);
  bench.step();
  EXPECT_EQ(bench.engine.running(), 2);
  bench.engine.abort(1);   // runs
  bench.engine.abort(3);   // waits
  bench.engine.abort(3);   // has ended
  bench.engine.abort(99);  // never was
  EXPECT_EQ(bench.engine.running() + bench.engine.waiting(), 1);
  bench.add(4, 5, 3);  // takes the place of one that ended
  bench.run();
  EXPECT_EQ(bench.engine.blocks_used(), 0);
  EXPECT_EQ(bench.served.requests[1].tokens.size(), 1U);
  EXPECT_FALSE(bench.served.requests[1].finish) << "whoever aborted knows";
  EXPECT_EQ(bench.served.requests[2].tokens, FakeRunner::alone(Bench::prompt_of(2, 5), 6));
  EXPECT_EQ(bench.served.requests[4].tokens, FakeRunner::alone(Bench::prompt_of(4, 5), 3));
  std::vector<Finish> ends;
  for (const Ended& ended : bench.served.all_ended) ends.push_back(ended.finish);
  EXPECT_THAT(ends, ElementsAre(Finish::kAborted, Finish::kAborted, Finish::kLength, Finish::kLength));
}

TEST(LiveEngine, AbortAllTellsEverybody) {
  Bench bench(small_engine(16));
  bench.add(1, 5, 6);
  bench.step();
  bench.add(2, 5, 6);
  bench.engine.abort_all();
  EXPECT_TRUE(bench.engine.idle());
  EXPECT_EQ(bench.served.requests[1].finish, Finish::kAborted);
  EXPECT_EQ(bench.served.requests[2].finish, Finish::kAborted);
  EXPECT_FALSE(bench.step());
  EXPECT_EQ(bench.engine.blocks_used(), 0);
}

TEST(LiveEngine, AStopTokenEndsARequest) {
  Bench bench(small_engine(32));
  const std::vector<Token> expected = FakeRunner::alone(Bench::prompt_of(1, 5), 6);
  for (const std::size_t last : {0, 3, 5}) {
    GenerationRequest request = request_for(last + 1, Bench::prompt_of(1, 5), 6);
    request.stop = {-1, expected[last]};
    bench.engine.add(std::move(request));
    bench.run();
    const auto& got = bench.served.requests[last + 1];
    EXPECT_EQ(got.tokens, std::vector<Token>(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(last) + 1));
    EXPECT_EQ(got.finish, Finish::kStop);
    EXPECT_EQ(bench.engine.blocks_used(), 0);
    EXPECT_TRUE(bench.engine.idle());
  }
}

TEST(LiveEngine, TheMoreUrgentComesFirstWherePolicyIsPriority) {
  EngineRules rules = small_engine(32);
  rules.policy = serving::Policy::kPriority;
  rules.max_num_seqs = 1;
  Bench bench(rules);
  bench.add(1, 4, 1, 5);
  bench.add(2, 4, 1, 0);
  bench.add(3, 4, 1, 5);
  bench.run();
  std::vector<std::string> order;
  for (const auto& step : bench.served.steps) order.push_back(step.ids.at(0));
  EXPECT_THAT(order, ElementsAre("r2", "r1", "r3"));
}

TEST(LiveEngine, RefusesWhatCouldNeverBeServed) {
  const Bench bench(small_engine(4, 64, 24));
  EXPECT_EQ(bench.engine.check(10, 7), serving::Rejection::kNone);  // the last token is not computed
  EXPECT_EQ(bench.engine.check(10, 8), serving::Rejection::kBlocks);
  EXPECT_EQ(bench.engine.check(20, 5), serving::Rejection::kModelLength);
}

TEST(LiveEngine, TimesOfARequestAreInOrder) {
  Bench bench(small_engine(32));
  bench.add(1, 9, 4);
  bench.run();
  ASSERT_EQ(bench.served.all_ended.size(), 1U);
  const Ended& ended = bench.served.all_ended.front();
  EXPECT_EQ(ended.prompt_tokens, 9);
  EXPECT_EQ(ended.output_tokens, 4);
  const RequestTimes& t = ended.times;
  EXPECT_LE(t.arrival_ns, t.queued_ns);
  EXPECT_LE(t.queued_ns, t.scheduled_ns);
  EXPECT_LE(t.scheduled_ns, t.first_token_ns);
  EXPECT_EQ(t.first_token_ns, bench.served.steps.front().end_ns);
  EXPECT_EQ(t.last_token_ns, bench.served.steps.back().end_ns);
}

TEST(LiveEngine, AFailureOfTheModelIsTold) {
  Bench bench(small_engine(32));
  bench.add(1, 9, 4);
  bench.runner.fails = true;
  EXPECT_FALSE(bench.engine.step());
  bench.engine.fail_all();
  ASSERT_EQ(bench.served.all_ended.size(), 1U);
  EXPECT_EQ(bench.served.all_ended[0].finish, Finish::kFailed);
  EXPECT_TRUE(bench.engine.idle());
}

// Small caches, chunks and shared beginnings, all at once and one after the other: every request gets what it would get
// alone, and nothing is left behind.
TEST(LiveEngine, EveryRequestGetsWhatItWouldGetAlone) {
  std::int64_t preempted = 0, found = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    EngineRules rules = small_engine(12 + static_cast<std::int64_t>(seed % 3) * 8, seed % 2 == 0 ? 9 : 40);
    if (seed % 5 == 1) rules.policy = serving::Policy::kPriority;
    if (seed % 5 == 2) rules.enable_prefix_caching = false;
    if (seed % 5 == 3) rules.long_prefill_token_threshold = 5;
    if (seed % 7 == 4) rules.scheduler_reserve_full_isl = false;
    Bench bench(rules);
    std::vector<Arrival> script = random_script(seed, 1 << 20, 25, seed % 4);
    ASSERT_TRUE(run_script(bench.engine, bench.served, script)) << seed;
    for (const Arrival& each : script) {
      const auto& got = bench.served.requests[each.request.ticket];
      EXPECT_EQ(got.tokens, FakeRunner::alone(each.request.prompt, each.request.most_tokens)) << seed;
      found += got.cached;
    }
    EXPECT_EQ(bench.engine.blocks_used(), 0);
    EXPECT_EQ(bench.engine.running() + bench.engine.waiting(), 0);
    preempted += bench.served.preempted();
  }
  EXPECT_GT(preempted, 50);
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace llmprof::workload

// What requests used and cost, what their client saw, what TTFT is made of and the run simulated: numbers worked out by
// hand.

#include "analyze/requests/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/simulate.h"

namespace llmprof::analyze {
namespace {

using ::testing::HasSubstr;

RequestFigures request(std::int64_t id, std::int64_t arrival, std::int64_t scheduled, std::int64_t first,
                       std::int64_t end, std::int64_t prompt) {
  RequestFigures out{
      .id = id, .name = std::string(1, static_cast<char>('@' + id)), .source = "server", .status = "finished"};
  out.arrival_ns = arrival, out.process_id = 1, out.prompt_tokens = prompt, out.output_tokens = 2;
  out.scheduled_ns = scheduled, out.first_token_ns = first, out.last_token_ns = end, out.end_ns = end;
  out.queue_ns = scheduled - arrival, out.ttft_ns = first - arrival;
  out.steps = 1;
  return out;
}

ServedStep step(std::int64_t id, std::int64_t begin, std::int64_t end, std::int64_t tokens, std::int64_t prompts,
                std::int64_t members) {
  return {.id = id,
          .process_id = 1,
          .begin_ns = begin,
          .end_ns = end,
          .tokens = tokens,
          .prompt_tokens = prompts,
          .members = members,
          .blocks_used = 10,
          .blocks = 99};
}

// 64 tokens and two requests at once. A's prompt of 128 fills two steps; B comes in the first of them; C finds both
// places taken in step 3, and in step 4 one free block of the 4 that its 63 tokens beside the decode need.
struct ThreeRequests : ::testing::Test {
  ThreeRequests() {
    served.rules = *parse_engine("vllm@0.11 max_num_batched_tokens=64 max_num_seqs=2 num_gpu_blocks=100");
    served.steps = {step(1, 100, 200, 64, 64, 1), step(2, 200, 300, 64, 64, 1), step(3, 310, 350, 9, 8, 2),
                    step(4, 360, 395, 1, 0, 1), step(5, 405, 455, 63, 63, 1)};
    served.steps[3].blocks_used = 98;
    served.prompts = {{1, 1, 64, 100}, {2, 1, 64, 100}, {3, 2, 8, 30}, {5, 3, 63, 50}};
    all.source = "server";
    all.all = {request(1, 90, 95, 305, 395, 128), request(2, 150, 305, 355, 360, 8),
               request(3, 300, 400, 460, 470, 100)};
    all.count = 3;
  }
  std::int64_t part(std::string_view name, bool slow) const {
    for (const TtftPart& each : all.slow->parts) {
      if (each.part == name) return slow ? each.ns : each.all_ns;
    }
    return 0;
  }
  Served served;
  Requests all;
};

TEST_F(ThreeRequests, WaitForWhatStepsDidInstead) {
  add_slow_ttft(served, all);
  ASSERT_TRUE(all.slow);
  EXPECT_EQ(all.slow->p99_ns, 215);  // of 215, 205 and 160
  EXPECT_EQ(all.slow->requests, 1);
  EXPECT_EQ(part("queued behind prompts", false), 50 + 100);  // B: the rest of step 1, step 2
  EXPECT_EQ(part("queued for a place", false), 40);           // C: step 3
  EXPECT_EQ(part("queued for KV blocks", false), 35);         // C: step 4
  EXPECT_EQ(part("queued between steps", false), 5 + 5 + 25);
  EXPECT_EQ(part("own prompt", false), 200 + 30 + 50);
  EXPECT_EQ(part("others in its steps", false), 10);  // of step 3
  EXPECT_EQ(part("rest", false), 10 + 10 + 10);
  std::int64_t sum = 0, slow = 0;
  for (const TtftPart& each : all.slow->parts) sum += each.all_ns, slow += each.ns;
  EXPECT_EQ(sum, 215 + 205 + 160);
  EXPECT_EQ(sum, all.slow->all_ns);
  EXPECT_EQ(slow, 215);
  EXPECT_EQ(all.slow->sentence, "p99 TTFT 215 ns is 93 % the computation of its own prompt");  // 200 of 215
  EXPECT_TRUE(all.slow->blamed.empty());
}

TEST_F(ThreeRequests, BlameThePromptsThatTheyWaitedFor) {
  all.all[0].warm_up = true;  // A is only in the way
  add_slow_ttft(served, all);
  EXPECT_EQ(all.slow->sentence,
            "p99 TTFT 205 ns is 73 % queueing behind prefills of 128 tokens or more (A)");  // 150 of 205
  ASSERT_EQ(all.slow->blamed.size(), 1u);
  EXPECT_EQ(all.slow->blamed[0].ns, 150);
}

TEST_F(ThreeRequests, LeaveTimeBetweenSteps) {
  add_slow_ttft(served, all);
  EXPECT_EQ(all.engine_time.in_system_ns, 470 - 90);
  EXPECT_EQ(all.engine_time.between_ns, 380 - (100 + 100 + 40 + 35 + 50));
  EXPECT_EQ(all.engine_time.waiting_ns, 100 + 40 + 35);  // steps 2, 3, 4
  EXPECT_EQ(all.engine_time.waiting_prefills_ns, 100);
  EXPECT_EQ(all.engine_time.waiting_sequences_ns, 40);
  EXPECT_EQ(all.engine_time.waiting_blocks_ns, 35);
}

// Without the engine's limits only prompts and a cache without any free block are told.
TEST_F(ThreeRequests, OfAnUnknownEngineWaitForWhatIsSeen) {
  served.rules.reset();
  served.steps[3].blocks_used = 99;
  add_slow_ttft(served, all);
  EXPECT_EQ(part("queued behind prompts", false), 150 + 40);
  EXPECT_EQ(part("queued for KV blocks", false), 35);
}

TEST(SlowTtft, WithoutStepsIsQueueAndRest) {
  Requests all;
  all.all = {request(1, 0, 60, 100, 200, 8)};
  add_slow_ttft({}, all);
  ASSERT_TRUE(all.slow);
  EXPECT_EQ(all.slow->sentence, "p99 TTFT 100 ns is 60 % queueing, for what is not recorded");
}

TEST(Amounts, AreDistributionsOverRequests) {
  Requests all;
  all.steps_ns = 3600, all.engine_ns = 360, all.output_tokens = 20, all.duration_ns = 7200;
  for (std::int64_t i = 1; i <= 10; ++i) {
    RequestFigures one = request(i, 0, 1, 2, 3, 100);
    one.time_ns = 36 * i, one.idle_ns = 6 * i, one.device_ns = 30 * i, one.cached_tokens = i == 10 ? 50 : 0;
    all.all.push_back(one);
  }
  add_cost(2.0, 4, all);
  add_amounts(all);
  const auto amount = [&](std::string_view metric) {
    return *std::ranges::find(all.amounts, metric, &RequestAmount::metric);
  };
  EXPECT_DOUBLE_EQ(amount("time").p50, 36 * 5 * 1e-9);
  EXPECT_DOUBLE_EQ(amount("time").p90, 36 * 9 * 1e-9);
  EXPECT_DOUBLE_EQ(amount("time").p99, 36 * 10 * 1e-9);
  EXPECT_DOUBLE_EQ(amount("device").total, 30 * 55 * 1e-9);
  EXPECT_DOUBLE_EQ(amount("cached").most, 0.5);
  // 8 an hour are 8 / 3600e9 a ns.
  ASSERT_TRUE(all.cost);
  EXPECT_DOUBLE_EQ(all.cost->steps, 8e-9);
  EXPECT_DOUBLE_EQ(all.cost->engine, 0.8e-9);
  EXPECT_DOUBLE_EQ(*all.cost->per_1k_tokens, 4e-7);  // 20 tokens
  EXPECT_DOUBLE_EQ(*all.cost->with_idle_per_1k_tokens, 8e-7);
  EXPECT_DOUBLE_EQ(*all.all[9].cost, 8e-10);               // 360 of 3600 ns
  EXPECT_DOUBLE_EQ(*all.all[9].cost_per_1k_tokens, 4e-7);  // of 2 tokens
}

TEST(Amounts, WithoutAPriceHaveNoCost) {
  Requests all;
  all.steps_ns = 100;
  all.all = {request(1, 0, 1, 2, 3, 100)};
  add_cost({}, 1, all);
  EXPECT_FALSE(all.cost);
  EXPECT_FALSE(all.all[0].cost);
}

// A was sent 20 after its time, reached the engine 7 later, had its token after 100 there, and the client 3 later.
struct TwoSides : ::testing::Test {
  TwoSides() {
    all.source = "server";
    all.all = {request(1, 127, 130, 227, 300, 8), request(2, 500, 510, 600, 700, 8)};
    RequestFigures a = request(1, 100, 0, 230, 305, 8), lost = request(3, 400, 0, 0, 0, 8);
    a.source = lost.source = "client";
    a.sent_ns = 120, a.scheduled_ns.reset();
    lost.status = "error", lost.error = "connection refused", lost.first_token_ns.reset();
    client = {a, lost};
  }
  const SideInterval& interval(std::string_view name) const {
    return *std::ranges::find(all.sides->intervals, name, &SideInterval::interval);
  }
  Requests all;
  std::vector<RequestFigures> client;
};

TEST_F(TwoSides, LieBesideEachOther) {
  add_sides(client, 0, all);
  ASSERT_TRUE(all.sides);
  EXPECT_EQ(all.sides->both, 1);
  EXPECT_EQ(all.sides->only_client, 1);
  EXPECT_EQ(all.sides->only_server, 1);
  EXPECT_EQ(all.all[0].client_queue_ns, 20);
  EXPECT_EQ(all.all[0].before_ns, 7);
  EXPECT_EQ(all.all[0].after_ns, 3);
  EXPECT_EQ(all.all[0].client_ttft_ns, 130);
  EXPECT_EQ(20 + 7 + 100 + 3, 130);
  EXPECT_EQ(interval("server TTFT").p50_ns, 100);
  ASSERT_EQ(all.sides->unmatched.size(), 2u);
  EXPECT_EQ(all.sides->unmatched[1].error, "connection refused");
}

TEST_F(TwoSides, AreNotClaimedWithinTheErrorOfTheClocks) {
  add_sides(client, 5, all);
  EXPECT_EQ(interval("before the engine").p50_ns, 7);
  EXPECT_EQ(interval("after").p50_ns, std::nullopt);  // 3
  EXPECT_EQ(interval("after").within_error, 1);
  EXPECT_EQ(all.all[0].after_ns, std::nullopt);
  EXPECT_EQ(interval("client queue").p50_ns, 20);  // both moments are the client's
}

TEST_F(TwoSides, OfUnknownClocksSayOnlyWhatIsTheirOwn) {
  add_sides(client, {}, all);
  EXPECT_EQ(interval("before the engine").p50_ns, std::nullopt);
  EXPECT_EQ(interval("client TTFT").p50_ns, 130);
}

TEST_F(TwoSides, ShowClocksThatCannotBe) {
  all.all[0].arrival_ns = 100;  // 20 before it was sent
  add_sides(client, 5, all);
  EXPECT_EQ(all.sides->impossible, 1);
}

// An engine of known step times, run by the simulator itself: what is fitted to its steps must bring the run back.
struct KnownEngine : ::testing::Test {
  struct Cost final : serving::StepCost {
    serving::StepTime of(const serving::Batch& batch) override {
      double pairs = 0;
      for (const serving::Chunk& chunk : batch.chunks) {
        for (std::int64_t i = 1; i <= chunk.tokens; ++i) pairs += static_cast<double>(chunk.computed + i);
      }
      for (const std::int64_t context : batch.contexts) pairs += static_cast<double>(context);
      last_pairs = pairs;
      return {
          1e6 + 2e4 * static_cast<double>(batch.tokens()) + 10 * pairs + 5e4 * static_cast<double>(batch.requests()),
          1e5};
    }
    double last_pairs = 0;
  };
  void run() {
    served.rules =
        *parse_engine("vllm@0.11 max_num_batched_tokens=256 max_num_seqs=8 num_gpu_blocks=400 cudagraph_mode=none");
    serving::Workload workload;
    for (std::int64_t i = 0; i < 80; ++i) {
      workload.requests.push_back({.arrival_ns = 1e7 * static_cast<double>(i),
                                   .prompt_tokens = static_cast<std::int32_t>(20 + 37 * i % 300),
                                   .output_tokens = static_cast<std::int32_t>(4 + 7 * i % 20)});
    }
    Cost cost;
    serving::SimulateOptions options;
    options.on_step = [&](const serving::LaunchedStep& launched) {
      ServedStep one{.id = std::ssize(served.steps) + 1, .process_id = 1};
      one.begin_ns = std::llround(launched.begin_ns), one.end_ns = std::llround(launched.begin_ns + launched.device_ns);
      one.tokens = launched.batch.tokens(), one.members = launched.batch.requests();
      one.prompt_tokens = launched.batch.chunk_tokens(), one.pairs = std::llround(cost.last_pairs);
      served.steps.push_back(one);
    };
    const auto simulated = serving::simulate(*served.rules, workload, cost, options);
    ASSERT_TRUE(simulated);
    for (std::size_t i = 0; i < simulated->requests.size(); ++i) {
      const serving::RequestResult& result = simulated->requests[i];
      RequestFigures one =
          request(static_cast<std::int64_t>(i) + 1, std::llround(result.queued_ns), std::llround(result.scheduled_ns),
                  std::llround(result.first_token_ns), std::llround(result.last_token_ns), result.prompt_tokens);
      one.output_tokens = result.output_tokens;
      one.tpot_ns = (*one.last_token_ns - *one.first_token_ns) / (one.output_tokens - 1);
      all.all.push_back(one);
    }
    all.source = "server", all.count = std::ssize(all.all);
  }
  Served served;
  Requests all;
};

TEST_F(KnownEngine, IsReproducedByItsSteps) {
  run();
  add_replay(served, all);
  ASSERT_TRUE(all.replay);
  const Replay& replay = *all.replay;
  EXPECT_EQ(replay.why, "");
  EXPECT_NEAR(replay.step_ns, 1e6, 1e4);
  EXPECT_NEAR(replay.token_ns, 2e4, 200);
  EXPECT_NEAR(replay.pair_ns, 10, 1);
  EXPECT_NEAR(replay.sequence_ns, 5e4, 3e3);
  EXPECT_NEAR(replay.between_ns, 1e5, 5e3);
  EXPECT_LT(replay.fit_error.value_or(1), 0.001);
  EXPECT_TRUE(replay.reproduces);
  ASSERT_EQ(replay.back_test.size(), 3u);
  for (const ReplayStatistic& each : replay.back_test) EXPECT_LT(std::abs(each.error), 0.05) << each.metric;
  const auto second = std::ranges::find(replay.changes, "a second replica", &ReplayChange::change);
  ASSERT_NE(second, replay.changes.end());
  EXPECT_GT(second->ttft_p99_saved, 0);
  EXPECT_TRUE(second->more_devices);
  // Larger steps than any that was measured are said to be.
  const auto larger = std::ranges::find(replay.changes, "max_num_batched_tokens 256 -> 512", &ReplayChange::change);
  ASSERT_NE(larger, replay.changes.end());
  EXPECT_TRUE(larger->beyond_seen);
}

TEST_F(KnownEngine, IsNotAskedWhereItsSimulationIsFarOff) {
  run();
  for (RequestFigures& each : all.all) *each.ttft_ns *= 2;
  add_replay(served, all);
  EXPECT_FALSE(all.replay->reproduces);
  EXPECT_TRUE(all.replay->changes.empty());
  EXPECT_EQ(all.replay->sentence, "");
  EXPECT_THAT(all.replay->why, HasSubstr("does not reproduce this run"));
}

TEST_F(KnownEngine, IsOneOfSeveralNobodySimulates) {
  run();
  all.all.back().process_id = 2;
  add_replay(served, all);
  EXPECT_THAT(all.replay->why, HasSubstr("several processes"));
}

TEST_F(KnownEngine, MustBeNamed) {
  run();
  served.rules.reset();
  served.rules_why = "the engine did not say";
  add_replay(served, all);
  EXPECT_EQ(all.replay->why, "the engine did not say");
  EXPECT_TRUE(all.replay->back_test.empty());
}

TEST(EngineText, IsThatOfTheNote) {
  const auto rules = parse_engine("vllm@0.28 max_num_seqs=64 num_gpu_blocks=1000");
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->max_num_seqs, 64);
  EXPECT_EQ(rules->num_gpu_blocks, 1000);
  EXPECT_FALSE(parse_engine(""));
  EXPECT_FALSE(parse_engine("nobody@1"));
  EXPECT_FALSE(parse_engine("vllm colour=blue"));
}

}  // namespace
}  // namespace llmprof::analyze

// One test for each rule of the scheduler; blocks have 4 tokens, so that cases can be followed by hand.
#include "serving/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/testing/engine.h"

namespace llmprof::serving {
bool operator==(const Chunk& a, const Chunk& b);
bool operator==(const Chunk& a, const Chunk& b) { return a.tokens == b.tokens && a.computed == b.computed; }
}  // namespace llmprof::serving

namespace llmprof::serving {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Scheduler, RunningRequestsGoFirstAndThePromptTakesTheRestOfTheBudget) {
  EngineRules rules = small_rules(16, 8);
  TestEngine engine(rules, {request_of(4, 3), request_of(10, 2)});
  engine.scheduler->add(0);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{4, 0}));
  EXPECT_THAT(engine.step.sampled, ElementsAre(0));
  EXPECT_EQ(engine.step.batch.new_requests, 1);
  engine.scheduler->add(1);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(5));
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{7, 0}));
  EXPECT_THAT(engine.step.sampled, ElementsAre(0));
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(6));
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{3, 7}));
  EXPECT_THAT(engine.step.sampled, ElementsAre(0, 1));
  EXPECT_THAT(engine.finished, ElementsAre(0));
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(11));
  EXPECT_THAT(engine.finished, ElementsAre(1));
  EXPECT_FALSE(engine.next());
  EXPECT_EQ(engine.scheduler->pool().used(), 0);
}

TEST(Scheduler, SeveralPromptsShareAStep) {
  TestEngine engine(small_rules(16, 8), {request_of(3, 1), request_of(3, 1), request_of(5, 1)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{3, 0}, Chunk{3, 0}, Chunk{2, 0}));
  EXPECT_EQ(engine.step.batch.sampled, 2);
}

TEST(Scheduler, NoMoreRequestsThanMaxNumSeqs) {
  EngineRules rules = small_rules(16);
  rules.max_num_seqs = 2;
  TestEngine engine(rules, {request_of(3, 2), request_of(3, 2), request_of(3, 2)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.step.running, 2);
  EXPECT_EQ(engine.step.waiting, 1);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.finished, ElementsAre(0, 1));
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{3, 0}));
}

TEST(Scheduler, LongPromptsAreCutAtTheThreshold) {
  EngineRules rules = small_rules(16);
  rules.long_prefill_token_threshold = 4;
  TestEngine engine(rules, {request_of(10, 1)});
  engine.add_all();
  for (const Chunk& expected : {Chunk{4, 0}, Chunk{4, 4}, Chunk{2, 8}}) {
    ASSERT_TRUE(engine.next());
    EXPECT_THAT(engine.step.batch.chunks, ElementsAre(expected));
  }
  EXPECT_THAT(engine.finished, ElementsAre(0));
}

TEST(Scheduler, WithoutChunkingAPromptThatDoesNotFitStopsThoseBehindIt) {
  EngineRules rules = small_rules(16, 8);
  rules.enable_chunked_prefill = false;
  TestEngine engine(rules, {request_of(5, 2), request_of(5, 1), request_of(2, 1)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{5, 0}));
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(6));
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{5, 0}, Chunk{2, 0}));
}

// Both prompts fill the 4 blocks; the second request needs a fifth for its second token.
TEST(Scheduler, TheLastRunningRequestIsPreemptedAndResumesFromTheCache) {
  TestEngine engine(small_rules(4), {request_of(7, 2), request_of(8, 3), request_of(1, 1)});
  engine.scheduler->add(0);
  engine.scheduler->add(1);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{7, 0}, Chunk{8, 0}));
  EXPECT_EQ(engine.scheduler->pool().free(), 0);
  engine.scheduler->add(2);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(8));
  EXPECT_THAT(engine.step.batch.chunks, IsEmpty());  // two blocks are free, but nothing is admitted in such a step
  EXPECT_EQ(engine.step.preempted, 1);
  EXPECT_EQ(engine.step.waiting, 2);
  ASSERT_TRUE(engine.next());  // its 8 tokens are still in the cache; it goes before the request that came later
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(9, 1));
  EXPECT_EQ(engine.progress[1].preemptions, 1);
  EXPECT_EQ(engine.progress[1].cached, 0);  // counts the first admission only
  EXPECT_EQ(engine.step.batch.new_requests, 1);
}

TEST(Scheduler, WithoutThePrefixCacheAPreemptedRequestIsComputedAgain) {
  EngineRules rules = small_rules(4);
  rules.enable_prefix_caching = false;
  TestEngine engine(rules, {request_of(7, 2), request_of(8, 3)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.step.preempted, 1);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{9, 0}));  // prompt and the token it had
}

TEST(Scheduler, PriorityDecidesWhoWaitsAndWhoIsPreempted) {
  EngineRules rules = small_rules(4);
  rules.policy = Policy::kPriority;
  TestEngine engine(rules, {request_of(8, 4, 5), request_of(4, 4, 0)});
  engine.scheduler->add(0);
  ASSERT_TRUE(engine.next());
  engine.scheduler->add(1);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(9));
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{4, 0}));
  ASSERT_TRUE(engine.next());  // request 0 was in the step already, and has to leave it
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(5));
  EXPECT_EQ(engine.step.preempted, 1);
  EXPECT_EQ(engine.progress[0].preemptions, 1);

  TestEngine waiting(rules, {request_of(4, 1, 2), request_of(4, 1, 1), request_of(4, 1, 1), request_of(2, 1, 0)});
  waiting.add_all();
  ASSERT_TRUE(waiting.next());
  EXPECT_THAT(waiting.step.sampled, ElementsAre(3, 1, 2, 0));
}

// Request 0 runs first and is the least urgent: for its ninth token it can only preempt itself.
TEST(Scheduler, ARequestThatGivesWayItselfDoesNotStopTheEngine) {
  EngineRules rules = small_rules(4);
  rules.policy = Policy::kPriority;
  TestEngine engine(rules, {request_of(7, 4, 5), request_of(8, 4, 0)});
  engine.scheduler->add(0);
  ASSERT_TRUE(engine.next());
  engine.scheduler->add(1);
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.scheduler->pool().free(), 0);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(9));
  EXPECT_THAT(engine.step.sampled, ElementsAre(1));
  EXPECT_EQ(engine.step.preempted, 1);
  EXPECT_EQ(engine.progress[0].preemptions, 1);
}

TEST(Scheduler, APromptSharesTheBlocksOfAnother) {
  Request shared = request_of(9, 2);
  shared.id_count = 2;  // ids 0 and 1 for both
  TestEngine engine(small_rules(16), {shared, shared, request_of(9, 2)}, {0, 1});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  // In the same step: the second request has one token left.
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{9, 0}, Chunk{9, 0}));
  EXPECT_THAT(engine.step.batch.contexts, ElementsAre(9));
  EXPECT_EQ(engine.progress[1].cached, 8);
  EXPECT_EQ(engine.progress[2].cached, 0);
  EXPECT_EQ(engine.scheduler->pool().used(), 3 + 1 + 3);
}

TEST(Scheduler, APromptThatIsAllInTheCacheComputesItsLastBlock) {
  Request shared = request_of(8, 1);
  shared.id_count = 2;
  TestEngine engine(small_rules(16), {shared, shared}, {0, 1});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{8, 0}, Chunk{4, 4}));
}

TEST(Scheduler, AdmissionReservesTheWholePrompt) {
  EngineRules rules = small_rules(3, 8);
  const std::vector<Request> requests{request_of(5, 3), request_of(8, 1)};
  TestEngine reserving(rules, requests);
  reserving.add_all();
  ASSERT_TRUE(reserving.next());
  EXPECT_THAT(reserving.step.batch.chunks, ElementsAre(Chunk{5, 0}));
  rules.scheduler_reserve_full_isl = false;
  TestEngine engine(rules, requests);
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{5, 0}, Chunk{3, 0}));
}

TEST(Scheduler, TheWatermarkHoldsOnlyWhileSomethingRuns) {
  EngineRules rules = small_rules(7);
  rules.watermark = 0.25;  // 2 of 8 blocks
  TestEngine alone(rules, {request_of(24, 1)});
  alone.add_all();
  EXPECT_TRUE(alone.next());  // 6 of 7 blocks
  TestEngine engine(rules, {request_of(16, 2), request_of(8, 1)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{16, 0}));  // 3 blocks are free, 2 + 2 would be needed
  rules.watermark = 0;
  TestEngine without(rules, {request_of(16, 2), request_of(8, 1)});
  without.add_all();
  ASSERT_TRUE(without.next());
  EXPECT_THAT(without.step.batch.chunks, ElementsAre(Chunk{16, 0}, Chunk{8, 0}));
}

TEST(Scheduler, RequestsThatCanNeverBeServedAreKnownBefore) {
  EngineRules rules = small_rules(4, 8);
  rules.max_model_len = 20;
  const TestEngine engine(rules, {});
  EXPECT_EQ(engine.scheduler->check(request_of(12, 5)), Rejection::kNone);  // 16 of 17 tokens are computed
  EXPECT_EQ(engine.scheduler->check(request_of(12, 6)), Rejection::kBlocks);
  EXPECT_EQ(engine.scheduler->check(request_of(12, 9)), Rejection::kModelLength);
  rules.max_model_len = 0;
  rules.enable_chunked_prefill = false;
  const TestEngine whole(rules, {});
  EXPECT_EQ(whole.scheduler->check(request_of(8, 1)), Rejection::kNone);
  EXPECT_EQ(whole.scheduler->check(request_of(8, 2)), Rejection::kBudget);
}

TEST(Scheduler, GraphsBySizeAndKindOfTheBatch) {
  EngineRules rules = small_rules(64, 64);
  rules.cudagraph_mode = GraphMode::kFullAndPiecewise;  // sizes 1 2 4 8 16
  TestEngine engine(rules, {request_of(6, 9), request_of(17, 9), request_of(3, 9)});
  engine.scheduler->add(0);
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.step.batch.launch, Launch::kPiecewise);
  EXPECT_EQ(engine.step.batch.padded_tokens, 8);
  engine.scheduler->add(1);
  ASSERT_TRUE(engine.next());  // 18 tokens: more than any graph
  EXPECT_EQ(engine.step.batch.launch, Launch::kEager);
  EXPECT_EQ(engine.step.batch.padded_tokens, 18);
  engine.scheduler->add(2);
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.step.batch.launch, Launch::kPiecewise);
  EXPECT_EQ(engine.step.batch.padded_tokens, 8);
  ASSERT_TRUE(engine.next());
  EXPECT_EQ(engine.step.batch.launch, Launch::kGraph);
  EXPECT_EQ(engine.step.batch.padded_tokens, 4);
}

TEST(Scheduler, WholeGraphsEndAtMaxNumSeqs) {
  EngineRules rules = small_rules(64, 64);
  rules.cudagraph_mode = GraphMode::kFullAndPiecewise;
  rules.max_num_seqs = 3;
  TestEngine engine(rules, {request_of(1, 9), request_of(1, 9), request_of(1, 9)});
  engine.add_all();
  ASSERT_TRUE(engine.next());  // 3 decodes would be padded to 4
  EXPECT_EQ(engine.step.batch.launch, Launch::kPiecewise);
  rules.max_num_seqs = 4;
  rules.cudagraph_mode = GraphMode::kPiecewise;
  TestEngine pieces(rules, {request_of(1, 9)});
  pieces.add_all();
  ASSERT_TRUE(pieces.next());
  EXPECT_EQ(pieces.step.batch.launch, Launch::kPiecewise);
}

// Asynchronous scheduling: a step is scheduled while the one before is under way.
TEST(Scheduler, NothingIsScheduledForARequestWhoseLastTokenIsOnItsWay) {
  TestEngine engine(small_rules(16), {request_of(4, 2)});
  engine.add_all();
  Step first, second, third;
  ASSERT_TRUE(engine.scheduler->schedule(first));
  ASSERT_TRUE(engine.scheduler->schedule(second));
  EXPECT_THAT(second.batch.contexts, ElementsAre(5));
  EXPECT_FALSE(engine.scheduler->schedule(third));
  engine.scheduler->complete(first, engine.finished);
  EXPECT_THAT(engine.finished, IsEmpty());
  EXPECT_FALSE(engine.scheduler->schedule(third));
  engine.scheduler->complete(second, engine.finished);
  EXPECT_THAT(engine.finished, ElementsAre(0));
  EXPECT_EQ(engine.scheduler->pool().used(), 0);
}

TEST(Scheduler, ARequestMayEndWhileItIsPreempted) {
  // Both hold 2 of 4 blocks; request 0 needs a third while the only token of request 1 is on its way.
  TestEngine engine(small_rules(4), {request_of(8, 3), request_of(8, 1)});
  engine.add_all();
  Step first, second;
  ASSERT_TRUE(engine.scheduler->schedule(first));
  ASSERT_TRUE(engine.scheduler->schedule(second));
  EXPECT_THAT(second.batch.contexts, ElementsAre(9));
  EXPECT_EQ(second.preempted, 1);
  EXPECT_EQ(engine.scheduler->waiting(), 1);
  engine.scheduler->complete(first, engine.finished);
  EXPECT_THAT(engine.finished, ElementsAre(1));
  EXPECT_EQ(engine.scheduler->waiting(), 0);
}

TEST(Scheduler, AStaticBatchIsDecodedUntilItsLastRequestEnds) {
  EngineRules rules = small_rules(64);
  rules.scheduler = SchedulerKind::kStatic;
  rules.max_num_seqs = 2;
  rules.max_num_batched_tokens = 0;
  TestEngine engine(rules, {request_of(4, 1), request_of(6, 3), request_of(5, 1)});
  engine.add_all();
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{4, 0}, Chunk{6, 0}));
  EXPECT_EQ(engine.step.batch.padded_tokens, 12);
  EXPECT_THAT(engine.finished, ElementsAre(0));
  for (const std::int64_t context : {7, 8}) {
    ASSERT_TRUE(engine.next());
    EXPECT_THAT(engine.step.batch.contexts, ElementsAre(context));
    EXPECT_EQ(engine.step.batch.padded_tokens, 2);
  }
  EXPECT_THAT(engine.finished, ElementsAre(1));
  EXPECT_EQ(engine.scheduler->pool().used(), 0);
  ASSERT_TRUE(engine.next());
  EXPECT_THAT(engine.step.batch.chunks, ElementsAre(Chunk{5, 0}));
}

TEST(Scheduler, AnIdStandsForAsManyTokensAsTheTraceSays) {
  Workload workload;
  workload.content_tokens = 32;
  workload.content_ids = {7, 8, 7, 9};
  workload.requests = {request_of(70, 1), request_of(70, 1)};
  workload.requests[0].id_count = workload.requests[1].id_count = 2;
  workload.requests[1].id_begin = 2;
  const auto same = [&](std::int64_t block) {
    return block_content(workload, 0, block, 16) == block_content(workload, 1, block, 16);
  };
  EXPECT_TRUE(same(0) && same(1));   // tokens 0 to 31: id 7
  EXPECT_FALSE(same(2) || same(3));  // ids 8 and 9
  EXPECT_FALSE(same(4));             // no id: unique
  EXPECT_NE(block_content(workload, 0, 0, 16), block_content(workload, 0, 1, 16));
}

}  // namespace
}  // namespace llmprof::serving

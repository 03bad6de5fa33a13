#include "serving/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/random.h"
#include "serving/testing/engine.h"

namespace llmprof::serving {
namespace {

using testing::HasSubstr;

struct FixedCost : StepCost {
  FixedCost(double device, double host) : time{device, host} {}
  StepTime of(const Batch&) override { return time; }
  StepTime time;
};

// Grows with what a batch holds, and counts it.
struct CountingCost : StepCost {
  StepTime of(const Batch& batch) override {
    tokens += batch.tokens();
    sampled += batch.sampled;
    return {1000 + 10 * static_cast<double>(batch.padded_tokens), 100};
  }
  std::int64_t tokens = 0, sampled = 0;
};

Workload workload_of(const std::vector<Request>& requests, const std::vector<double>& arrivals_ns = {}) {
  Workload workload;
  workload.requests = requests;
  for (std::size_t i = 0; i < arrivals_ns.size(); ++i) workload.requests[i].arrival_ns = arrivals_ns[i];
  return workload;
}

Simulation simulated(const EngineRules& rules, const Workload& workload, StepCost& cost,
                     const SimulateOptions& options = {}) {
  Result<Simulation> result = simulate(rules, workload, cost, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(*result) : Simulation();
}

TEST(Simulate, WithoutAsynchronousSchedulingHostAndDeviceTakeTurns) {
  FixedCost cost(10, 3);
  const Simulation run = simulated(small_rules(16), workload_of({request_of(4, 3), request_of(4, 1)}, {0, 5}), cost);
  EXPECT_EQ(run.requests[0].first_token_ns, 13);
  EXPECT_EQ(run.requests[0].last_token_ns, 39);
  EXPECT_EQ(run.requests[1].queued_ns, 13);
  EXPECT_EQ(run.requests[1].scheduled_ns, 13);
  EXPECT_EQ(run.requests[1].first_token_ns, 26);
  EXPECT_EQ(run.itl_ns.count(), 2);
  EXPECT_EQ(run.step_count, 3);
  EXPECT_EQ(run.steps[1].begin_ns, 16);
  EXPECT_EQ(run.steps[1].chunks, 1);
  EXPECT_EQ(run.steps[1].decodes, 1);
  EXPECT_EQ(run.device_busy_ns, 30);
}

TEST(Simulate, AsynchronousSchedulingHidesTheHostAndDelaysArrivalsByAStep) {
  FixedCost cost(10, 3);
  EngineRules rules = small_rules(16);
  rules.async_scheduling = true;
  const Simulation run = simulated(rules, workload_of({request_of(4, 4), request_of(4, 1)}, {0, 5}), cost);
  EXPECT_EQ(run.requests[0].first_token_ns, 13);
  EXPECT_EQ(run.requests[0].last_token_ns, 43);  // 13, 23, 33, 43
  EXPECT_EQ(run.requests[1].scheduled_ns, 13);   // when the first step is complete and the second under way
  EXPECT_EQ(run.requests[1].first_token_ns, 33);
}

TEST(Simulate, AHostThatIsSlowerThanTheDeviceSetsThePace) {
  FixedCost cost(3, 10);
  EngineRules rules = small_rules(16);
  rules.async_scheduling = true;
  const Simulation run = simulated(rules, workload_of({request_of(4, 20)}), cost);
  const RequestResult& request = run.requests[0];
  EXPECT_NEAR((request.last_token_ns - request.first_token_ns) / 19, 10, 0.5);
}

TEST(Simulate, ReplicasTakeTurnsOrTheLeastLoaded) {
  FixedCost cost(10, 0);
  const Workload workload =
      workload_of({request_of(4, 50), request_of(4, 1), request_of(4, 1), request_of(4, 1)}, {0, 1, 100, 200});
  SimulateOptions options{.replicas = 2, .routing = Routing::kRoundRobin};
  Simulation run = simulated(small_rules(16), workload, cost, options);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(run.requests[i].replica, run.requests[i % 2].replica);
  EXPECT_NE(run.requests[0].replica, run.requests[1].replica);
  options.routing = Routing::kLeastLoaded;
  run = simulated(small_rules(16), workload, cost, options);
  EXPECT_EQ(run.requests[0].replica, 0);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(run.requests[i].replica, 1);
  EXPECT_EQ(run.requests[3].first_token_ns, 210);
}

// Request 0 decodes on one replica when a long prompt reaches the other.
TEST(Simulate, ReplicasInLockstepWaitForTheSlowestAndLoseTheirGraphs) {
  EngineRules rules = small_rules(64);
  rules.cudagraph_mode = GraphMode::kFullAndPiecewise;  // up to 16 tokens
  const Workload workload = workload_of({request_of(1, 6), request_of(40, 1)}, {0, 1200});
  CountingCost cost;  // 1000 + 10 for a row, 100 on the host
  const Simulation alone = simulated(rules, workload, cost, {.replicas = 2});
  EXPECT_EQ(alone.requests[0].last_token_ns, 6 * 1110);
  EXPECT_EQ(alone.graph_steps, 6);
  const Simulation run = simulated(rules, workload, cost, {.replicas = 2, .lockstep = true});
  EXPECT_NE(run.requests[0].replica, run.requests[1].replica);
  EXPECT_EQ(run.requests[0].last_token_ns, 5 * 1110 + 1500);  // one step takes as long as 40 tokens do
  EXPECT_EQ(run.requests[1].first_token_ns, 2 * 1110 + 1500);
  EXPECT_EQ(run.graph_steps, 5);
  EXPECT_EQ(run.eager_steps, 2);
}

TEST(Simulate, AClosedLoopSendsWhenARequestEnds) {
  FixedCost cost(10, 0);
  Workload workload = workload_of({request_of(4, 2), request_of(4, 2), request_of(900, 2), request_of(4, 1)});
  workload.concurrency = 1;
  const Simulation run = simulated(small_rules(16), workload, cost);
  EXPECT_EQ(run.requests[1].arrival_ns, 20);
  EXPECT_EQ(run.requests[1].last_token_ns, 40);
  EXPECT_EQ(run.requests[2].rejection, Rejection::kBlocks);  // and the next one is sent at once
  EXPECT_EQ(run.requests[3].last_token_ns, 50);
}

TEST(Simulate, WhatCannotBeServedIsRejectedAndCounted) {
  FixedCost cost(10, 0);
  EngineRules rules = small_rules(4);
  rules.max_model_len = 30;
  const Simulation run = simulated(rules, workload_of({request_of(100, 1), request_of(20, 5), request_of(4, 1)}), cost);
  EXPECT_EQ(run.rejected[static_cast<std::size_t>(Rejection::kModelLength)], 1);
  EXPECT_EQ(run.rejected[static_cast<std::size_t>(Rejection::kBlocks)], 1);
  EXPECT_TRUE(std::isnan(run.requests[0].first_token_ns));
  EXPECT_EQ(run.requests[2].last_token_ns, 10);
  // A workload of nothing else ends as well.
  EXPECT_EQ(simulated(rules, workload_of({request_of(100, 1)}), cost).step_count, 0);
}

TEST(Simulate, WhatMakesNoSenseIsAnError) {
  FixedCost cost(10, 0);
  const Workload workload = workload_of({request_of(4, 2)});
  EXPECT_FALSE(simulate(small_rules(16), Workload(), cost));
  EXPECT_FALSE(simulate(small_rules(0), workload, cost));
  EXPECT_FALSE(simulate(small_rules(16), workload, cost, {.replicas = 0}));
  FixedCost endless(std::nan(""), 0);
  EXPECT_FALSE(simulate(small_rules(16), workload, endless));
  FixedCost free(0, 0);
  EXPECT_FALSE(simulate(small_rules(16), workload, free));
  const auto stopped = simulate(small_rules(16), workload, cost, {.most_steps = 1});
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("stopped after 1 step"));
}

TEST(Simulate, StepRecordsAreThinnedOutEvenly) {
  FixedCost cost(10, 0);
  const Simulation run = simulated(small_rules(64), workload_of({request_of(1, 100)}), cost, {.most_step_records = 16});
  EXPECT_EQ(run.step_count, 100);
  EXPECT_EQ(run.step_stride, 8);
  ASSERT_EQ(run.steps.size(), 13U);
  for (std::size_t i = 0; i < run.steps.size(); ++i) EXPECT_EQ(run.steps[i].begin_ns, 80 * static_cast<double>(i));
}

// Every combination of rules serves every request exactly, within its blocks, and twice the same.
TEST(Simulate, EveryRequestIsServedUnderEveryRule) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    EngineRules rules = small_rules(random.between(12, 40), random.between(8, 40));
    rules.max_num_seqs = random.between(1, 8);
    rules.policy = random.uniform() < 0.5 ? Policy::kFcfs : Policy::kPriority;
    rules.scheduler = random.uniform() < 0.1 ? SchedulerKind::kStatic : SchedulerKind::kContinuous;
    rules.async_scheduling = rules.scheduler == SchedulerKind::kContinuous && random.uniform() < 0.5;
    rules.enable_prefix_caching = random.uniform() < 0.5;
    rules.scheduler_reserve_full_isl = random.uniform() < 0.5;
    rules.watermark = random.uniform() < 0.3 ? 0.1 : 0;
    rules.long_prefill_token_threshold = random.uniform() < 0.3 ? 5 : 0;
    rules.enable_chunked_prefill = random.uniform() < 0.8;
    rules.cudagraph_mode = GraphMode::kFullAndPiecewise;
    Workload workload;
    workload.content_tokens = 4;
    workload.content_ids = {1, 2, 3, 4, 5};
    workload.concurrency = random.uniform() < 0.2 ? 3 : 0;
    for (int i = 0; i < 60; ++i) {
      Request request =
          request_of(static_cast<std::int32_t>(random.between(1, 30)), static_cast<std::int32_t>(random.between(1, 25)),
                     static_cast<std::int32_t>(random.between(0, 2)));
      request.arrival_ns = i * 700.0;
      request.id_count = random.uniform() < 0.5 ? static_cast<std::uint32_t>(request.prompt_tokens / 8) : 0;
      workload.requests.push_back(request);
    }
    const SimulateOptions options{.replicas = random.between(1, 3), .lockstep = random.uniform() < 0.3};
    CountingCost cost, again;
    const Simulation run = simulated(rules, workload, cost, options);
    const Simulation other = simulated(rules, workload, again, options);
    std::int64_t outputs = 0, least = 0, gaps = 0;
    for (std::size_t i = 0; i < run.requests.size(); ++i) {
      const RequestResult& request = run.requests[i];
      if (request.rejection != Rejection::kNone) continue;
      outputs += request.output_tokens;
      gaps += request.output_tokens - 1;
      least += request.prompt_tokens + request.output_tokens - 1 - request.cached_tokens;
      EXPECT_LE(request.arrival_ns, request.queued_ns);
      EXPECT_LE(request.queued_ns, request.scheduled_ns);
      EXPECT_LT(request.scheduled_ns, request.first_token_ns);
      EXPECT_LE(request.first_token_ns, request.last_token_ns);
      EXPECT_EQ(request.last_token_ns, other.requests[i].last_token_ns);
    }
    EXPECT_EQ(cost.sampled, outputs) << round;
    EXPECT_EQ(run.itl_ns.count(), gaps);
    if (run.preemptions == 0) {
      EXPECT_EQ(cost.tokens, least) << round;
    } else {
      EXPECT_GE(cost.tokens, least) << round;
    }
    EXPECT_LE(run.blocks_used_peak, run.blocks_usable);
    for (const StepRecord& step : run.steps) {
      if (rules.scheduler == SchedulerKind::kContinuous) {
        EXPECT_LE(step.tokens, rules.max_num_batched_tokens);
      }
      EXPECT_GE(step.padded_tokens, step.tokens);
      EXPECT_LE(step.running, rules.max_num_seqs);
    }
  }
}

// After the last request no block is in use, whatever was preempted on the way.
TEST(Simulate, BlocksAreConserved) {
  for (const Policy policy : {Policy::kFcfs, Policy::kPriority}) {
    EngineRules rules = small_rules(20, 16);
    rules.policy = policy;
    std::vector<Request> requests;
    Random random(5);
    for (int i = 0; i < 200; ++i)
      requests.push_back(request_of(static_cast<std::int32_t>(random.between(1, 30)),
                                    static_cast<std::int32_t>(random.between(1, 40)),
                                    static_cast<std::int32_t>(random.between(0, 3))));
    TestEngine engine(rules, requests);
    engine.add_all();
    std::int64_t preempted = 0, finished = 0;
    while (engine.next()) {
      preempted += engine.step.preempted;
      finished += static_cast<std::int64_t>(engine.finished.size());
      std::int64_t held = 0;
      for (const Progress& progress : engine.progress) held += static_cast<std::int64_t>(progress.blocks.size());
      ASSERT_EQ(held, engine.scheduler->pool().used());  // no prefixes are shared here
    }
    EXPECT_EQ(finished, 200);
    EXPECT_GT(preempted, 0);
    EXPECT_EQ(engine.scheduler->pool().used(), 0);
    EXPECT_EQ(engine.scheduler->waiting(), 0);
  }
}

}  // namespace
}  // namespace llmprof::serving

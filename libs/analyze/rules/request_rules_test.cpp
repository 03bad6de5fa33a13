// Rules about requests, on a small server written by hand: ten steps of 9.8 us, one every 10 us; six requests with
// prompts of 32 tokens, of which the k-th is computed in step k; each then decodes until the end.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

struct Trouble {
  bool queue = false;      // all arrive before the first step
  bool padding = false;    // steps compute 64 rows
  bool blocks = false;     // all 8 blocks of the KV cache are in use
  bool preempted = false;  // the first request is out of steps 3 to 5, and computes what it had again in step 6
  bool slow_host = false;  // steps take 5 us of the 10
  std::int64_t cached = 16;
  bool client =
      false;  // who tells of the same requests, and of a first one that was only warm-up; its clock is 100 ns off
};

constexpr std::int64_t kFirst = 10'000, kEvery = 10'000, kSteps = 10, kRequests = 6, kPrompt = 32;

class Server {
 public:
  explicit Server(const Trouble& trouble) : trouble_(trouble) {
    for (std::int64_t k = 0; k < kSteps; ++k) step(k);
    for (std::int64_t k = 0; k < kRequests; ++k) request(k);
  }
  Summary summary() { return run_.summary(); }

 private:
  std::int64_t begin(std::int64_t k) const { return kFirst + kEvery * k; }
  std::int64_t end(std::int64_t k) const { return begin(k) + (trouble_.slow_host ? 5'000 : 9'800); }

  void mark(std::int64_t ts_ns, std::int64_t request, std::string_view event, std::int64_t tokens,
            std::int64_t context) {
    trace::RequestEventRow row{.ts_ns = ts_ns,
                               .event = run_.name(event),
                               .tokens = tokens,
                               .context = context,
                               .process_id = 1,
                               .thread_id = 1};
    if (request >= 0) row.request_id = request + 1;
    run_.add(row);
  }
  // Its tokens in step k, and its length then; 0: none.
  std::pair<std::int64_t, std::int64_t> part(std::int64_t request, std::int64_t k) const {
    if (k < request) return {0, 0};
    if (k == request) return {kPrompt, kPrompt};
    const bool out = trouble_.preempted && request == 0;
    if (out && k >= 3 && k <= 5) return {0, 0};
    if (out && k == 6) return {kPrompt + 3, kPrompt + 3};  // it had 34, and is to get its fourth token
    return {1, kPrompt + k - request - (out && k > 6 ? 3 : 0)};
  }
  void step(std::int64_t k) {
    run_.step(k < kRequests ? "mixed" : "decode", begin(k), end(k));
    run_.kernel("forward", begin(k) + 5, begin(k) + 10, end(k) - 10);
    for (std::int64_t request = 0; request < kRequests; ++request) {
      const auto [tokens, context] = part(request, k);
      if (tokens > 0) mark(begin(k) + 1, request, "member", tokens, context);
    }
    if (trouble_.padding) mark(begin(k) + 2, -1, "padded", 64, 0);
    mark(begin(k) + 3, -1, "blocks", trouble_.blocks ? 8 : 4, 8);
  }
  void request(std::int64_t k) {
    trace::RequestRow row{
        .id = k + 1, .name = run_.name(std::string(1, static_cast<char>('A' + k))), .source = run_.name("server")};
    row.process_id = 1;
    row.arrival_ns = begin(trouble_.queue ? 0 : k) - 150;
    row.scheduled_ns = begin(k) - 100;
    row.first_token_ns = end(k) + 50;
    row.last_token_ns = end(kSteps - 1) + 50, row.end_ns = end(kSteps - 1) + 60;
    row.prompt_tokens = kPrompt, row.output_tokens = kSteps - k, row.cached_tokens = trouble_.cached;
    row.preemptions = trouble_.preempted && k == 0 ? 1 : 0;
    row.status = run_.name("finished");
    run_.add(row);
    if (trouble_.client) client(row);
    if (row.preemptions == 0) return;
    mark(begin(0) - 100, 0, "scheduled", 0, 0);
    mark(begin(3) - 200, 0, "preempted", 0, 0);
    mark(begin(6) - 100, 0, "scheduled", 0, 0);
  }

  // Wanted 300 before the server had it, sent 200 before; each token 70 later.
  void client(trace::RequestRow row) {
    row.id += 100, row.source = run_.name("client"), row.warm_up = row.id == 101;
    row.sent_ns = row.arrival_ns - 200, row.arrival_ns -= 300;
    row.scheduled_ns.reset(), row.cached_tokens.reset(), row.preemptions.reset();
    row.first_token_ns = *row.first_token_ns + 70, row.last_token_ns = row.end_ns = *row.last_token_ns + 70;
    run_.add(row);
    if (!row.warm_up) return;
    trace::SourceRow merged{.id = 1, .file = run_.name("client.llmprof"), .format = run_.name("run")};
    merged.clock_error_ns = 100;
    run_.add(merged);
  }

  Trouble trouble_;
  RuleRun run_;
};

constexpr const char* kRules[] = {"queueing",     "kv_pressure",           "preemption",
                                  "step_padding", "host_bound_scheduling", "prefix_cache_misses"};

TEST(RequestRules, AServerWithoutTroubleHasNone) {
  const Summary summary = Server({}).summary();
  for (const char* rule : kRules) expect_nothing(summary.diagnosis, rule);
}

TEST(TwoSidesOfARun, AreJoinedByName) {
  const Requests requests = Server({.client = true}).summary().requests;
  EXPECT_EQ(requests.source, "server");
  EXPECT_EQ(requests.warm_up, 1);  // as its client says
  ASSERT_TRUE(requests.sides);
  EXPECT_EQ(requests.sides->both, kRequests - 1);
  EXPECT_EQ(requests.sides->clock_error_ns, 100);
  ASSERT_EQ(requests.sides->intervals.size(), 5u);
  EXPECT_EQ(requests.sides->intervals[0].p50_ns, 100);           // client queue
  EXPECT_EQ(requests.sides->intervals[1].p50_ns, 200);           // before the engine
  EXPECT_EQ(requests.sides->intervals[2].p50_ns, 10'000);        // server TTFT
  EXPECT_EQ(requests.sides->intervals[3].p50_ns, std::nullopt);  // after: 70, less than the clocks can tell
  EXPECT_EQ(requests.sides->intervals[4].p50_ns, 100 + 200 + 10'000 + 70);
  EXPECT_EQ(std::ranges::count(requests.latencies, "client", &RequestLatency::source), 4);  // TTFT, TPOT, decode, E2E
}

TEST(RequestRules, AreAboutRequests) {
  RuleRun run;
  const Diagnosis said = run.diagnosis();
  for (const char* rule : kRules) expect_nothing(said, rule, "not applicable");
}

TEST(Queueing, IsMostOfTheTtftOfTheSlowest) {
  const Summary summary = Server({.queue = true}).summary();
  const Finding* found = find(summary.diagnosis, "queueing");
  ASSERT_NE(found, nullptr) << outcome(summary.diagnosis, "queueing").why;
  // F: arrived at 9,850, first step at 60,000 - 100, first token at 69,850: five steps of 9,800 lie in its 50,050 of
  // queue.
  EXPECT_DOUBLE_EQ(evidence(*found, "requests.queue_of_ttft"), 50'050.0 / 60'000);
  EXPECT_EQ(found->title, "P99 TTFT 60.0 us is 82 % queueing behind prefills of 32 tokens or more (A, B and 1 more)");
  EXPECT_DOUBLE_EQ(found->gain->ns, 50'050);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 60'000);
  EXPECT_TRUE(found->gain->latency);
  EXPECT_FALSE(found->gain->run_share);
  EXPECT_EQ(found->severity, Severity::kHigh);
}

TEST(KvPressure, IsTimeInWhichThoseWhoWaitFindNoBlocks) {
  const Summary summary = Server({.queue = true, .blocks = true}).summary();
  const Finding* found = find(summary.diagnosis, "kv_pressure");
  ASSERT_NE(found, nullptr) << outcome(summary.diagnosis, "kv_pressure").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "requests.waiting_blocks"), 0.5);  // steps 0 to 4 of ten
  // B to F are queued for 1 + 2 + 3 + 4 + 5 steps of 9,800; TTFT are 10,000 to 60,000.
  EXPECT_DOUBLE_EQ(found->gain->ns, 15 * 9'800);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 210'000);
  // A full cache for which nobody waits is none.
  expect_nothing(Server({.blocks = true}).summary().diagnosis, "kv_pressure");
}

TEST(Preemption, CostsWhatIsComputedAgain) {
  const Summary summary = Server({.preempted = true}).summary();
  const Finding* found = find(summary.diagnosis, "preemption");
  ASSERT_NE(found, nullptr) << outcome(summary.diagnosis, "preemption").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "requests.recomputed_tokens"), 34);
  EXPECT_DOUBLE_EQ(evidence(*found, "requests.preempted"), (3 * kEvery + 100) * 1e-9);
  // Step 6 has its 35 tokens and one of each other: 35 of 40 of the kernel's 9,780, a sixth of the idle 20.
  EXPECT_NEAR(found->gain->ns, (9'780.0 * 35 / 40 + 20.0 / 6) * 34 / 35, 2);
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 98'000);
}

TEST(StepPadding, IsTheEnginesPartOfTheProducts) {
  const Summary summary = Server({.padding = true}).summary();
  const Finding* found = find(summary.diagnosis, "step_padding");
  ASSERT_NE(found, nullptr) << outcome(summary.diagnosis, "step_padding").why;
  // Steps 0 to 5 have 32 to 37 tokens, the others 6, of 64 rows.
  const double used = 32 + 33 + 34 + 35 + 36 + 37 + 4 * 6;
  EXPECT_DOUBLE_EQ(evidence(*found, "requests.padding"), 1 - used / 640);
  EXPECT_NEAR(found->gain->ns, 9'780 * (640 - used) / 64, 10);
}

TEST(HostBoundScheduling, IsTimeBetweenSteps) {
  const Summary summary = Server({.slow_host = true}).summary();
  const Finding* found = find(summary.diagnosis, "host_bound_scheduling");
  ASSERT_NE(found, nullptr) << outcome(summary.diagnosis, "host_bound_scheduling").why;
  EXPECT_DOUBLE_EQ(found->gain->of_ns, 150 + 9 * kEvery + 5'000 + 60);
  EXPECT_DOUBLE_EQ(found->gain->ns, 95'210 - 10 * 5'000);
  EXPECT_FALSE(found->gain->latency);
}

TEST(PrefixCacheMisses, OfUnknownPromptsAreInconclusive) {
  const Summary summary = Server({.cached = 0}).summary();
  const Finding* found = find(summary.diagnosis, "prefix_cache_misses");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->verdict, Verdict::kInconclusive);
}

TEST(PrefixCacheMisses, AreSeenWhereFullCachesFindLess) {
  Summary summary;
  summary.requests.cached_share = 0.35, summary.requests.cached_tokens = 350, summary.requests.prompt_tokens = 1000;
  summary.requests.steps_ns = 10'000;
  summary.requests.use = {{.work = "products", .rule = "by new tokens", .requests_ns = 1300, .prefill_ns = 1300}};
  summary.requests.engine_time = {.full_requests = 5,
                                  .full_prompt = 500,
                                  .full_cached = 50,
                                  .free_requests = 5,
                                  .free_prompt = 500,
                                  .free_cached = 300};
  const RuleResult checked = find_rule("prefix_cache_misses")->check({summary, {}});
  ASSERT_EQ(checked.findings.size(), 1u);
  EXPECT_EQ(checked.findings[0].verdict, Verdict::kFound);
  // At 60 % instead of 10 %, 250 tokens of the 650 that were computed in 1,300 would not have been.
  EXPECT_NEAR(checked.findings[0].gain->ns, 1300.0 * 250 / 650, 1e-6);
}

}  // namespace
}  // namespace llmprof::analyze

#include "load/figures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "load/vllm_json.h"

namespace llmprof::load {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Sent at `sent` ms, a message with text at each of `texts` (ms).
RequestRecord request(std::uint64_t arrival, std::uint64_t sent, std::vector<std::uint64_t> texts) {
  RequestRecord out{.id = "r"};
  out.arrival_ns = arrival * kMs, out.sent_ns = sent * kMs;
  out.streamed = true, out.status = "finished";
  for (const std::uint64_t ms : texts) out.marks.push_back({ms * kMs, 4, 1});
  out.output_tokens = static_cast<std::int64_t>(texts.size()), out.counted_by = CountedBy::kUsage;
  out.prompt_tokens = 10;
  out.end_ns = texts.empty() ? out.sent_ns + kMs : out.marks.back().ns;
  return out;
}

LoadResult result_of(std::vector<RequestRecord> requests, std::uint64_t begin, std::uint64_t end) {
  LoadResult out;
  out.requests = std::move(requests);
  out.begin_ns = begin * kMs, out.end_ns = end * kMs;
  out.clocks = {{begin * kMs, 0, 0}, {end * kMs, 0, 0}};
  return out;
}

const LatencyRow& row(const Figures& figures, std::string_view metric) {
  for (const LatencyRow& each : figures.latency) {
    if (each.metric == metric && each.span == "whole") return each;
  }
  static const LatencyRow kNone;
  ADD_FAILURE() << "no " << metric;
  return kNone;
}

TEST(Latencies, OfOneRequest) {
  const Latencies l = latencies_of(request(90, 100, {150, 160, 180}));
  EXPECT_EQ(*l.ttft_ns, 50 * kMs);
  EXPECT_EQ(*l.tpot_ns, 15 * kMs);  // 30 ms over 2 tokens
  EXPECT_EQ(*l.e2e_ns, 80 * kMs);
  EXPECT_EQ(l.queue_ns, 10 * kMs);
  EXPECT_EQ(l.itls_ns, (std::vector<double>{10 * kMs, 20 * kMs}));
}

TEST(Latencies, AMessageWithoutTextOnlyOpensTheAnswer) {
  RequestRecord chat = request(0, 100, {150, 160});
  chat.marks.insert(chat.marks.begin(), {140 * kMs, 0, 0});
  chat.marks.push_back({170 * kMs, 0, 0});  // finish_reason
  const Latencies l = latencies_of(chat);
  EXPECT_EQ(*l.ttft_ns, 50 * kMs);
  EXPECT_EQ(*l.ttft_any_ns, 40 * kMs);
  EXPECT_EQ(*l.e2e_ns, 60 * kMs);
  EXPECT_EQ(l.itls_ns.size(), 1U);
}

TEST(Latencies, OneTokenHasNoTimePerToken) { EXPECT_FALSE(latencies_of(request(0, 100, {150})).tpot_ns); }

TEST(Latencies, AnAnswerInOnePieceHasOnlyItsWhole) {
  RequestRecord whole = request(100, 100, {});
  whole.streamed = false, whole.end_ns = 300 * kMs, whole.output_tokens = 5;
  const Latencies l = latencies_of(whole);
  EXPECT_FALSE(l.ttft_ns);
  EXPECT_FALSE(l.tpot_ns);
  EXPECT_EQ(*l.e2e_ns, 200 * kMs);
  EXPECT_FALSE(is_good(whole, {.ttft_ns = 1e12}));  // unknown is not good
  EXPECT_TRUE(is_good(whole, {.e2e_ns = 200e6}));
}

TEST(Goodput, WaitingInTheClientCounts) {
  const RequestRecord late = request(0, 100, {150, 160});  // 100 ms here, then 50
  EXPECT_FALSE(is_good(late, {.ttft_ns = 149e6}));
  EXPECT_TRUE(is_good(late, {.ttft_ns = 150e6}));
  EXPECT_TRUE(is_good(request(0, 0, {10}), {.tpot_ns = 1.0}));  // one token keeps every limit per token
  EXPECT_FALSE(is_good(request(0, 0, {10, 30}), {.tpot_ns = 19e6}));
}

TEST(Figures, PercentilesAreNumpys) {
  // TTFT 10, 20, 30, 40 ms: p50 25, p90 37, p99 39.7; population deviation sqrt(125).
  std::vector<RequestRecord> all;
  for (std::uint64_t i = 1; i <= 4; ++i) all.push_back(request(0, 0, {10 * i, 10 * i + 5}));
  for (RequestRecord& each : all) each.sent_ns = each.arrival_ns = 1;
  const Figures f = figures_of(result_of(all, 0, 100), {}, 0.5);
  const LatencyRow& ttft = row(f, "TTFT");
  EXPECT_EQ(ttft.count, 4);
  EXPECT_NEAR(ttft.mean_ns, 25e6, 2);
  EXPECT_NEAR(ttft.p50_ns, 25e6, 2);
  EXPECT_NEAR(ttft.p90_ns, 37e6, 2);
  EXPECT_NEAR(ttft.p99_ns, 39.7e6, 2);
  EXPECT_NEAR(ttft.std_ns, std::sqrt(125.0) * 1e6, 2);
  EXPECT_EQ(ttft.vllm, "TTFT");
  EXPECT_EQ(row(f, "TPOT").aiperf, "inter_token_latency");
  EXPECT_EQ(row(f, "ITL").aiperf, "inter_chunk_latency");
}

TEST(Figures, FailedOnesLeaveLatencyAndStayInTheDenominator) {
  std::vector<RequestRecord> all{request(0, 1, {11, 21}), request(0, 1, {500, 501}), request(0, 1, {11})};
  all[1].status = "cut", all[1].error = "x";
  RequestRecord warm = request(0, 1, {900});
  warm.warm_up = true;
  all.push_back(warm);
  const Figures f = figures_of(result_of(all, 0, 1000), {.ttft_ns = 100e6}, 0.5);
  EXPECT_EQ(row(f, "TTFT").count, 2);
  EXPECT_EQ(row(f, "TTFT").most_ns, 10e6);
  const SpanRow& whole = f.spans.front();
  EXPECT_EQ(whole.requests, 3);
  EXPECT_EQ(whole.finished, 2);
  EXPECT_EQ(whole.failed, 1);
  EXPECT_NEAR(*whole.good_share, 2.0 / 3, 1e-12);
  EXPECT_NEAR(*whole.goodput_per_s, 2, 1e-9);
  EXPECT_NEAR(whole.output_tokens_per_s, 3, 1e-9);
  EXPECT_NEAR(whole.total_tokens_per_s, 23, 1e-9);
  EXPECT_EQ(f.warm_up, 1);
  ASSERT_EQ(f.statuses.size(), 2U);
  EXPECT_EQ(f.statuses[1].status, "cut");
  EXPECT_EQ(f.statuses[1].example, "x");
}

TEST(Figures, TheWaitForTheCapIsNoLag) {
  std::vector<RequestRecord> all{request(10, 12, {20}), request(10, 60, {70})};
  all[1].capped = true;
  const Figures f = figures_of(result_of(all, 0, 100), {}, 0.5);
  EXPECT_EQ(f.client.scheduled, 1);
  EXPECT_EQ(f.client.lag_most_ns, 2e6);
  EXPECT_EQ(f.client.capped, 1);
  EXPECT_EQ(f.client.cap_wait_most_ns, 50e6);
  EXPECT_TRUE(f.client.kept);
  EXPECT_EQ(row(f, "client queue").count, 2);
  EXPECT_EQ(row(f, "TTFT, queued").most_ns, 60e6);  // 50 here, 10 there
}

TEST(Figures, AClientThatIsLateIsFlagged) {
  const Figures late = figures_of(result_of({request(0, 11, {20})}, 0, 100), {}, 0.5);
  EXPECT_FALSE(late.client.kept);
  EXPECT_NE(late.client.why.find("11.0 ms late"), std::string::npos);
  LoadResult busy = result_of({request(10, 10, {20})}, 0, 100);
  busy.cpu_share_most = 0.91;
  EXPECT_FALSE(figures_of(busy, {}, 0.5).client.kept);
  busy.cpu_share_most = 0.89;
  EXPECT_TRUE(figures_of(busy, {}, 0.5).client.kept);
}

TEST(Steady, WithoutRampAndDrain) {
  // One request from 0 to 1000 ms, four more from 200 to 600: concurrency 1, 5, 1.
  std::vector<RequestRecord> all{request(0, 1, {1000})};
  for (int i = 0; i < 4; ++i) all.push_back(request(200, 200, {600}));
  const LoadResult result = result_of(all, 0, 1000);
  const std::optional<Span> span = steady_span(result, 0.9);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->begin_ns, 200 * kMs);
  EXPECT_EQ(span->end_ns, 600 * kMs);
  EXPECT_EQ(steady_span(result, 0.2)->end_ns - steady_span(result, 0.2)->begin_ns, 990 * kMs);  // the first begins at 1 ms
  EXPECT_FALSE(steady_span(result_of({request(0, 1, {50})}, 0, 1000), 0.9));                     // 50 of 1000 ms
}

TEST(Steady, AnOpenLoopIsAveragedOverLongerTimes) {
  // A request of 10 ms every 20 ms: concurrency is 1 and 0 in turn, half of the time each.
  std::vector<RequestRecord> all;
  for (std::uint64_t i = 0; i < 50; ++i) all.push_back(request(i * 20, i * 20 + 1, {i * 20 + 11}));
  LoadResult result = result_of(all, 0, 1000);
  EXPECT_FALSE(steady_span(result, 0.5));
  const std::optional<Span> span = steady_span(result, 0.5, 40e6);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->end_ns - span->begin_ns, 1000 * kMs);
  EXPECT_EQ(figures_of(result, {}, 0.5).spans.size(), 1U);
  result.open_loop = true;
  EXPECT_EQ(figures_of(result, {}, 0.5).spans.size(), 2U);
}

TEST(Steady, ItsFiguresAreOfItsRequests) {
  std::vector<RequestRecord> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.push_back(request(i * 50, i * 50 + 1, {i * 50 + 25, i * 50 + 51}));
  const Figures f = figures_of(result_of(all, 0, 1001), {}, 0.5);
  ASSERT_EQ(f.spans.size(), 2U);
  EXPECT_EQ(f.spans[1].span, "steady");
  EXPECT_GE(f.spans[1].requests, 19);
  EXPECT_NEAR(f.spans[1].requests_per_s, 20, 1);
  EXPECT_EQ(f.spans[1].most_concurrency, 1);
}

TEST(Tokens, AreDividedByTextWhereOnlyTheSumIsKnown) {
  RequestRecord r = request(0, 1, {2, 3, 4});
  r.marks[0].bytes = 4, r.marks[1].bytes = 8, r.marks[2].bytes = 4;
  r.output_tokens = 8;
  divide_tokens(r);
  EXPECT_EQ(r.marks[0].tokens + r.marks[1].tokens + r.marks[2].tokens, 8U);
  EXPECT_EQ(r.marks[1].tokens, 4U);
  r.output_tokens = 3;
  divide_tokens(r);
  EXPECT_EQ(r.marks[1].tokens, 1U);  // as many messages as tokens: one each
}

TEST(VllmJson, UnitsAndDefinitions) {
  std::vector<RequestRecord> all{request(0, 100, {150, 160, 180}), request(0, 100, {200})};
  all[0].marks.insert(all[0].marks.begin(), {140 * kMs, 0, 0});  // vLLM's TTFT is that of this one
  all[0].marks.back().tokens = 1;
  all[1].status = "reset", all[1].error = "gone";
  const About about{.url = "u", .model = "m", .workload = "w", .endpoint = Endpoint::kChat, .slo = {.ttft_ns = 45e6}};
  const base::Json json = vllm_json(result_of(all, 100, 2100), about, {.rate = 4.0, .wall_ns = 0});
  EXPECT_EQ(json["request_rate"], 4.0);
  EXPECT_EQ(json["backend"], "openai-chat");
  EXPECT_EQ(json["completed"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_NEAR(json["duration"].get<double>(), 2.0, 1e-9);
  EXPECT_NEAR(json["ttfts"][0].get<double>(), 0.040, 1e-9);
  EXPECT_EQ(json["ttfts"][1], 0.0);
  EXPECT_EQ(json["itls"][0].size(), 3U);
  EXPECT_NEAR(json["itls"][0][2].get<double>(), 0.020, 1e-9);
  EXPECT_EQ(json["errors"][1], "reset: gone");
  EXPECT_NEAR(json["mean_ttft_ms"].get<double>(), 40, 1e-9);
  EXPECT_NEAR(json["mean_tpot_ms"].get<double>(), 20, 1e-9);  // (80 - 40) / 2
  EXPECT_NEAR(json["p99_e2el_ms"].get<double>(), 80, 1e-9);
  EXPECT_NEAR(json["output_throughput"].get<double>(), 1.5, 1e-9);
  EXPECT_NEAR(json["request_goodput"].get<double>(), 0, 1e-9);  // text came after 50 ms
  EXPECT_EQ(vllm_json(result_of(all, 100, 2100), about, {})["request_rate"], "inf");
}

}  // namespace
}  // namespace llmprof::load

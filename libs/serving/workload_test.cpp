#include "serving/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace llmprof::serving {
namespace {

using testing::HasSubstr;

Workload made(const WorkloadSpec& spec) {
  Result<Workload> workload = make_workload(spec);
  EXPECT_TRUE(workload) << (workload ? "" : workload.error().message);
  return workload ? std::move(*workload) : Workload();
}

struct Moments {
  double mean = 0, cv = 0;
};
Moments intervals(const Workload& workload) {
  double sum = 0, squares = 0, before = 0;
  for (const Request& request : workload.requests) {
    const double interval = (request.arrival_ns - before) * 1e-9;
    before = request.arrival_ns;
    sum += interval;
    squares += interval * interval;
  }
  const auto count = static_cast<double>(workload.requests.size());
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

TEST(Workload, ArrivalsHaveTheRateAndTheSpreadAskedFor) {
  WorkloadSpec spec;
  spec.requests = 50000;
  spec.rate = 8;
  EXPECT_NEAR(intervals(made(spec)).mean, 0.125, 0.002);
  EXPECT_NEAR(intervals(made(spec)).cv, 1, 0.02);
  spec.arrivals = Arrivals::kGamma;
  for (const double cv : {0.3, 1.0, 2.5}) {
    spec.cv = cv;
    EXPECT_NEAR(intervals(made(spec)).mean, 0.125, 0.005) << cv;
    EXPECT_NEAR(intervals(made(spec)).cv, cv, 0.05 * cv) << cv;
  }
  spec.arrivals = Arrivals::kConstant;
  EXPECT_NEAR(intervals(made(spec)).cv, 0, 1e-6);
}

TEST(Workload, ARampGrowsFromOneRateToTheOther) {
  WorkloadSpec spec;
  spec.requests = 40000;
  spec.arrivals = Arrivals::kRamp;
  spec.rate = 2;
  spec.rate_end = 6;
  const Workload workload = made(spec);
  const double duration = 1e9 * 2 * 40000 / 8;  // at a mean rate of 4
  EXPECT_NEAR(workload.requests.back().arrival_ns / duration, 1, 0.02);
  // Half of the time: 2 + 4/4 = 3 requests a second of 4.
  const auto early = std::count_if(workload.requests.begin(), workload.requests.end(),
                                   [&](const Request& request) { return request.arrival_ns < duration / 2; });
  EXPECT_NEAR(static_cast<double>(early) / 40000, 3.0 / 8, 0.01);
  spec.rate_end = 2;  // no growth is a Poisson process
  EXPECT_NEAR(intervals(made(spec)).mean, 0.5, 0.01);
}

TEST(Workload, TheSameSeedGivesTheSameRequests) {
  WorkloadSpec spec;
  spec.requests = 3;
  spec.rate = 10;
  spec.lengths = Lengths::kShareGpt;
  const Workload one = made(spec), two = made(spec);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(one.requests[i].arrival_ns, two.requests[i].arrival_ns);
    EXPECT_EQ(one.requests[i].prompt_tokens, two.requests[i].prompt_tokens);
  }
  // Splitmix64 with seed 1 begins with 0x910a2dec89025cc1: the first interval is -log(1 - 0.5665…) / 10.
  EXPECT_NEAR(one.requests[0].arrival_ns, -std::log1p(-double(0x910a2dec89025cc1 >> 11) * 0x1p-53) / 10 * 1e9, 1);
  spec.seed = 2;
  EXPECT_NE(made(spec).requests[0].arrival_ns, one.requests[0].arrival_ns);
}

TEST(Workload, LengthsAndPrefixes) {
  WorkloadSpec spec;
  spec.requests = 20000;
  spec.lengths = Lengths::kUniform;
  spec.prompt = 10;
  spec.prompt_most = 20;
  spec.output = 1;
  spec.output_most = 3;
  double prompts = 0;
  for (const Request& request : made(spec).requests) {
    ASSERT_TRUE(request.prompt_tokens >= 10 && request.prompt_tokens <= 20);
    ASSERT_TRUE(request.output_tokens >= 1 && request.output_tokens <= 3);
    prompts += request.prompt_tokens;
  }
  EXPECT_NEAR(prompts / 20000, 15, 0.1);
  spec.prefixes = 3;
  spec.prefix_tokens = 40;  // two blocks of 16 and a rest
  const Workload shared = made(spec);
  EXPECT_EQ(shared.content_ids.size(), 6U);
  for (const Request& request : shared.requests) {
    ASSERT_EQ(request.id_count, 2U);
    ASSERT_EQ(request.id_begin % 2, 0U);
    ASSERT_GE(request.prompt_tokens, 50);
  }
  spec.prefixes = 0;
  spec.lengths = Lengths::kShareGpt;
  double outputs = 0;
  prompts = 0;
  for (const Request& request : made(spec).requests) {
    prompts += request.prompt_tokens;
    outputs += request.output_tokens;
  }
  EXPECT_NEAR(prompts / 20000, 161, 8);
  EXPECT_NEAR(outputs / 20000, 338, 10);
}

TEST(Workload, WhatMakesNoSenseIsAnError) {
  const auto refused = [](auto change) {
    WorkloadSpec spec;
    change(spec);
    return !make_workload(spec);
  };
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.requests = 0; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.requests = kMostRequests + 1; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.rate = 0; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.rate = std::nan(""); }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.prompt = 0; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.output = -1; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.arrivals = Arrivals::kGamma, spec.cv = 0; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.arrivals = Arrivals::kRamp, spec.rate_end = -1; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.lengths = Lengths::kUniform, spec.prompt_most = 1; }));
  EXPECT_TRUE(refused([](WorkloadSpec& spec) { spec.prefixes = 1 << 20, spec.prefix_tokens = 1 << 20; }));
  EXPECT_FALSE(refused([](WorkloadSpec& spec) { spec.rate = 0, spec.concurrency = 4; }));
}

TEST(Trace, MooncakesLines) {
  const auto trace = parse_trace(
      "{\"timestamp\": 0, \"input_length\": 1030, \"output_length\": 5, \"hash_ids\": [3, 4, 5]}\n\r\n"
      "{\"timestamp\": 27482, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [3], \"priority\": 2}\n"
      "{\"timestamp\": 27482.5, \"input_length\": 7, \"output_length\": 1}",
      "t.jsonl");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->requests.size(), 3U);
  EXPECT_EQ(trace->content_tokens, 512);
  EXPECT_EQ(trace->requests[0].id_count, 3U);
  EXPECT_EQ(trace->requests[1].id_begin, 3U);
  EXPECT_EQ(trace->requests[1].priority, 2);
  EXPECT_EQ(trace->requests[2].arrival_ns, 27482.5e6);
  EXPECT_EQ(trace->requests[2].id_count, 0U);
}

TEST(Trace, TheSizeOfABlockIsInferredOrGiven) {
  const std::string_view line = R"({"timestamp": 0, "input_length": 40, "output_length": 5, "hash_ids": [3, 4]})";
  EXPECT_EQ(parse_trace(line, "t")->content_tokens, 16);
  EXPECT_EQ(parse_trace(line, "t", {.content_tokens = 20})->content_tokens, 20);
  EXPECT_FALSE(parse_trace(line, "t", {.content_tokens = 64}));
  const auto none =
      parse_trace(R"({"timestamp": 0, "input_length": 4, "output_length": 5, "hash_ids": [3, 4, 5]})", "t");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().hint, HasSubstr("how many tokens a hash id stands for"));
}

TEST(Trace, TimeScaleAndFirstRequests) {
  const std::string first = R"({"timestamp": 1700000000000, "input_length": 4, "output_length": 5})";
  const std::string second = R"({"timestamp": 1700000000003, "input_length": 4, "output_length": 5})";
  const auto trace = parse_trace(first + "\n" + second + "\n{", "t", {.time_scale = 2, .most_requests = 2});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->requests.size(), 2U);
  EXPECT_EQ(trace->requests[0].arrival_ns, 0);
  EXPECT_EQ(trace->requests[1].arrival_ns, 6e6);
}

TEST(Trace, WhatIsWrongIsNamedWithItsLine) {
  const std::string good = R"({"timestamp": 9, "input_length": 4, "output_length": 5})";
  for (const std::string_view wrong :
       {R"({"timestamp": 8, "input_length": 4, "output_length": 5})",  // out of order
        R"({"timestamp": -1, "input_length": 4, "output_length": 5})", R"({"timestamp": 9, "output_length": 5})",
        R"({"timestamp": 9, "input_length": 0, "output_length": 5})",
        R"({"timestamp": 9, "input_length": 4, "output_length": -5})",
        R"({"timestamp": 9, "input_length": 4.5, "output_length": 5})",
        R"({"timestamp": 9, "input_length": 4e18, "output_length": 5})",
        R"({"timestamp": 2e11, "input_length": 4, "output_length": 5})",
        R"({"timestamp": 1e300, "input_length": 4, "output_length": 5})",
        R"({"timestamp": "9", "input_length": 4, "output_length": 5})",
        R"({"timestamp": 9, "input_length": 16, "output_length": 5, "hash_ids": ["a"]})",
        R"({"timestamp": 9, "input_length": 16, "output_length": 5, "hash_ids": 7})", "[1, 2]", "{", "\x01\xff"}) {
    const auto trace = parse_trace(good + "\n\n" + std::string(wrong), "t.jsonl");
    ASSERT_FALSE(trace) << wrong;
    EXPECT_THAT(trace.error().message, HasSubstr("t.jsonl line 3")) << wrong;
  }
  EXPECT_FALSE(parse_trace("", "t"));
  EXPECT_FALSE(parse_trace("\n \n", "t"));
  EXPECT_FALSE(parse_trace(good, "t", {.time_scale = 0}));
}

}  // namespace
}  // namespace llmprof::serving

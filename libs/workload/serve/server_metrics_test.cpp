// The text of /metrics: well-formed, under vLLM's names, and what happened.

#include "workload/serve/server_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "workload/serve/testing/served.h"

namespace llmprof::workload {
namespace {

// The samples of a text, each of a family whose type was said before it, as Prometheus demands.
struct Samples {
  explicit Samples(const std::string& text) {
    static const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+))");
    std::istringstream lines(text);
    for (std::string line, family, type; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string hash, kind, name;
      if (line.starts_with("# ")) {
        words >> hash >> kind >> name;
        const bool again = kind == "HELP" && !families.insert(name).second;
        EXPECT_FALSE(again) << name << " stands twice";
        if (kind == "TYPE") family = name, words >> type;
        types[family] = type;
        continue;
      }
      std::smatch parts;
      EXPECT_TRUE(std::regex_match(line, parts, sample)) << line;
      const std::string base = parts[1];
      const bool part = base == family + "_bucket" || base == family + "_sum" || base == family + "_count";
      EXPECT_TRUE(type == "histogram" ? part : base == family) << line << " of " << family;
      EXPECT_TRUE(type != "counter" || base.ends_with("_total")) << base;
      const double value = std::stod(parts[3]);
      EXPECT_GE(value, 0) << line;
      values[base + "{" + parts[2].str() + "}"] = value;
      if (base.ends_with("_bucket")) {
        EXPECT_GE(value, last_bucket[family]) << line;
        last_bucket[family] = value;
      } else if (base.ends_with("_count")) {
        EXPECT_EQ(value, last_bucket[family]) << line;  // of le="+Inf"
      }
    }
  }
  double of(const std::string& name, const std::string& more = "") const {
    const std::string key = name + "{model_name=\"m\",engine=\"0\"" + more + "}";
    EXPECT_TRUE(values.contains(key)) << key;
    return values.contains(key) ? values.at(key) : -1;
  }
  std::set<std::string> families;
  std::map<std::string, std::string> types;
  std::map<std::string, double> values, last_bucket;
};

TEST(ServerMetrics, HasTheNamesOfVllm) {
  const ServerMetrics metrics("m", small_engine(10), 10);
  const Samples samples(metrics.text());
  for (const char* const name :
       {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "cache_config_info"})
    EXPECT_EQ(samples.types.at(std::string("vllm:") + name), "gauge") << name;
  for (const char* const name : {"prefix_cache_queries", "prefix_cache_hits", "num_preemptions", "prompt_tokens",
                                 "generation_tokens", "request_success"})
    EXPECT_EQ(samples.types.at(std::string("vllm:") + name + "_total"), "counter") << name;
  for (const char* const name :
       {"iteration_tokens_total", "time_to_first_token_seconds", "inter_token_latency_seconds",
        "request_time_per_output_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds", "request_inference_time_seconds",
        "request_prompt_tokens", "request_generation_tokens"})
    EXPECT_EQ(samples.types.at(std::string("vllm:") + name), "histogram") << name;
  EXPECT_EQ(samples.of("vllm:time_to_first_token_seconds_count"), 0);
}

TEST(ServerMetrics, CountsWhatHappened) {
  ServerMetrics metrics("m", small_engine(10), 10);
  constexpr std::int64_t kMs = 1'000'000;
  metrics.scheduled(7, 4);
  metrics.token(30 * kMs, true, 7);
  metrics.token(10 * kMs, false, 7);
  metrics.token(20 * kMs, false, 7);
  const RequestTimes times{.arrival_ns = 1 * kMs,
                           .queued_ns = 2 * kMs,
                           .scheduled_ns = 5 * kMs,
                           .first_token_ns = 31 * kMs,
                           .last_token_ns = 61 * kMs};
  metrics.ended({Finish::kLength, 7, 3, times});
  metrics.ended({Finish::kAborted, 9, 0, {.arrival_ns = 1, .queued_ns = 2, .last_token_ns = 5}});
  metrics.load(3, 2, 5);
  const Samples samples(metrics.text());
  EXPECT_EQ(samples.of("vllm:num_requests_running"), 3);
  EXPECT_EQ(samples.of("vllm:num_requests_waiting"), 2);
  EXPECT_EQ(samples.of("vllm:kv_cache_usage_perc"), 0.5);
  EXPECT_EQ(samples.of("vllm:prefix_cache_queries_total"), 7);
  EXPECT_EQ(samples.of("vllm:prefix_cache_hits_total"), 4);
  EXPECT_EQ(samples.of("vllm:prompt_tokens_total"), 7) << "the aborted one was never computed";
  EXPECT_EQ(samples.of("vllm:generation_tokens_total"), 3);
  EXPECT_EQ(samples.of("vllm:request_success_total", ",finished_reason=\"length\""), 1);
  EXPECT_EQ(samples.of("vllm:request_success_total", ",finished_reason=\"abort\""), 1);
  EXPECT_EQ(samples.of("vllm:request_success_total", ",finished_reason=\"stop\""), 0);
  const std::pair<const char*, double> kSums[] = {{"time_to_first_token", 0.030}, {"inter_token_latency", 0.030},
                                                  {"e2e_request_latency", 0.060}, {"request_queue_time", 0.003},
                                                  {"request_prefill_time", 0.026}, {"request_decode_time", 0.030},
                                                  {"request_inference_time", 0.056},
                                                  {"request_time_per_output_token", 0.015}};
  for (const auto& [name, sum] : kSums)
    EXPECT_NEAR(samples.of(std::string("vllm:") + name + "_seconds_sum"), sum, 1e-12) << name;
  EXPECT_EQ(samples.of("vllm:inter_token_latency_seconds_count"), 2);
  EXPECT_EQ(samples.of("vllm:request_prompt_tokens_sum"), 7);
  EXPECT_EQ(samples.of("vllm:request_generation_tokens_sum"), 3);
}

TEST(ServerMetrics, AValueOnABoundBelongsToIt) {
  Histogram histogram({1, 2, 5});
  for (const double value : {0.5, 1.0, 1.5, 5.0, 6.0}) histogram.add(value);
  std::string out;
  histogram.write(out, "h", "a=\"b\"");
  EXPECT_EQ(out,
            "h_bucket{a=\"b\",le=\"1\"} 2\nh_bucket{a=\"b\",le=\"2\"} 3\nh_bucket{a=\"b\",le=\"5\"} 4\n"
            "h_bucket{a=\"b\",le=\"+Inf\"} 5\nh_sum{a=\"b\"} 14\nh_count{a=\"b\"} 5\n");
}

TEST(ServerMetrics, AnyNameOfAModelIsALabel) {
  const ServerMetrics metrics("a\"b\\c\nd{}", small_engine(10), 10);
  const Samples samples(metrics.text());
  EXPECT_TRUE(samples.values.contains("vllm:num_requests_running{model_name=\"a\\\"b\\\\c d{}\",engine=\"0\"}"));
}

}  // namespace
}  // namespace llmprof::workload

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string_view>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"

namespace llmprof::analyze {

// The metrics of inference servers that are understood, one line each. From the servers' documentation.

enum class MetricRole : std::uint8_t { kNumber, kShare, kCounter, kLatency, kPrefixQueries, kPrefixHits };

struct KnownMetric {
  std::string_view name;  // of the family: without _bucket, _sum, _count
  std::string_view server, what;
  MetricRole role;
  std::string_view unit = "";
  double factor = 1;  // to the unit
};

std::span<const KnownMetric> known_metrics();

namespace {

struct Reading {
  std::optional<std::int64_t> ts_ns;
  double value = 0;
};
// By labels, in order of time.
using ReadingsBySource = std::map<std::string, std::vector<Reading>>;
using ByName = std::map<std::string, ReadingsBySource, std::less<>>;

// A counter that fell began again with the server.
double grown(const std::vector<Reading>& readings) {
  double sum = 0;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const double step = readings[i].value - readings[i - 1].value;
    sum += step >= 0 ? step : readings[i].value;
  }
  return sum;
}

Result<ByName> read_known(const trace::Run& run) {
  std::string names;
  for (const KnownMetric& metric : known_metrics()) {
    for (const std::string_view suffix : {"", "_bucket", "_sum", "_count"}) {
      if (suffix.empty() == (metric.role == MetricRole::kLatency)) continue;
      names += fmt::format("{}'{}{}'", names.empty() ? "" : ", ", metric.name, suffix);
    }
  }
  std::string sql(sql_of("metrics_known"));
  constexpr std::string_view kAsked = "IN ('')";
  sql.replace(sql.find(kAsked), kAsked.size(), "IN (" + names + ")");
  struct Row {
    std::string name, labels;
    std::optional<std::int64_t> ts_ns;
    double value = 0;
  };
  LLMPROF_LET(const trace::ResultTable table, run.query(sql));
  LLMPROF_LET(const std::vector<Row> rows, rows_as<Row>(table));
  ByName metrics;
  for (const Row& row : rows) metrics[row.name][row.labels].push_back({row.ts_ns, row.value});
  return metrics;
}

MetricGauge gauge_of(const KnownMetric& known, const ReadingsBySource& series) {
  MetricGauge gauge{
      .server = std::string(known.server), .what = std::string(known.what), .share = known.role == MetricRole::kShare};
  std::vector<double> sums;
  for (const auto& [labels, readings] : series) {
    gauge.last += readings.back().value;
    if (sums.size() < readings.size()) sums.resize(readings.size(), 0);
    for (std::size_t i = 0; i < readings.size(); ++i) sums[i] += readings[i].value;
  }
  gauge.highest = std::ranges::max(sums);
  if (gauge.share) {
    gauge.last /= static_cast<double>(series.size());
    gauge.highest /= static_cast<double>(series.size());
  }
  return gauge;
}

MetricCounter counter_of(const KnownMetric& known, const ReadingsBySource& series) {
  MetricCounter counter{
      .server = std::string(known.server), .what = std::string(known.what), .unit = std::string(known.unit)};
  std::optional<double> rate = 0;
  for (const auto& [labels, readings] : series) {
    counter.total += known.factor * readings.back().value;
    const auto begin = readings.front().ts_ns, end = readings.back().ts_ns;
    if (!begin || !end || *end <= *begin) rate.reset();
    if (rate) *rate += known.factor * grown(readings) / (static_cast<double>(*end - *begin) * 1e-9);
  }
  counter.rate_per_s = rate;
  return counter;
}

std::optional<double> bound_of(std::string_view labels) {
  const std::size_t at = labels.find("le=\"");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = labels.substr(at + 4, labels.find('"', at + 4) - at - 4);
  if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
  double bound = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return bound;
}

double last_total(const ReadingsBySource& series, bool between) {
  double sum = 0;
  for (const auto& [labels, readings] : series) sum += between ? grown(readings) : readings.back().value;
  return sum;
}

std::optional<MetricHistogram> histogram_of(const KnownMetric& known, const ByName& metrics) {
  const auto series = metrics.find(std::string(known.name) + "_bucket");
  if (series == metrics.end()) return std::nullopt;
  MetricHistogram histogram{.server = std::string(known.server), .what = std::string(known.what)};
  const auto sum_up = [&](bool between) {
    std::map<double, double> sums;
    for (const auto& [labels, readings] : series->second) {
      if (const auto bound = bound_of(labels)) sums[*bound] += between ? grown(readings) : readings.back().value;
    }
    std::vector<Bucket> buckets;
    for (const auto& [bound, count] : sums) buckets.push_back({bound, count});
    return buckets;
  };
  std::vector<Bucket> buckets = sum_up(true);
  histogram.between_scrapes = !buckets.empty() && buckets.back().count > 0;
  if (!histogram.between_scrapes) buckets = sum_up(false);
  if (buckets.empty() || buckets.back().count <= 0) return std::nullopt;
  histogram.count = buckets.back().count;
  if (const auto sum = metrics.find(std::string(known.name) + "_sum"); sum != metrics.end()) {
    histogram.mean_s = last_total(sum->second, histogram.between_scrapes) / histogram.count;
  }
  histogram.p50 = quantile_of(buckets, 0.5);
  histogram.p90 = quantile_of(buckets, 0.9);
  histogram.p99 = quantile_of(buckets, 0.99);
  return histogram;
}

void fill_scrapes(const ByName& known, Metrics& metrics) {
  std::optional<std::int64_t> begin, end;
  for (const auto& [name, series] : known) {
    for (const auto& [labels, readings] : series) {
      metrics.scrapes = std::max(metrics.scrapes, static_cast<std::int64_t>(readings.size()));
      const auto first = readings.front().ts_ns, last = readings.back().ts_ns;
      if (first && (!begin || *first < *begin)) begin = first;
      if (last && (!end || *last > *end)) end = last;
    }
  }
  if (begin && end && *end > *begin) metrics.time_ns = *end - *begin;
}

}  // namespace

MetricQuantile quantile_of(const std::vector<Bucket>& buckets, double fraction) {
  if (buckets.empty()) return {};
  const double rank = fraction * buckets.back().count;
  double low = 0, below = 0;
  for (const Bucket& bucket : buckets) {
    if (bucket.count >= rank && bucket.count > below) {
      if (std::isinf(bucket.bound)) return {.value_s = low, .low_s = low, .high_s = {}};
      const double part = (rank - below) / (bucket.count - below);
      return {.value_s = low + part * (bucket.bound - low), .low_s = low, .high_s = bucket.bound};
    }
    low = bucket.bound;
    below = std::max(below, bucket.count);
  }
  return {.value_s = low, .low_s = low, .high_s = {}};
}

Result<Metrics> server_metrics(const trace::Run& run) {
  Metrics metrics;
  LLMPROF_LET(const trace::ResultTable counts, run.query("SELECT count(*), count(DISTINCT name) FROM metric"));
  metrics.values = counts.rows[0][0].as_int();
  metrics.names = counts.rows[0][1].as_int();
  if (metrics.values == 0) return metrics;
  LLMPROF_LET(const ByName known, read_known(run));
  metrics.known_names = static_cast<std::int64_t>(known.size());
  fill_scrapes(known, metrics);
  double queries = 0, hits = 0;
  for (const KnownMetric& metric : known_metrics()) {
    if (metric.role == MetricRole::kLatency) {
      if (auto histogram = histogram_of(metric, known)) metrics.latencies.push_back(std::move(*histogram));
      continue;
    }
    const auto series = known.find(metric.name);
    if (series == known.end()) continue;
    if (metric.role == MetricRole::kNumber || metric.role == MetricRole::kShare) {
      metrics.gauges.push_back(gauge_of(metric, series->second));
      continue;
    }
    metrics.counters.push_back(counter_of(metric, series->second));
    if (metric.role == MetricRole::kPrefixQueries) queries += metrics.counters.back().total;
    if (metric.role == MetricRole::kPrefixHits) hits += metrics.counters.back().total;
  }
  if (queries > 0) metrics.prefix_hit_rate = hits / queries;
  return metrics;
}

namespace {

using Role = MetricRole;

constexpr KnownMetric kMetrics[] = {
    {"vllm:num_requests_running", "vLLM", "requests running", Role::kNumber},
    {"vllm:num_requests_waiting", "vLLM", "requests waiting", Role::kNumber},
    {"vllm:kv_cache_usage_perc", "vLLM", "KV cache in use", Role::kShare},
    {"vllm:gpu_cache_usage_perc", "vLLM", "KV cache in use", Role::kShare},  // before version 1
    {"vllm:time_to_first_token_seconds", "vLLM", "time to first token", Role::kLatency},
    {"vllm:inter_token_latency_seconds", "vLLM", "time between tokens", Role::kLatency},
    {"vllm:time_per_output_token_seconds", "vLLM", "time between tokens (older name)", Role::kLatency},
    {"vllm:request_time_per_output_token_seconds", "vLLM", "time per token of a request", Role::kLatency},
    {"vllm:e2e_request_latency_seconds", "vLLM", "whole request", Role::kLatency},
    {"vllm:request_queue_time_seconds", "vLLM", "in the queue", Role::kLatency},
    {"vllm:request_prefill_time_seconds", "vLLM", "prefill", Role::kLatency},
    {"vllm:request_decode_time_seconds", "vLLM", "decode", Role::kLatency},
    {"vllm:prompt_tokens_total", "vLLM", "prompt tokens", Role::kCounter, "tokens"},
    {"vllm:generation_tokens_total", "vLLM", "generated tokens", Role::kCounter, "tokens"},
    {"vllm:request_success_total", "vLLM", "requests finished", Role::kCounter, "requests"},
    {"vllm:num_preemptions_total", "vLLM", "preemptions", Role::kCounter},
    {"vllm:prefix_cache_queries_total", "vLLM", "prefix cache, tokens looked up", Role::kPrefixQueries, "tokens"},
    {"vllm:prefix_cache_hits_total", "vLLM", "prefix cache, tokens found", Role::kPrefixHits, "tokens"},
    {"vllm:estimated_flops_per_gpu_total", "vLLM", "FLOPs per GPU, estimated", Role::kCounter, "FLOP"},
    {"vllm:estimated_read_bytes_per_gpu_total", "vLLM", "bytes read per GPU, estimated", Role::kCounter, "B"},
    {"vllm:estimated_write_bytes_per_gpu_total", "vLLM", "bytes written per GPU, estimated", Role::kCounter, "B"},
    {"sglang:num_running_reqs", "SGLang", "requests running", Role::kNumber},
    {"sglang:num_queue_reqs", "SGLang", "requests waiting", Role::kNumber},
    {"sglang:token_usage", "SGLang", "KV cache in use", Role::kShare},
    {"sglang:cache_hit_rate", "SGLang", "prefix cache, found of what was looked up", Role::kShare},
    {"sglang:gen_throughput", "SGLang", "generated tokens per second", Role::kNumber},
    {"sglang:time_to_first_token_seconds", "SGLang", "time to first token", Role::kLatency},
    {"sglang:inter_token_latency_seconds", "SGLang", "time between tokens", Role::kLatency},
    {"sglang:time_per_output_token_seconds", "SGLang", "time per token of a request", Role::kLatency},
    {"sglang:e2e_request_latency_seconds", "SGLang", "whole request", Role::kLatency},
    {"sglang:prompt_tokens_total", "SGLang", "prompt tokens", Role::kCounter, "tokens"},
    {"sglang:generation_tokens_total", "SGLang", "generated tokens", Role::kCounter, "tokens"},
    {"sglang:num_requests_total", "SGLang", "requests", Role::kCounter, "requests"},
    {"sglang:estimated_flops_per_gpu_total", "SGLang", "FLOPs per GPU, estimated", Role::kCounter, "FLOP"},
    {"sglang:estimated_read_bytes_per_gpu_total", "SGLang", "bytes read per GPU, estimated", Role::kCounter, "B"},
    {"sglang:estimated_write_bytes_per_gpu_total", "SGLang", "bytes written per GPU, estimated", Role::kCounter, "B"},
    {"nv_inference_pending_request_count", "Triton", "requests waiting", Role::kNumber},
    {"nv_inference_request_success", "Triton", "requests finished", Role::kCounter, "requests"},
    {"nv_inference_request_failure", "Triton", "requests failed", Role::kCounter, "requests"},
    {"nv_inference_count", "Triton", "inferences", Role::kCounter},
    {"nv_inference_exec_count", "Triton", "batches executed", Role::kCounter},
    {"nv_inference_request_duration_us", "Triton", "time of requests, added up", Role::kCounter, "s", 1e-6},
    {"nv_inference_queue_duration_us", "Triton", "time in the queue, added up", Role::kCounter, "s", 1e-6},
    {"nv_inference_compute_infer_duration_us", "Triton", "time of inference, added up", Role::kCounter, "s", 1e-6},
};

}  // namespace

std::span<const KnownMetric> known_metrics() { return kMetrics; }

}  // namespace llmprof::analyze

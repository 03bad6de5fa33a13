#include "load/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/human.h"

namespace llmprof::load {
namespace {

constexpr std::size_t kBins = 100;
constexpr std::size_t kLeastBins = 10;  // a shorter part says little

double between(std::uint64_t from, std::uint64_t to) { return to >= from ? static_cast<double>(to - from) : 0; }

bool measured(const RequestRecord& request) { return !request.warm_up; }
bool sent(const RequestRecord& request) { return measured(request) && request.sent_ns > 0; }

// Requests outstanding in each bin, on average.
std::vector<double> concurrency(const LoadResult& result) {
  std::vector<double> bins(kBins, 0.0);
  const double duration = between(result.begin_ns, result.end_ns), width = duration / static_cast<double>(kBins);
  if (width <= 0) return bins;
  for (const RequestRecord& request : result.requests) {
    if (!sent(request)) continue;
    const double from = between(result.begin_ns, request.sent_ns),
                 to = std::min(duration, request.end_ns > 0 ? between(result.begin_ns, request.end_ns) : duration);
    for (auto bin = static_cast<std::size_t>(from / width); bin < kBins; ++bin) {
      const double begin = static_cast<double>(bin) * width;
      if (begin >= to) break;
      bins[bin] += std::max(0.0, std::min(to, begin + width) - std::max(from, begin)) / width;
    }
  }
  return bins;
}

// Each bin the mean of those within half a window of it.
std::vector<double> smoothed(const std::vector<double>& bins, std::size_t half) {
  std::vector<double> out;
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    const std::size_t begin = bin - std::min(bin, half), end = std::min(bins.size(), bin + half + 1);
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += bins[i];
    out.push_back(sum / static_cast<double>(end - begin));
  }
  return out;
}

// Over which concurrency is averaged.
double window_of(const LoadResult& result) {
  if (!result.open_loop) return 0;
  double busy_ns = 0;
  std::int64_t count = 0;
  for (const RequestRecord& request : result.requests) {
    if (sent(request) && request.finished()) busy_ns += between(request.sent_ns, request.end_ns), ++count;
  }
  return count == 0 ? 0 : std::min(4 * busy_ns / static_cast<double>(count), between(result.begin_ns, result.end_ns) / 5);
}

std::int64_t most_at_once(const LoadResult& result, const Span& span) {
  std::vector<std::pair<std::uint64_t, int>> changes;
  for (const RequestRecord& request : result.requests) {
    if (!sent(request)) continue;
    changes.emplace_back(request.sent_ns, 1);
    if (request.end_ns > 0) changes.emplace_back(request.end_ns, -1);
  }
  std::ranges::sort(changes);  // an end before a begin at the same moment
  std::int64_t now = 0, most = 0;
  for (const auto& [ns, change] : changes) {
    now += change;
    if (ns <= span.end_ns && ns >= span.begin_ns) most = std::max(most, now);
  }
  return most;
}

struct Metric {
  const char *metric, *vllm, *aiperf, *definition;
  std::function<void(const Latencies&, std::vector<double>&)> add;
};

const std::vector<Metric>& metrics() {
  const auto one = [](std::optional<double> Latencies::*value) {
    return [value](const Latencies& of, std::vector<double>& values) {
      if (of.*value) values.push_back(*(of.*value));
    };
  };
  const auto queued = [](std::optional<double> Latencies::*value) {
    return [value](const Latencies& of, std::vector<double>& values) {
      if (of.*value) values.push_back(of.queue_ns + *(of.*value));
    };
  };
  static const std::vector<Metric> kMetrics{
      {"TTFT", "", "time_to_first_token", "sent to first text", one(&Latencies::ttft_ns)},
      {"TTFT any", "TTFT", "", "sent to first message, empty or not", one(&Latencies::ttft_any_ns)},
      {"TPOT", "TPOT", "inter_token_latency", "(last text - first text) / (output tokens - 1)", one(&Latencies::tpot_ns)},
      {"ITL", "ITL", "inter_chunk_latency", "between messages with text",
       [](const Latencies& of, std::vector<double>& values) {
         values.insert(values.end(), of.itls_ns.begin(), of.itls_ns.end());
       }},
      {"E2E", "E2EL", "request_latency", "sent to last text", one(&Latencies::e2e_ns)},
      {"client queue", "", "", "due to sent",
       [](const Latencies& of, std::vector<double>& values) { values.push_back(of.queue_ns); }},
      {"TTFT, queued", "", "", "due to first text", queued(&Latencies::ttft_ns)},
      {"E2E, queued", "", "", "due to last text", queued(&Latencies::e2e_ns)},
  };
  return kMetrics;
}

double deviation(const std::vector<double>& values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

LatencyRow latency_row(const Metric& metric, std::string_view span, const std::vector<double>& values) {
  const serving::Distribution d = serving::distribution_of(values);
  return {std::string(span), metric.metric, metric.vllm, metric.aiperf, metric.definition, d.count, d.mean,
          deviation(values, d.mean), d.p50, d.p90, d.p95, d.p99, d.max};
}

using Chosen = std::vector<const RequestRecord*>;

void add_latency(const Chosen& requests, std::string_view span, bool capped, Figures& out) {
  std::vector<Latencies> all;
  for (const RequestRecord* request : requests) {
    if (request->finished()) all.push_back(latencies_of(*request));
  }
  // vLLM's own TTFT is of interest where it is another.
  const bool other = std::ranges::any_of(all, [](const Latencies& of) { return of.ttft_any_ns != of.ttft_ns; });
  for (const Metric& metric : metrics()) {
    const std::string_view name = metric.metric;
    if (name == "TTFT any" && !other) continue;
    if (!capped && (name == "client queue" || name.ends_with("queued"))) continue;
    std::vector<double> values;
    for (const Latencies& of : all) metric.add(of, values);
    if (!values.empty()) out.latency.push_back(latency_row(metric, span, values));
    if (name == "TTFT" && !other && !values.empty()) out.latency.back().vllm = "TTFT";
  }
}

SpanRow span_row(const LoadResult& result, const Span& span, std::string_view name, const Chosen& requests,
                 const serving::Slo& slo) {
  SpanRow row{.span = std::string(name), .begin_ns = between(result.begin_ns, span.begin_ns),
              .duration_ns = between(span.begin_ns, span.end_ns)};
  const double seconds = std::max(row.duration_ns, 1.0) * 1e-9;
  std::int64_t good = 0, ended = 0, prompts = 0;
  double tokens = 0, busy_ns = 0;
  for (const RequestRecord* request : requests) {
    ++row.requests;
    (request->finished() ? row.finished : row.failed) += 1;
    if (request->finished()) row.prompt_tokens += request->prompt_tokens, row.output_tokens += request->output_tokens;
    if (is_good(*request, slo)) ++good;
  }
  const auto inside = [&](std::uint64_t ns) { return ns >= span.begin_ns && ns <= span.end_ns; };
  for (const RequestRecord& request : result.requests) {
    if (!sent(request)) continue;
    busy_ns += between(std::max(request.sent_ns, span.begin_ns), std::min(request.end_ns, span.end_ns));
    if (!request.finished()) continue;
    if (inside(request.end_ns)) ++ended, prompts += request.prompt_tokens;
    if (!request.streamed && inside(request.end_ns)) tokens += static_cast<double>(request.output_tokens);
    if (!request.streamed) continue;
    std::int64_t marked = 0;
    for (const Mark& mark : request.marks) {
      marked += mark.tokens;
      if (inside(mark.ns)) tokens += mark.tokens;
    }
    // Tokens without text of their own come with the last message.
    if (inside(request.end_ns)) tokens += static_cast<double>(request.output_tokens - marked);
  }
  row.requests_per_s = static_cast<double>(ended) / seconds;
  row.output_tokens_per_s = tokens / seconds;
  row.total_tokens_per_s = (tokens + static_cast<double>(prompts)) / seconds;
  row.mean_concurrency = busy_ns / std::max(row.duration_ns, 1.0);
  row.most_concurrency = most_at_once(result, span);
  if (slo.any()) {
    row.goodput_per_s = static_cast<double>(good) / seconds;
    row.good_share = requests.empty() ? 0 : static_cast<double>(good) / static_cast<double>(requests.size());
  }
  return row;
}

ClientRow client_row(const LoadResult& result) {
  ClientRow row{.cpu_share = result.cpu_share, .cpu_share_most = result.cpu_share_most};
  std::vector<double> lags, waits;
  for (const RequestRecord& request : result.requests) {
    if (sent(request)) (request.capped ? waits : lags).push_back(between(request.arrival_ns, request.sent_ns));
  }
  const serving::Distribution lag = serving::distribution_of(lags), wait = serving::distribution_of(waits),
                              read = serving::distribution_of({result.read_lags_ns.begin(), result.read_lags_ns.end()});
  row.scheduled = lag.count, row.lag_p50_ns = lag.p50, row.lag_p99_ns = lag.p99, row.lag_most_ns = lag.max;
  row.capped = wait.count, row.cap_wait_p50_ns = wait.p50, row.cap_wait_p99_ns = wait.p99, row.cap_wait_most_ns = wait.max;
  row.read_lag_p99_ns = read.p99, row.read_lag_most_ns = read.max;
  const auto because = [&](std::string words) { row.kept = false, row.why += (row.why.empty() ? "" : "; ") + words; };
  if (row.lag_p99_ns > kMostLagNs)
    because(fmt::format("1 % of the requests were sent {} late or later", base::human_ns(row.lag_p99_ns)));
  if (row.cpu_share_most > kMostCpuShare)
    because(fmt::format("it needed {} of a core in its busiest second", base::human_percent(row.cpu_share_most)));
  return row;
}

void count(const LoadResult& result, Figures& out) {
  std::map<std::string, StatusRow> statuses;
  std::map<std::string, std::int64_t> counted;
  for (const RequestRecord& request : result.requests) {
    if (request.warm_up) {
      ++out.warm_up;
      out.warm_up_failed += request.finished() ? 0 : 1;
      continue;
    }
    StatusRow& row = statuses[request.status];
    row.status = request.status;
    ++row.requests;
    if (row.example.empty()) row.example = request.error;
    if (request.finished()) ++counted[std::string(words_of(request.counted_by))];
  }
  for (auto& [status, row] : statuses) out.statuses.push_back(std::move(row));
  std::ranges::stable_sort(out.statuses, std::greater(), &StatusRow::requests);
  for (const auto& [by, requests] : counted) out.counted.push_back({by, requests});
}

}  // namespace

Latencies latencies_of(const RequestRecord& request) {
  Latencies out{.ttft_ns = {}, .ttft_any_ns = {}, .tpot_ns = {}, .e2e_ns = {}};
  out.queue_ns = between(request.arrival_ns, request.sent_ns);
  const Mark *first = request.first(), *last = request.last();
  if (first == nullptr) {
    if (request.end_ns > 0) out.e2e_ns = between(request.sent_ns, request.end_ns);
    return out;
  }
  out.ttft_ns = between(request.sent_ns, first->ns);
  out.ttft_any_ns = between(request.sent_ns, request.marks.front().ns);
  out.e2e_ns = between(request.sent_ns, last->ns);
  if (request.output_tokens > 1)
    out.tpot_ns = between(first->ns, last->ns) / static_cast<double>(request.output_tokens - 1);
  std::uint64_t before_ns = 0;
  for (const Mark& mark : request.marks) {
    if (mark.bytes == 0) continue;
    if (before_ns > 0) out.itls_ns.push_back(between(before_ns, mark.ns));
    before_ns = mark.ns;
  }
  return out;
}

bool is_good(const RequestRecord& request, const serving::Slo& slo) {
  if (!request.finished()) return false;
  const Latencies of = latencies_of(request);
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const auto within = [](const std::optional<double>& limit, double value) { return !limit || value <= *limit; };
  // One token has no time per token: as in vLLM's bench it keeps every limit of it.
  const double tpot = request.output_tokens <= 1 ? 0 : of.tpot_ns.value_or(kUnknown);
  return within(slo.ttft_ns, of.queue_ns + of.ttft_ns.value_or(kUnknown)) && within(slo.tpot_ns, tpot) &&
         within(slo.e2e_ns, of.queue_ns + of.e2e_ns.value_or(kUnknown));
}

std::optional<Span> steady_span(const LoadResult& result, double level, double window_ns) {
  const double bin_ns = between(result.begin_ns, result.end_ns) / static_cast<double>(kBins);
  if (bin_ns <= 0) return std::nullopt;
  const std::vector<double> bins = smoothed(concurrency(result), static_cast<std::size_t>(window_ns / bin_ns / 2));
  const double peak = *std::ranges::max_element(bins);
  std::size_t best = 0, best_begin = 0;
  for (std::size_t begin = 0; begin < kBins && peak > 0;) {
    std::size_t end = begin;
    while (end < kBins && bins[end] >= level * peak) ++end;
    if (end - begin > best) best = end - begin, best_begin = begin;
    begin = std::max(end, begin + 1);
  }
  if (best < kLeastBins) return std::nullopt;
  const auto at = [&](std::size_t bin) {
    return result.begin_ns + static_cast<std::uint64_t>(static_cast<double>(bin) * bin_ns);
  };
  return Span{at(best_begin), at(best_begin + best)};
}

Figures figures_of(const LoadResult& result, const serving::Slo& slo, double steady_level) {
  Figures out;
  out.steady_level = steady_level;
  out.client = client_row(result);
  count(result, out);
  Chosen all;
  for (const RequestRecord& request : result.requests) {
    if (measured(request)) all.push_back(&request);
  }
  const bool capped = out.client.capped > 0;
  out.spans.push_back(span_row(result, {result.begin_ns, result.end_ns}, "whole", all, slo));
  add_latency(all, "whole", capped, out);
  const std::optional<Span> steady = steady_span(result, steady_level, window_of(result));
  if (!steady) {
    out.steady_why = "concurrency never stayed near its peak for a tenth of the time";
    return out;
  }
  Chosen in_steady;
  for (const RequestRecord* request : all) {
    if (request->sent_ns >= steady->begin_ns && request->sent_ns < steady->end_ns) in_steady.push_back(request);
  }
  constexpr std::size_t kLeastRequests = 10;
  if (in_steady.size() < kLeastRequests) {
    out.steady_why = fmt::format("only {} requests were sent while concurrency was near its peak", in_steady.size());
    return out;
  }
  out.spans.push_back(span_row(result, *steady, "steady", in_steady, slo));
  add_latency(in_steady, "steady", capped, out);
  return out;
}

}  // namespace llmprof::load

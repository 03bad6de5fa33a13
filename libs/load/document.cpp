#include "load/document.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::load {
namespace {

RequestLine line_of(const RequestRecord& request, std::uint64_t begin_ns) {
  const auto since = [&](std::uint64_t ns) {
    const double value = static_cast<double>(static_cast<std::int64_t>(ns - begin_ns));
    return ns > 0 ? std::optional(value) : std::nullopt;
  };
  RequestLine line{.id = request.id, .warm_up = request.warm_up, .status = request.status, .error = request.error};
  line.arrival_ns = since(request.arrival_ns).value_or(0);
  line.sent_ns = since(request.sent_ns), line.end_ns = since(request.end_ns);
  if (const Mark* first = request.first()) line.first_token_ns = since(first->ns);
  if (const Mark* last = request.last()) line.last_token_ns = since(last->ns);
  line.prompt_tokens = request.prompt_tokens, line.output_tokens = request.output_tokens;
  line.counted_by = words_of(request.counted_by), line.finish_reason = request.finish_reason;
  line.messages = static_cast<std::int64_t>(request.marks.size()), line.malformed = request.malformed;
  return line;
}

}  // namespace

std::string schedule_words(std::int64_t concurrency, std::int64_t most_outstanding) {
  if (concurrency > 0) return fmt::format("closed loop of {}", concurrency);
  if (most_outstanding > 0) return fmt::format("open loop, at most {} outstanding", most_outstanding);
  return "open loop";
}

LoadDocument document_of(const LoadResult& result, const Figures& figures, const About& about) {
  LoadDocument out{.url = about.url, .model = about.model, .endpoint = std::string(name_of(about.endpoint))};
  out.stream = about.stream;
  out.workload = about.workload;
  out.schedule = schedule_words(about.concurrency, about.most_outstanding);
  out.slo = {about.slo.ttft_ns, about.slo.tpot_ns, about.slo.e2e_ns};
  out.spans = figures.spans, out.latency = figures.latency, out.statuses = figures.statuses;
  out.counted = figures.counted, out.client = figures.client;
  out.steady_level = figures.steady_level, out.steady_why = figures.steady_why;
  out.warm_up = figures.warm_up, out.warm_up_failed = figures.warm_up_failed;
  out.not_sent = result.not_sent, out.interrupted = result.interrupted;
  out.library = HttpClient::version();
  out.notes = about.notes;
  const auto broken_off = std::ranges::count_if(result.requests, [](const RequestRecord& request) {
    return !request.warm_up && request.streamed && request.finished() && request.finish_reason.empty();
  });
  if (broken_off > 0)
    out.notes.push_back(fmt::format("{} of the finished answers ended with [DONE] and without a finish_reason: the server may "
                                    "have broken them off",
                                    broken_off));
  for (const RequestRecord& request : result.requests) out.requests.push_back(line_of(request, result.begin_ns));
  return out;
}

PointRow point_of(const Figures& figures, std::string_view span) {
  PointRow out;
  const auto found = std::ranges::find(figures.spans, span, &SpanRow::span);
  const SpanRow& row = found == figures.spans.end() ? figures.spans.front() : *found;
  out.requests_per_s = row.requests_per_s, out.output_tokens_per_s = row.output_tokens_per_s;
  out.mean_concurrency = row.mean_concurrency;
  out.kept = figures.client.kept;
  for (const LatencyRow& latency : figures.latency) {
    if (latency.span != row.span) continue;
    if (latency.metric == "TTFT") out.ttft_p50_ns = latency.p50_ns, out.ttft_p99_ns = latency.p99_ns;
    if (latency.metric == "TPOT") out.tpot_p50_ns = latency.p50_ns, out.tpot_p99_ns = latency.p99_ns;
    if (latency.metric == "E2E") out.e2e_p50_ns = latency.p50_ns, out.e2e_p99_ns = latency.p99_ns;
  }
  out.good_share = figures.spans.front().good_share;  // of all requests, ramp and drain included
  out.requests = figures.spans.front().requests, out.finished = figures.spans.front().finished;
  out.failed = figures.spans.front().failed;
  return out;
}

}  // namespace llmprof::load

#pragma once
// What `llmprof load` says, as rows by the names that its JSON has (libs/analyze/tables/load.md describes each).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/figures.h"

namespace llmprof::load {

struct SloRow {
  std::optional<double> ttft_ns, tpot_ns, e2e_ns;
};

// Moments are since the begin of the load.
struct RequestLine {
  std::string id;
  bool warm_up = false;
  std::string status, error;
  double arrival_ns = 0;
  std::optional<double> sent_ns, first_token_ns, last_token_ns, end_ns;
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  std::string counted_by, finish_reason;
  std::int64_t messages = 0, malformed = 0;
};

struct LoadDocument {
  std::string url, model, endpoint;
  bool stream = true;
  std::string workload, schedule;  // in words: "open loop", "closed loop of 8"
  SloRow slo;
  std::vector<SpanRow> spans;
  std::vector<LatencyRow> latency;
  std::vector<StatusRow> statuses;
  std::vector<CountedRow> counted;
  ClientRow client;
  double steady_level = 0;
  std::string steady_why;
  std::int64_t warm_up = 0, warm_up_failed = 0, not_sent = 0;
  bool interrupted = false;
  std::string library;  // that spoke HTTP
  std::vector<RequestLine> requests;
  std::vector<std::string> notes;
  std::string run;
};

struct About {  // what the figures do not know
  std::string url, model, workload;
  Endpoint endpoint = Endpoint::kCompletions;
  bool stream = true;
  std::int64_t concurrency = 0, most_outstanding = 0;
  serving::Slo slo;
  std::vector<std::string> notes;
};
std::string schedule_words(std::int64_t concurrency, std::int64_t most_outstanding);
LoadDocument document_of(const LoadResult& result, const Figures& figures, const About& about);

// One load of several.
struct PointRow {
  std::string label;  // "8 req/s", "concurrency 4"
  double value = 0;
  std::int64_t requests = 0, finished = 0, failed = 0;
  double requests_per_s = 0, output_tokens_per_s = 0, mean_concurrency = 0;
  std::optional<double> ttft_p50_ns, ttft_p99_ns, tpot_p50_ns, tpot_p99_ns, e2e_p50_ns, e2e_p99_ns;
  std::optional<double> good_share;
  bool good = false;  // it keeps the limits for the wanted share
  bool kept = true;   // the client did
  std::string run;
};
PointRow point_of(const Figures& figures, std::string_view span);

struct SeriesDocument {
  std::string url, model, endpoint;
  std::string workload, varied;  // rate, concurrency
  SloRow slo;
  std::optional<double> share;  // of requests that have to be good
  std::vector<PointRow> points;  // by value
  std::optional<double> rate;  // --find-rate: the highest that was good
  std::string why;             // the search ended
  bool interrupted = false;
  std::vector<std::string> notes;
};

}  // namespace llmprof::load

// What a report says of requests: how long they took, what steps did for them, who held whom up.

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/page.h"
#include "report/sections.h"

namespace llmprof::report {
namespace {

using analyze::RequestLatency;
using analyze::Requests;
using base::Json;

const RequestLatency* latency(const Requests& requests, std::string_view metric) {
  const auto found = std::ranges::find(requests.latencies, metric, &RequestLatency::metric);
  return found == requests.latencies.end() || found->source != requests.source ? nullptr : &*found;
}

std::string ns(std::int64_t value) { return base::human_ns(static_cast<double>(value)); }

std::string seen_by(const Requests& requests) {
  if (requests.source == "server") return "as the server's engine marked them";
  if (requests.source == "client") return "as their client saw them";
  return "as " + requests.source + " tells them";
}

std::string count_line(const Requests& requests) {
  std::string out = fmt::format("{} {}: {} finished", counted(requests.count, "request"), seen_by(requests), requests.finished);
  if (requests.failed > 0) out += fmt::format(", {} failed", requests.failed);
  if (requests.unfinished > 0) out += fmt::format(", {} without an end", requests.unfinished);
  if (requests.warm_up > 0) out += fmt::format("; {} more of warm-up are left out", requests.warm_up);
  return out + ".";
}

std::string rate_line(const Requests& requests) {
  // No prompt is empty: 0 is unknown.
  std::string out = requests.prompt_tokens > 0 ? fmt::format("{} of prompts", counted(requests.prompt_tokens, "token"))
                                               : "Tokens of prompts are unknown";
  out += requests.output_tokens > 0 ? fmt::format(", {} of output", counted(requests.output_tokens, "token"))
                                    : ", of output none are known";
  if (requests.requests_per_s && requests.output_tokens_per_s) {
    out += fmt::format(" in {}: {} requests/s, {} output tokens/s", ns(requests.duration_ns),
                       base::three_digits(*requests.requests_per_s), base::three_digits(*requests.output_tokens_per_s));
  }
  if (requests.cached_share.value_or(0) > 0)
    out += fmt::format("; {} of the prompts came from the prefix cache", base::human_percent(*requests.cached_share));
  if (requests.preemptions.value_or(0) > 0) out += fmt::format("; {}", counted(*requests.preemptions, "preemption"));
  if (requests.kv_peak_share)
    out += fmt::format("; at most {} of the KV cache in use", base::human_percent(*requests.kv_peak_share));
  return out + ".";
}

std::string division_lines(const Requests& requests) {
  std::string out = wrapped(fmt::format(
      "{} say which requests they worked for: {} = {} for requests + {} for the engine{}.", counted(requests.steps, "step"),
      ns(requests.steps_ns), ns(requests.requests_ns), ns(requests.engine_ns),
      requests.padding_share.value_or(0) > 0
          ? fmt::format(" ({} of all rows are padding)", base::human_percent(*requests.padding_share))
          : ""));
  if (requests.energy_j) {
    out += wrapped(fmt::format("Energy of these steps: {} J, {} J of it the engine's{}.", base::three_digits(*requests.energy_j),
                               base::three_digits(*requests.energy_engine_j),
                               requests.joules_per_1k_tokens
                                   ? fmt::format("; {} J per 1,000 output tokens", base::three_digits(*requests.joules_per_1k_tokens))
                                   : ""));
  } else if (!requests.energy_why.empty()) {
    out += wrapped(fmt::format("Energy: unknown, {}.", requests.energy_why));
  }
  return out;
}

// Those that waited longest for their first token.
Json slowest(const TableText& tables) {
  std::vector<const Json*> rows;
  for (const Json& row : tables.report()["requests"]["all"]) {
    if (!row["ttft_ns"].is_null() && row["warm_up"] == false) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, [](const Json* a, const Json* b) { return (*a)["ttft_ns"] > (*b)["ttft_ns"]; });
  Json out = Json::array();
  for (const Json* row : rows) out.push_back(*row);
  return out;
}

}  // namespace

std::string requests_section(const Page& page, const Style& style, const TableText& tables) {
  const Requests& requests = page.summary.requests;
  if (requests.all.empty()) return "";
  std::string out = style.heading("Requests") + wrapped(count_line(requests)) + wrapped(rate_line(requests));
  out += tables.section("requests.latencies[]", style);
  if (requests.steps > 0) {
    out += style.heading(tables.title("requests.use[]")) + division_lines(requests) +
           tables.rows("requests.use[]", tables.report()["requests"]["use"]) + tables.notes("requests.use[]");
  }
  const Json rows = slowest(tables);
  if (rows.empty()) return out;
  return out + style.heading(tables.title("requests.all[]")) + tables.rows("requests.all[]", rows, std::min<std::size_t>(page.top, 10)) +
         tables.notes("requests.all[]");
}

std::string request_lines(const Page& page) {
  const Requests& requests = page.summary.requests;
  if (requests.count == 0) return "";
  std::string out = fmt::format("{}, {} finished", counted(requests.count, "request"), requests.finished);
  if (requests.failed > 0) out += fmt::format(", {} failed", requests.failed);
  for (const char* metric : {"TTFT", "TPOT", "queue"}) {
    if (const RequestLatency* found = latency(requests, metric))
      out += fmt::format("; {} p50 {}, p99 {}", metric, ns(found->p50_ns), ns(found->p99_ns));
  }
  return wrapped(out + ". See requests.");
}

}  // namespace llmprof::report

// What a report says of requests: how long they took, what steps did for them, who held whom up.

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/page.h"
#include "report/sections.h"

namespace llmprof::report {
namespace {

using analyze::Requests;
using base::Json;

std::string ns(std::int64_t value) { return base::human_ns(static_cast<double>(value)); }

std::string seen_by(const Requests& requests) {
  if (requests.source == "server") return "as the server's engine marked them";
  if (requests.source == "client") return "as their client saw them";
  return "as " + requests.source + " tells them";
}

std::string count_line(const Requests& requests) {
  std::string out =
      fmt::format("{} {}: {} finished", counted(requests.count, "request"), seen_by(requests), requests.finished);
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
      "{} say which requests they worked for: {} = {} for requests + {} for the engine{}.",
      counted(requests.steps, "step"), ns(requests.steps_ns), ns(requests.requests_ns), ns(requests.engine_ns),
      requests.padding_share.value_or(0) > 0
          ? fmt::format(" ({} of all rows are padding)", base::human_percent(*requests.padding_share))
          : ""));
  if (requests.energy_j) {
    out += wrapped(fmt::format(
        "Energy of these steps: {} J, {} J of it the engine's{}.", base::three_digits(*requests.energy_j),
        base::three_digits(*requests.energy_engine_j),
        requests.joules_per_1k_tokens
            ? fmt::format("; {} J per 1,000 output tokens", base::three_digits(*requests.joules_per_1k_tokens))
            : ""));
  } else if (!requests.energy_why.empty()) {
    out += wrapped(fmt::format("Energy: unknown, {}.", requests.energy_why));
  }
  return out;
}

std::string money(double amount) { return fmt::format("{:.3g}", amount); }

std::string cost_line(const Requests& requests) {
  if (!requests.cost) return "";
  const analyze::RequestCost& cost = *requests.cost;
  if (!cost.per_1k_tokens)
    return wrapped(fmt::format("Cost of these steps: {}, of no output tokens.", money(cost.steps)));
  return wrapped(
      fmt::format("Cost: {} per 1,000 output tokens = {} of steps (idle time in them included) x {} at {} an hour; {} "
                  "of it the engine's. With all "
                  "time from first arrival to last end: {} per 1,000.",
                  money(*cost.per_1k_tokens), ns(requests.steps_ns), counted(cost.devices, "device"),
                  money(cost.price_per_hour), money(cost.engine), money(*cost.with_idle_per_1k_tokens)));
}

std::string preemption_line(const Requests& requests) {
  if (!requests.recomputed_ns || requests.preemptions.value_or(0) == 0) return "";
  return wrapped(fmt::format("{}: {} out of the batch, added up, and {} of steps for {} computed again.",
                             counted(*requests.preemptions, "preemption"), ns(requests.preempted_ns.value_or(0)),
                             ns(*requests.recomputed_ns), counted(requests.recomputed_tokens.value_or(0), "token")));
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// What the longest TTFT are made of, and what would shorten them.
std::string answer_line(const Requests& requests) {
  if (!requests.slow) return "";
  std::string out = requests.slow->sentence + ".";
  if (requests.replay && !requests.replay->sentence.empty()) out += " " + capital(requests.replay->sentence) + ".";
  return wrapped(out);
}

std::string slow_section(const Requests& requests, const Style& style, const TableText& tables) {
  if (!requests.slow) return "";
  constexpr std::size_t kFew = 5;
  const Json& slow = tables.report()["requests"]["slow"];
  std::string out = style.heading(tables.title("requests.slow.parts[]")) + answer_line(requests) +
                    tables.rows("requests.slow.parts[]", slow["parts"]) + tables.notes("requests.slow.parts[]");
  for (const char* path : {"requests.slow.slowest[]", "requests.slow.blamed[]"}) {
    const Json& rows = value_at(tables.report(), path);
    if (!rows.empty()) out += style.heading(tables.title(path)) + tables.rows(path, rows, kFew);
  }
  return out;
}

std::string replay_section(const Requests& requests, const Style& style, const TableText& tables) {
  if (!requests.replay) return "";
  const analyze::Replay& replay = *requests.replay;
  if (replay.back_test.empty()) return wrapped(fmt::format("Not simulated: {}.", replay.why));
  std::string out = style.heading(tables.title("requests.replay.back_test[]"));
  out += wrapped(fmt::format(
      "{}, {}. A step takes {} + {} per new token + {} per pair of tokens + {} per sequence (of {}, median "
      "error {}), then {} until the next.",
      replay.engine, replay.workload, base::human_ns(replay.step_ns), base::human_ns(replay.token_ns),
      base::human_ns(replay.pair_ns), base::human_ns(replay.sequence_ns), counted(replay.fitted_steps, "step"),
      base::human_percent(replay.fit_error.value_or(0)), base::human_ns(replay.between_ns)));
  out += tables.rows("requests.replay.back_test[]", tables.report()["requests"]["replay"]["back_test"]);
  if (!replay.reproduces) return out + wrapped(capital(replay.why) + " So nothing is said of other settings.");
  return out + tables.section("requests.replay.changes[]", style);
}

std::string sides_section(const Requests& requests, const Style& style, const TableText& tables) {
  if (!requests.sides) return "";
  const analyze::RequestSides& sides = *requests.sides;
  std::string out = style.heading(tables.title("requests.sides.intervals[]"));
  std::string line = fmt::format("{} seen by both, {} by the client alone, {} by the server alone.",
                                 counted(sides.both, "request"), sides.only_client, sides.only_server);
  line += !sides.clock_error_ns        ? " How far their clocks are apart is unknown, so nothing between them is told."
          : *sides.clock_error_ns == 0 ? " Both are on one clock."
                                       : fmt::format(" Their clocks may be {} apart.", ns(*sides.clock_error_ns));
  if (sides.impossible > 0)
    line += fmt::format(" {} had reached the server before they were sent: the clocks are not aligned.",
                        counted(sides.impossible, "request"));
  const Json& json = tables.report()["requests"]["sides"];
  out += wrapped(line) + tables.rows("requests.sides.intervals[]", json["intervals"]) +
         tables.notes("requests.sides.intervals[]");
  if (json["unmatched"].empty()) return out;
  return out + style.heading(tables.title("requests.sides.unmatched[]")) +
         tables.rows("requests.sides.unmatched[]", json["unmatched"]);
}

std::string use_section(const Requests& requests, const Style& style, const TableText& tables) {
  if (requests.steps == 0) return "";
  return style.heading(tables.title("requests.use[]")) + division_lines(requests) + cost_line(requests) +
         preemption_line(requests) + tables.rows("requests.use[]", tables.report()["requests"]["use"]) +
         tables.notes("requests.use[]") + tables.section("requests.amounts[]", style);
}

}  // namespace

std::string requests_section(const Page& page, const Style& style, const TableText& tables) {
  const Requests& requests = page.summary.requests;
  if (requests.all.empty()) return "";
  std::string out = style.heading("Requests") + wrapped(count_line(requests)) + wrapped(rate_line(requests)) +
                    tables.section("requests.latencies[]", style) + slow_section(requests, style, tables) +
                    replay_section(requests, style, tables) + sides_section(requests, style, tables) +
                    use_section(requests, style, tables);
  // Those that waited longest for their first token.
  const Json& rows = tables.report()["requests"]["all"];
  if (rows.empty()) return out;
  out += style.heading(tables.title("requests.all[]")) + tables.rows("requests.all[]", rows, SIZE_MAX) +
         tables.notes("requests.all[]");
  const auto more = requests.count - static_cast<std::int64_t>(rows.size());
  return more > 0 && rows.size() >= page.top
             ? out + wrapped(fmt::format("{} more requests; --top shows more, --json all.", more))
             : out;
}

std::string requests_block(const Page& page, const Style& style, const TableText& tables) {
  const Requests& requests = page.summary.requests;
  if (requests.count == 0) return "";
  Json rows = Json::array();
  for (const Json& row : tables.report()["requests"]["latencies"]) {
    const std::string metric = row["metric"];
    if (row["source"] == requests.source &&
        (metric == "queue" || metric == "TPOT" || metric.starts_with("TTFT")))
      rows.push_back(row);
  }
  const bool found = std::ranges::any_of(page.summary.diagnosis.findings, [](const analyze::Finding& finding) {
    return finding.rule == "queueing" && finding.verdict == analyze::Verdict::kFound;
  });
  return style.heading("Requests") + wrapped(count_line(requests)) + wrapped(rate_line(requests)) +
         tables.rows("requests.latencies[]#screen", rows) + (found ? "" : answer_line(requests));
}

}  // namespace llmprof::report

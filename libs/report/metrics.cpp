#include "report/metrics.h"

#include <fmt/format.h>

#include "base/human.h"

namespace llmprof::report {
namespace {

std::string counter_lines(const analyze::Metrics& metrics) {
  if (!metrics.prefix_hit_rate) return "";
  return wrapped(fmt::format("Prefix cache: {:.1f} % of the tokens that were looked up were found.",
                             100 * *metrics.prefix_hit_rate));
}

std::string latency_lines(const analyze::Metrics& metrics) {
  bool between = false, since = false;
  for (const analyze::MetricHistogram& latency : metrics.latencies) (latency.between_scrapes ? between : since) = true;
  return wrapped(fmt::format(
      "Percentiles are interpolated inside the buckets of the server's histograms; the truth lies "
      "between the bounds in brackets. Counted {}.",
      between && since ? "between the scrapes, where something was counted then; else since the server started"
      : between        ? "between the first scrape and the last"
                       : "since the server started"));
}

}  // namespace

std::string metrics_section(const Page& page, const Style& style, const TableText& tables) {
  const analyze::Metrics& metrics = page.summary.metrics;
  if (metrics.values == 0) return "";
  std::string out = style.heading(metrics.known_names > 0 ? "Server metrics" : "Metrics");
  std::string text = fmt::format("{} values of {}, {} of them understood", metrics.values,
                                 counted(metrics.names, "metric"), metrics.known_names);
  if (metrics.scrapes > 0) text += fmt::format("; {}", counted(metrics.scrapes, "scrape"));
  text += metrics.time_ns       ? fmt::format(" in {}", time_cell(metrics.time_ns))
          : metrics.scrapes > 1 ? " without times: no rates"
                                : "";
  out += wrapped(text + ".");
  const auto& json = tables.report()["metrics"];
  const auto table = [&](const char* path, const char* key) {
    return json[key].empty() ? "" : tables.rows(path, json[key], SIZE_MAX);
  };
  out += table("metrics.gauges[]", "gauges") + table("metrics.counters[]", "counters") +
         (metrics.counters.empty() ? "" : counter_lines(metrics)) + table("metrics.latencies[]", "latencies") +
         (metrics.latencies.empty() ? "" : latency_lines(metrics));
  if (metrics.known_names < metrics.names) out += wrapped("All of them: llmprof query RUN \"SELECT * FROM metric\".");
  return out;
}

}  // namespace llmprof::report

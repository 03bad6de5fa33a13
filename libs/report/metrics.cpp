#include "report/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::report {
namespace {

using analyze::MetricCounter;
using analyze::MetricGauge;
using analyze::MetricHistogram;
using analyze::MetricQuantile;
using base::Align;
using base::Json;
using base::maybe;

std::string seconds_text(double seconds) { return time_cell(std::llround(std::min(seconds, 1e9) * 1e9)); }

std::string quantile_text(const MetricQuantile& quantile) {
  if (!quantile.high) return fmt::format("over {}", seconds_text(quantile.low));
  return fmt::format("{} ({} to {})", seconds_text(quantile.value), seconds_text(quantile.low),
                     seconds_text(*quantile.high));
}

std::string gauge_text(const MetricGauge& gauge, double value) {
  return gauge.share ? fmt::format("{:.1f} %", 100 * value) : fmt::format("{:.6g}", value);
}

std::string gauge_table(const analyze::Metrics& metrics) {
  if (metrics.gauges.empty()) return "";
  base::TextTable table({{"server", Align::kLeft}, {"gauge", Align::kLeft, true}, {"last"}, {"highest"}});
  for (const MetricGauge& gauge : metrics.gauges) {
    table.add({gauge.server, gauge.what, gauge_text(gauge, gauge.last), gauge_text(gauge, gauge.highest)});
  }
  return table.render(kWidth);
}

std::string counter_table(const analyze::Metrics& metrics) {
  if (metrics.counters.empty()) return "";
  base::TextTable table({{"server", Align::kLeft},
                         {"counter", Align::kLeft, true},
                         {"since start"},
                         {"per second"},
                         {"unit", Align::kLeft}});
  for (const MetricCounter& counter : metrics.counters) {
    table.add({counter.server, counter.what, amount_cell(counter.total), amount_cell(counter.rate_per_s),
               counter.unit.empty() ? "-" : counter.unit});
  }
  std::string out = table.render(kWidth);
  if (metrics.prefix_hit_rate) {
    out += wrapped(fmt::format("Prefix cache: {:.1f} % of the tokens that were looked up were found.",
                               100 * *metrics.prefix_hit_rate));
  }
  return out;
}

std::string latency_table(const analyze::Metrics& metrics) {
  if (metrics.latencies.empty()) return "";
  base::TextTable table({{"latency", Align::kLeft, true}, {"count"}, {"mean"}, {"p50"}, {"p90"}, {"p99"}});
  bool between = false, since = false;
  for (const MetricHistogram& latency : metrics.latencies) {
    (latency.between_scrapes ? between : since) = true;
    table.add({latency.what, fmt::format("{:.0f}", latency.count), latency.mean_s ? seconds_text(*latency.mean_s) : "-",
               quantile_text(latency.p50), quantile_text(latency.p90), quantile_text(latency.p99)});
  }
  return table.render(kWidth) +
         wrapped(fmt::format(
             "Percentiles are interpolated inside the buckets of the server's histograms; the truth lies "
             "between the bounds in brackets. Counted {}.",
             between && since ? "between the scrapes, where something was counted then; else since the server started"
             : between        ? "between the first scrape and the last"
                              : "since the server started"));
}

Json quantile_json(const MetricQuantile& quantile) {
  return {{"value_s", quantile.value}, {"low_s", quantile.low}, {"high_s", maybe(quantile.high)}};
}

}  // namespace

std::string metrics_section(const Page& page, const Style& style) {
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
  out += gauge_table(metrics) + counter_table(metrics) + latency_table(metrics);
  if (metrics.known_names < metrics.names) out += wrapped("All of them: llmprof query RUN \"SELECT * FROM metric\".");
  return out;
}

Json metrics_json(const Page& page) {
  const analyze::Metrics& metrics = page.summary.metrics;
  if (metrics.values == 0) return nullptr;
  Json gauges = Json::array(), counters = Json::array(), latencies = Json::array();
  for (const MetricGauge& gauge : metrics.gauges) {
    gauges.push_back({{"server", gauge.server},
                      {"what", gauge.what},
                      {"unit", gauge.share ? "share" : ""},
                      {"last", gauge.last},
                      {"highest", gauge.highest}});
  }
  for (const MetricCounter& counter : metrics.counters) {
    counters.push_back({{"server", counter.server},
                        {"what", counter.what},
                        {"unit", counter.unit},
                        {"total", counter.total},
                        {"rate_per_s", maybe(counter.rate_per_s)}});
  }
  for (const MetricHistogram& latency : metrics.latencies) {
    latencies.push_back({{"server", latency.server},
                         {"what", latency.what},
                         {"count", latency.count},
                         {"mean_s", maybe(latency.mean_s)},
                         {"p50", quantile_json(latency.p50)},
                         {"p90", quantile_json(latency.p90)},
                         {"p99", quantile_json(latency.p99)},
                         {"between_scrapes", latency.between_scrapes}});
  }
  return {{"values", metrics.values},
          {"names", metrics.names},
          {"known_names", metrics.known_names},
          {"scrapes", metrics.scrapes},
          {"time_ns", maybe(metrics.time_ns)},
          {"gauges", gauges},
          {"counters", counters},
          {"latencies", latencies},
          {"prefix_hit_rate", maybe(metrics.prefix_hit_rate)}};
}

}  // namespace llmprof::report

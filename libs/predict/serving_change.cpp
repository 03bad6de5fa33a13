#include "predict/serving_change.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "predict/run/predict_steps.h"

namespace llmprof::predict {
namespace {

using serving::Distribution;
using serving::Metrics;

struct Metric {
  std::string_view name, label;
  Distribution Metrics::*of;
};
constexpr Metric kMetrics[] = {{"ttft", "TTFT", &Metrics::ttft_ns},
                               {"tpot", "TPOT", &Metrics::tpot_ns},
                               {"itl", "ITL", &Metrics::itl_ns},
                               {"e2e", "E2E", &Metrics::e2e_ns}};
struct Statistic {
  std::string_view name;
  double Distribution::*of;
};
constexpr Statistic kStatistics[] = {{"mean", &Distribution::mean},
                                     {"p50", &Distribution::p50},
                                     {"p90", &Distribution::p90},
                                     {"p99", &Distribution::p99}};

std::optional<double> ratio_of(double before, double after) {
  return before > 0 ? std::optional(after / before) : std::nullopt;
}

std::string interval(double low_ns, double high_ns) {
  return fmt::format("{} … {}", base::human_ns(low_ns), base::human_ns(high_ns));
}

ServingSide side_of(const ServingInput& input, const ServingForecast& forecast) {
  const std::string scaled = input.other_tables.empty() ? "" : "; scaled operators count as what they are scaled from";
  return {.kv_blocks = forecast.rules.num_gpu_blocks,
          .block_tokens = forecast.rules.block_size,
          .blocks_source = forecast.blocks_derived ? "rule" : "given",
          .stands_on = stands_on_words(forecast.stands_on) + scaled,
          .step_error = forecast.error};
}

std::vector<LatencyChange> latency_of(const ServingForecast& before, const ServingForecast& after) {
  std::vector<LatencyChange> rows;
  for (const Metric& metric : kMetrics) {
    if ((before.metrics.*metric.of).count == 0 || (after.metrics.*metric.of).count == 0) continue;
    for (const Statistic& statistic : kStatistics) {
      const auto of = [&](const Metrics& metrics) { return (metrics.*metric.of).*statistic.of; };
      LatencyChange row{.metric = metric.name, .statistic = statistic.name};
      row.label = fmt::format("{} {}", metric.label, statistic.name);
      row.before_ns = of(before.metrics), row.before_low_ns = of(before.low), row.before_high_ns = of(before.high);
      row.after_ns = of(after.metrics), row.after_low_ns = of(after.low), row.after_high_ns = of(after.high);
      row.ratio = ratio_of(row.before_ns, row.after_ns);
      row.before_interval = interval(row.before_low_ns, row.before_high_ns);
      row.after_interval = interval(row.after_low_ns, row.after_high_ns);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

ServingChange change_of(const ServingInput& before_input, const ServingForecast& before,
                        const ServingInput& after_input, const ServingForecast& after) {
  ServingChange out{.model = before_input.config.name, .device = before_input.device.device.name};
  out.device_after = after_input.device.device.name;
  const serving::EngineRules& rules = after.rules;
  out.engine = rules.version.empty() ? rules.engine : rules.engine + " " + rules.version;
  out.workload = before_input.workload.description;
  out.latency = latency_of(before, after);
  const auto add = [&](std::string_view name, std::string_view unit, double a, double b) {
    out.amounts.push_back({name, unit, a, b, ratio_of(a, b)});
  };
  const auto both = [&](std::string_view name, std::string_view unit, auto value) {
    add(name, unit, static_cast<double>(value(before)), static_cast<double>(value(after)));
  };
  using F = ServingForecast;
  both("requests completed", "", [](const F& f) { return f.metrics.completed; });
  both("requests/s", "", [](const F& f) { return f.metrics.requests_per_s; });
  both("output tokens/s", "", [](const F& f) { return f.metrics.output_tokens_per_s; });
  both("output tokens/s, least", "", [](const F& f) { return f.low.output_tokens_per_s; });
  both("output tokens/s, most", "", [](const F& f) { return f.high.output_tokens_per_s; });
  if (before.metrics.goodput_per_s && after.metrics.goodput_per_s)
    both("requests/s that keep the SLO", "", [](const F& f) { return *f.metrics.goodput_per_s; });
  both("KV blocks", "", [](const F& f) { return f.rules.num_gpu_blocks; });
  both("tokens in the KV cache", "", [](const F& f) { return (f.rules.num_gpu_blocks - 1) * f.rules.block_size; });
  both("KV cache, a token", "B", [](const F& f) { return f.memory.kv_bytes_per_token; });
  both("weights, a device", "B", [](const F& f) { return f.memory.weights_bytes; });
  both("KV cache in use, peak", "1", [](const F& f) { return f.metrics.kv_peak_share; });
  both("preemptions", "", [](const F& f) { return f.metrics.preemptions; });
  both("devices busy", "1", [](const F& f) { return f.metrics.device_busy_share; });
  both("steps", "", [](const F& f) { return f.simulation.step_count; });
  add("devices", "", static_cast<double>(before_input.parallel.ranks() * before_input.replicas),
      static_cast<double>(after_input.parallel.ranks() * after_input.replicas));
  out.before = side_of(before_input, before), out.after = side_of(after_input, after);
  for (const auto& [notes, others, word] :
       {std::tuple{&before.notes, &after.notes, "before: "}, std::tuple{&after.notes, &before.notes, "after: "}}) {
    for (const std::string& note : *notes) {
      const bool shared = std::ranges::find(*others, note) != others->end();
      const std::string text = shared ? note : word + note;
      if (std::ranges::find(out.notes, text) == out.notes.end()) out.notes.push_back(text);
    }
  }
  return out;
}

}  // namespace llmprof::predict

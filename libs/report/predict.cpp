#include "report/predict.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "report/layout.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using base::human_count;
using base::human_ns;
using base::human_percent;
using base::Json;
using predict::BacktestRow;
using predict::ServingDocument;

constexpr std::string_view kSteps = "llmprof.predict", kServing = "llmprof.predict_serving";

std::string joules(double j) { return j < 0.1 ? base::three_digits(j * 1e3) + " mJ" : base::three_digits(j) + " J"; }

std::string change(double fraction) { return fmt::format("{:+.1f} %", fraction * 100); }

std::string head(const ServingPage& page, const Style& style) {
  const ServingDocument& d = page.document;
  std::string on = d.device;
  if (d.split.devices > 1) {
    on = fmt::format("{} x {} (tensor parallel {}, {})", d.split.devices, on, d.split.tensor,
                     counted(d.split.replicas, "replica"));
  }
  std::string out = style.heading(fmt::format("Predicted, not measured: {}, {}", d.model, d.engine)).substr(1);
  out += wrapped(fmt::format("On {}. {}. At most {} requests and {} tokens a step; {} KV blocks of {} tokens{}.", on,
                             d.workload, page.rules.max_num_seqs, page.rules.max_num_batched_tokens, d.memory.kv_blocks,
                             d.memory.block_tokens, d.memory.blocks_source == "rule" ? " (by the engine's rule)" : ""));
  std::string basis;
  const auto part = [&](std::string_view what, double share) {
    if (share > 0) basis += fmt::format("{}{} {}", basis.empty() ? "" : ", ", what, human_percent(share));
  };
  const predict::StandsOnRow& s = d.stands_on;
  part("measured operators", s.measured), part("interpolated", s.interpolated), part("extrapolated", s.extrapolated);
  part("the bare roof", s.roof), part("stated costs", s.assumed);
  return out + wrapped(fmt::format("Stands on {} (of {} of device time).", basis, human_ns(s.device_ns)));
}

std::string throughput_lines(const ServingDocument& d) {
  const predict::ThroughputRow& t = d.throughput;
  std::string out = wrapped(
      fmt::format("{} in {}: {} requests/s, {} output tokens/s ({} … {}), {} tokens/s with prompts.",
                  counted(t.completed, "request"), human_ns(t.duration_ns), base::three_digits(t.requests_per_s),
                  human_count(t.output_tokens_per_s), human_count(t.output_tokens_per_s_low),
                  human_count(t.output_tokens_per_s_high), human_count(t.total_tokens_per_s)));
  if (t.goodput_per_s) {
    out += wrapped(fmt::format("Goodput: {} requests/s keep the SLO, {} of all requests.",
                               base::three_digits(*t.goodput_per_s), human_percent(t.good_share.value_or(0))));
  }
  const predict::LoadRow& l = d.load;
  return out +
         wrapped(fmt::format(
             "{} ({} as one CUDA graph, {} piecewise, {} eager); devices busy {} of the time. KV cache {} full at "
             "the peak, {} on the mean; {}; {} of prompt tokens from the prefix cache.",
             counted(l.steps, "step"), l.graph_steps, l.piecewise_steps, l.eager_steps,
             human_percent(l.device_busy_share), human_percent(l.kv_peak_share), human_percent(l.kv_mean_share),
             counted(l.preemptions, "preemption"), human_percent(l.cached_share)));
}

std::string trust_lines(const ServingDocument& d) {
  std::string out = wrapped(fmt::format("Intervals: all steps {:.2f} to {:.2f} times as long as predicted: {}.",
                                        d.step_error.least, d.step_error.most, d.step_error.why));
  if (d.backtest) {
    const BacktestRow& b = *d.backtest;
    out += wrapped(
        fmt::format("Nearest back-test ({}, {}): mean TTFT {}, TPOT {}, E2E {}, at worst {} (p50 and p99 included); {} "
                    "of {} statistics in their interval.",
                    b.name, b.basis, change(b.ttft_mean_error), change(b.tpot_mean_error), change(b.e2e_mean_error),
                    change(b.worst_error), b.covered, b.stated));
  }
  for (const std::string& note : d.notes) out += wrapped("- " + note + ".");
  return out;
}

std::string run_line(const std::string& run) {
  return run.empty() ? wrapped("-o NAME writes it as a run: report, diff, query and plot read it.")
                     : wrapped(fmt::format("Written to {}: llmprof report {}", run, run));
}

std::string nearest_line(const predict::NearestStepRow& each) {
  const predict::StepCheckRow& s = each.step;
  const std::string size = s.stage == "decode" ? fmt::format("context {:.0f}", s.context)
                                               : fmt::format("prompts of {:.0f} tokens", s.tokens);
  return wrapped(fmt::format(
      "Nearest back-test of {} ({}, from {}; batch {}, {}, {}): measured {}, predicted {}, {}, {} its interval. All "
      "{} of this stage: median error {}, worst {}, {} in their intervals.",
      each.stage, each.name, each.basis, s.batch, size, s.launch, human_ns(s.measured_ns), human_ns(s.predicted_ns),
      change(s.error), s.inside ? "inside" : "outside", counted(each.sizes, "size"), human_percent(each.median_error),
      change(each.worst_error), each.covered));
}

}  // namespace

std::string to_text(const ServingPage& page, bool colour) {
  const ServingDocument& d = page.document;
  const Style style{colour};
  const Json all = base::fields_json(d);
  const TableText tables(all);
  const auto section = [&](std::string_view key) {
    const std::string path = fmt::format("{}.{}[]", kServing, key);
    const Json& rows = all[std::string(key)];
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  std::string out = head(page, style) + section("latency") + "\n" + throughput_lines(d) + section("comparison") +
                    style.heading("How far to trust it") + trust_lines(d) + run_line(d.run);
  if (!page.full) return out + wrapped("--full: rules of the engine with their sources, and the course over time.");
  return out + section("steps") + section("rules");
}

void to_json(const ServingPage& page, Json& out) { out.update(described_fields(kServing, page.document)); }

std::string to_text(const StepsPage& page, bool colour) {
  const predict::StepsDocument& d = page.document;
  const Style style{colour};
  const Json all = base::fields_json(d);
  const TableText tables(all);
  const auto section = [&](std::string_view key) {
    const std::string path = fmt::format("{}.{}[]", kSteps, key);
    const Json& rows = all[std::string(key)];
    return rows.empty() ? "" : style.heading(tables.title(path)) + tables.rows(path, rows) + tables.notes(path);
  };
  std::string out = style.heading(fmt::format("Predicted, not measured: {} on {}", d.model, d.device)).substr(1);
  std::string times = fmt::format("Batch {}", d.batch);
  const auto ranged = [&](const std::optional<double>& ns) {
    return fmt::format("{} ({} … {})", human_ns(*ns), human_ns(*ns * d.step_error.least),
                       human_ns(*ns * d.step_error.most));
  };
  if (d.ttft_ns) times += fmt::format(", prompt {}: TTFT {}", d.prompt, ranged(d.ttft_ns));
  if (d.tpot_ns) {
    times += fmt::format(", context {}: TPOT {}, {} tokens/s", d.context, ranged(d.tpot_ns),
                         human_count(d.tokens_per_s.value_or(0)));
  }
  out += wrapped(times + ".");
  const predict::NeedsRow& m = d.needs;
  out += wrapped(fmt::format(
      "Memory: weights {}, KV cache {}, activations {}: {}{}.", base::human_bytes(m.weights_bytes),
      base::human_bytes(m.kv_bytes), base::human_bytes(m.activation_bytes), base::human_bytes(m.total_bytes),
      !m.device_bytes ? ""
      : m.fits        ? fmt::format(" of {}", base::human_bytes(*m.device_bytes))
               : fmt::format(", more than the {} of the device: it does not fit", base::human_bytes(*m.device_bytes))));
  for (const predict::EnergyRow& e : d.energy) {
    out += wrapped(fmt::format("Energy of {}: {}{} per token, at {:.0f} W ({}).", e.stage, e.bound ? "at most " : "",
                               joules(e.joules_per_token), e.watts, e.source));
  }
  out += section("stages") + section("operators") + section("variants") + style.heading("How far to trust it");
  out += wrapped(fmt::format("Intervals: steps {:.2f} to {:.2f} times as long as predicted: {}.", d.step_error.least,
                             d.step_error.most, d.step_error.why));
  for (const predict::NearestStepRow& each : d.backtest) out += nearest_line(each);
  if (d.backtest.empty()) {
    out += wrapped(
        "No back-test of steps is known: how wrong whole steps are was not measured. "
        "llmprof predict --backtest runs those of servings.");
  }
  for (const std::string& note : d.notes) out += wrapped("- " + note + ".");
  return out + run_line(d.run);
}

void to_json(const StepsPage& page, Json& out) { out.update(described_fields(kSteps, page.document)); }

}  // namespace llmprof::report

#include "report/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/grammar.h"
#include "base/human.h"
#include "base/text_table.h"
#include "report/gpu.h"
#include "report/idle.h"
#include "report/steps.h"

namespace llmprof::report {
namespace {

using analyze::Part;
using analyze::Stage;
using base::Align;
using base::TextTable;

std::string left_out(std::size_t all, std::size_t top, std::string_view what) {
  return all > top ? fmt::format("  {} more {}; --top shows more.\n", all - top, what) : "";
}

std::string stage_name(const std::string& name) { return name.empty() ? "(none)" : name; }

// "mlp.gate_proj, mlp.up_proj" -> "mlp.gate_proj +1": the first used most time.
std::string first_of(const std::string& ops) {
  const auto more = std::count(ops.begin(), ops.end(), ',');
  return more == 0 ? ops : fmt::format("{} +{}", ops.substr(0, ops.find(',')), more);
}

// " (227 GFLOP/s float32)": the peak of the run's own type.
std::string peak_of(const Page& page) {
  if (page.summary.devices.empty() || !page.summary.devices.front().peak_flops) return "";
  const analyze::DeviceCard& device = page.summary.devices.front();
  return fmt::format(" ({} {})", base::human_rate(*device.peak_flops, "FLOP/s"), device.type);
}

std::string busy_percent(const Stage& stage) {
  const double available = static_cast<double>(stage.device_busy_ns + stage.idle_ns);
  return available > 0 ? percent_cell(static_cast<double>(stage.device_busy_ns) / available) : "-";
}

std::string intensity_cell(const analyze::Efficiency& e) {
  return e.intensity ? base::three_digits(*e.intensity) : "-";
}
std::string bound_of(const analyze::Efficiency& e) { return e.bound.empty() || e.bound == "unknown" ? "-" : e.bound; }
std::string floor_of(const analyze::Efficiency& e) { return e.floor_ns ? base::human_ns(*e.floor_ns) : "-"; }

std::string ridge_line(const Page& page) {
  if (!page.summary.ridge) return "";
  return wrapped(fmt::format(
      "FLOP/B: FLOPs for each byte that must move. Above the ridge of this device, {} FLOP/B, FLOPs bound; below it, "
      "bytes do.",
      base::three_digits(*page.summary.ridge)));
}

// What parts must cost and what they reached, in the order in which they come.
std::string part_efficiency(const Page& page, const Style& style, const std::vector<Part>& parts,
                            std::string_view what) {
  TextTable table({{std::string(what), Align::kLeft, true},
                   {"stage", Align::kLeft},
                   {"FLOPs"},
                   {"shapes"},
                   {"bytes"},
                   {"FLOP/B"},
                   {"bound", Align::kLeft},
                   {"floor"},
                   {"floor%"}});
  std::size_t all = 0;
  for (const Part& part : parts) {
    const analyze::Efficiency& e = part.efficiency;
    if (!shown(page, part.stage) || (!e.flops && !e.bytes) || ++all > page.top) continue;
    table.add({part.name, part.stage, amount_cell(e.flops), amount_cell(e.flops_shapes),
               e.bytes ? base::human_bytes(*e.bytes) : "-", intensity_cell(e), bound_of(e), floor_of(e),
               percent_cell(e.of_floor)});
  }
  if (all == 0) return "";
  return style.heading(fmt::format("What {}s must cost", what)) + table.render(kWidth) +
         left_out(all, page.top, fmt::format("{}s", what)) +
         wrapped("Columns as above; floor%: floor, of the part's total time.");
}

void add_unmatched(TextTable& table, const Page& page, std::string_view stage) {
  for (const analyze::Unmatched& rest : page.summary.unmatched) {
    if (rest.stage != stage || rest.time_ns == 0) continue;
    table.add({"not matched to the model", "", time_cell(rest.time_ns), "", percent_cell(rest.share), "", "", "", ""});
  }
}

// On a GPU parts are measured by their kernels; the time of the host stands beside it.
std::vector<TextTable::Column> part_columns(std::string name, bool on_gpu) {
  return {{std::move(name), Align::kLeft, true},
          {"calls"},
          {on_gpu ? "GPU time" : "self"},
          {on_gpu ? "host" : "total"},
          {"stage %"},
          {"GFLOP/s"},
          {"MFU %"},
          {"GB/s"},
          {"MBU %"}};
}

std::vector<std::string> part_cells(const Part& part, bool on_gpu) {
  return {
      part.name, std::to_string(part.calls),
      on_gpu ? device_time_cell(part.kernel_ns, part.estimated_ns) : time_cell(part.self_ns),
      // Parts told by shape have no range: what they took on the host is not known.
      on_gpu ? (part.self_ns > 0 && part.source == "range" ? time_cell(part.self_ns) : "-") : time_cell(part.total_ns),
      percent_cell(part.share), giga_cell(part.efficiency.flops_per_s), percent_cell(part.efficiency.mfu),
      giga_cell(part.efficiency.bytes_per_s), percent_cell(part.efficiency.mbu)};
}

// Below an operator its costliest products: the two of a backward pass, at most.
constexpr std::size_t kMostProducts = 2;

void add_products(TextTable& table, const Part& op, bool on_gpu) {
  for (std::size_t i = 0; i < std::min(op.products.size(), kMostProducts); ++i) {
    const analyze::Product& p = op.products[i];
    table.add({"  " + shape_text(p), std::to_string(p.calls), on_gpu ? time_cell(p.time_ns) : "",
               on_gpu ? "" : time_cell(p.time_ns), "", giga_cell(p.flops_per_s), "", "", ""});
  }
}

std::string operators_of(const Page& page, const Style& style, const std::string& stage, std::int64_t stage_ns) {
  const bool on_gpu = page.summary.on_gpu;
  TextTable table(part_columns("operator", on_gpu));
  std::size_t all = 0;
  for (const Part& op : page.summary.ops) {
    if (op.stage != stage || ++all > page.top) continue;
    table.add(part_cells(op, on_gpu));
    add_products(table, op, on_gpu);
  }
  if (all == 0) return "";
  add_unmatched(table, page, stage);
  std::string out = style.heading(fmt::format("Operators of {}", stage.empty() ? "no stage" : stage));
  if (stage_ns > 0) {
    const std::string of = base::human_ns(static_cast<double>(stage_ns));
    out += wrapped(
        on_gpu ? fmt::format(
                     "stage %: GPU time, of that of its kernels, {} added up; host: self time of its ranges. Rates: "
                     "model FLOPs and bytes by GPU time, parts inside included.",
                     of)
               : fmt::format(
                     "stage %: self time, of its steps, {} added up. Rates: model FLOPs and bytes by total time.", of));
  }
  out += table.render(kWidth) + left_out(all, page.top, "operators");
  if (on_gpu && !stage.empty()) out += estimate_line(page, stage);
  const auto of_stage = [&](const Part& op) { return op.stage == stage; };
  const auto first = std::find_if(page.summary.ops.begin(), page.summary.ops.end(), of_stage);
  if (first->source != "range") {
    out += wrapped(
        on_gpu
            ? "Operators are inferred from the shapes and order of the BLAS calls; kernels of no BLAS call (norms, "
              "attention) from where they were launched among them and from their names. What could belong to several "
              "operators counts for the block around them, which is a row of its own."
            : "Operators are inferred from the shapes and order of the BLAS calls. Their time is from the begin of "
              "their first call to the end of their last, in each step; what no BLAS call does (norms, and attention "
              "where it makes none) is not matched.");
  }
  return out;
}

std::string modules(const Page& page, const Style& style) {
  const bool on_gpu = page.summary.on_gpu;
  std::vector<TextTable::Column> columns = part_columns("module", on_gpu);
  columns.insert(columns.begin() + 1, {"stage", Align::kLeft});
  TextTable table(std::move(columns));
  std::size_t all = 0;
  for (const Part& m : page.summary.modules) {
    if (!shown(page, m.stage) || ++all > page.top) continue;
    std::vector<std::string> cells = part_cells(m, on_gpu);
    cells.insert(cells.begin() + 1, stage_name(m.stage));
    table.add(std::move(cells));
  }
  if (all == 0) return "";
  return style.heading(on_gpu ? "Modules by GPU time" : "Modules by self time") +
         wrapped(on_gpu ? "stage %: GPU time, of that of the stage's kernels added up."
                        : "stage %: self time, of the stage's steps added up.") +
         table.render(kWidth) + left_out(all, page.top, "modules");
}

// Latencies of tokens come from inference; without it the durations of steps say more.
bool has_inference(const analyze::Summary& summary) {
  return std::any_of(summary.stages.begin(), summary.stages.end(),
                     [](const Stage& s) { return s.name == "prefill" || s.name == "decode"; });
}

// Beside the stages that make tokens others may repeat: their steps are timed, not tokens.
bool times_steps(const Stage& s) { return s.name != "prefill" && s.name != "decode" && s.steps > 1; }

std::vector<TextTable::Column> stage_columns(bool inference, bool others) {
  std::vector<TextTable::Column> columns{{"stage", Align::kLeft, true}};
  for (const char* title : {"time", "% of wall", "busy %", "steps", "tokens/s"}) columns.push_back({title});
  if (inference) columns.push_back({"TTFT"});
  for (const char* title : {!inference ? "step p50" : others ? "p50" : "TPOT p50", "p90", "p99"})
    columns.push_back({title});
  return columns;
}

std::vector<std::optional<std::int64_t>> latencies(const Stage& s, bool inference) {
  if (inference && times_steps(s)) return {{}, s.step_p50_ns, s.step_p90_ns, s.step_p99_ns};
  if (inference) return {s.ttft_ns, s.tpot_p50_ns, s.tpot_p90_ns, s.tpot_p99_ns};
  return {s.step_p50_ns, s.step_p90_ns, s.step_p99_ns};
}

}  // namespace

std::string shape_text(const analyze::Product& p) {
  return fmt::format("[{0}, {1}] x [{1}, {2}]{3}", p.m, p.k, p.n, p.batch > 1 ? fmt::format(" x{}", p.batch) : "");
}

bool shown(const Page& page, std::string_view stage) { return page.stage.empty() || page.stage == stage; }

namespace {

// Tokens of speculative decoding: those that were checked are known, those that were taken are not.
std::string checked_line(const Page& page, const Stage& s) {
  if (s.checked == 0 || s.steps == 0) return "";
  double time_ns = 0;
  for (const Stage& stage : page.summary.stages) {
    if (stage.name == "draft" || stage.name == s.name) time_ns += stage.at_pace_ns();
  }
  if (time_ns <= 0) return "";
  // All ranks of a copy of the model make its steps, and one of them counts the tokens.
  const auto& ranks = page.summary.job.ranks;
  const auto copies = std::ranges::count_if(ranks, &analyze::JobRank::leads);
  const double own = copies > 0 ? static_cast<double>(ranks.size()) / static_cast<double>(copies) : 1;
  const auto rate = [&](std::int64_t tokens) {
    return base::three_digits(static_cast<double>(tokens) / (time_ns * 1e-9));
  };
  return wrapped(
      fmt::format("{}: speculative decoding. A step checks {} tokens; how many of them are taken is not known. With "
                  "the time of draft that makes {} tokens/s, if one of each sequence is taken, to {}, if all are.",
                  s.name, base::three_digits(static_cast<double>(s.checked) * own / static_cast<double>(s.steps)),
                  rate(s.least_taken), rate(s.checked)));
}

// What is left out of what follows, and what a first token costs.
std::string warm_up_lines(const Page& page) {
  std::string out;
  for (const Stage& s : page.summary.stages) {
    if (!shown(page, s.name)) continue;
    if (s.prefills > 1) {
      out += wrapped(fmt::format("TTFT: the median of {}; p90 {}, p99 {}.", counted(s.prefills, "prefill"),
                                 time_cell(s.ttft_p90_ns), time_cell(s.ttft_p99_ns)));
    }
    out += checked_line(page, s);
    if (s.warm_up_steps == 0) continue;
    const bool one = s.warm_up_steps == 1;
    out += wrapped(
        fmt::format("Warm-up of {}: {} of {}, the first of {} size, took {} (usual: {} a step). "
                    "Percentiles, rates, waterfall and diagnosis are without {}; times are of all steps.",
                    s.name, s.warm_up_steps, counted(s.steps, "step"), one ? "its" : "their",
                    time_cell(s.warm_up_ns) + (one ? "" : " in all"), time_cell(s.step_p50_ns), one ? "it" : "them"));
    const analyze::StageIdle* idle = analyze::find_idle(page.summary.idle, s.name, true);
    const std::string works = idle == nullptr ? "" : works_text(*idle, static_cast<double>(s.warm_up_ns));
    if (!works.empty())
      out += wrapped(fmt::format("Its time went to: {} ({}).", works, counted(idle->samples, "stack sample")), 4);
  }
  return out;
}

}  // namespace

std::string stage_table(const Page& page, const Style& style) {
  const bool inference = has_inference(page.summary);
  const bool others = inference && std::ranges::any_of(page.summary.stages, [&](const Stage& s) {
                        return shown(page, s.name) && times_steps(s);
                      });
  TextTable table(stage_columns(inference, others));
  bool inferred = false;
  for (const Stage& s : page.summary.stages) {
    if (!shown(page, s.name)) continue;
    const bool sure = s.source == "declared" && s.confidence >= 1;
    inferred = inferred || !sure;
    std::vector<std::string> cells{
        s.name + (sure ? "" : "*"), time_cell(s.time_ns),
        percent_cell(s.share),      busy_percent(s),
        std::to_string(s.steps),    s.tokens_per_s ? base::three_digits(*s.tokens_per_s) : "-"};
    for (const auto& ns : latencies(s, inference)) cells.push_back(time_cell(ns));
    table.add(std::move(cells));
  }
  std::string out = style.heading("Stages") + table.render(kWidth);
  out += wrapped(fmt::format("% of wall: of {}. busy %: of the stage's time, with a kernel or BLAS call executing.",
                             base::human_ns(static_cast<double>(page.summary.coverage.wall_ns))));
  if (others) out += wrapped("p50, p90, p99: of decode the time per output token (TPOT), of others that of a step.");
  out += warm_up_lines(page);
  out += step_lines(page);
  if (inferred) {
    for (const Stage& s : page.summary.stages) {
      if (!shown(page, s.name) || (s.source == "declared" && s.confidence >= 1)) continue;
      const std::string_view how = s.source == "inferred" && s.confidence == analyze::kSampledConfidence
                                       ? "told from functions on stack samples, see below"
                                   : s.source == "inferred" ? "inferred from the shapes and order of BLAS calls"
                                   : s.confidence == analyze::kPassConfidence ? "told from calls of the model"
                                                                              : "told from the names of ranges";
      out += wrapped(fmt::format("* {}: {}, confidence {:.2g}.", s.name, how, s.confidence));
    }
  }
  return out;
}

std::string efficiency_table(const Page& page, const Style& style) {
  TextTable table({{"stage", Align::kLeft, true},
                   {"FLOPs"},
                   {"shapes"},
                   {"GFLOP/s"},
                   {"MFU %"},
                   {"bytes"},
                   {"GB/s"},
                   {"MBU %"},
                   {"FLOP/B"},
                   {"bound", Align::kLeft},
                   {"floor"},
                   {"floor%"}});
  for (const Stage& s : page.summary.stages) {
    if (!shown(page, s.name)) continue;
    const analyze::Efficiency& e = s.efficiency;
    table.add({s.name, amount_cell(e.flops), amount_cell(e.flops_shapes),
               giga_cell(e.flops ? e.flops_per_s : e.flops_shapes_per_s), percent_cell(e.mfu),
               e.bytes ? base::human_bytes(*e.bytes) : "-", giga_cell(e.bytes_per_s), percent_cell(e.mbu),
               intensity_cell(e), bound_of(e), floor_of(e), percent_cell(e.of_floor)});
  }
  return style.heading("Efficiency") + table.render(kWidth) +
         wrapped(
             "FLOPs: what the model must compute (attention causal); shapes: what the BLAS calls computed. GFLOP/s: "
             "of the first, or of the second where the model is unknown. floor: least time at peak rates; floor%: "
             "floor, of the time it took: 100 is as fast as this machine can be.") +
         ridge_line(page);
}

std::string part_tables(const Page& page, const Style& style) {
  std::string out;
  for (const Stage& stage : page.summary.stages) {
    if (shown(page, stage.name))
      out += operators_of(page, style, stage.name, page.summary.on_gpu ? stage.kernel_ns : stage.steps_ns);
  }
  if (page.stage.empty()) out += operators_of(page, style, "", 0);
  return out + part_efficiency(page, style, page.summary.ops, "operator") + modules(page, style) +
         part_efficiency(page, style, page.summary.modules, "module");
}

// What a GPU library fused behind the product, and the type where it is not the run's own.
std::string gemm_name(const Page& page, const analyze::GemmShape& g) {
  std::string name = g.batch > 1 ? fmt::format("{} x{}", g.function, g.batch) : g.function;
  if (!g.epilogue.empty()) name += " +" + g.epilogue;
  if (!page.summary.devices.empty() && !g.peak_type.empty() && g.peak_type != page.summary.devices.front().type)
    name += " " + g.peak_type;
  if (g.shared_ns > 0) name += " shared";
  return name;
}

std::string gemm_table(const Page& page, const Style& style) {
  TextTable table({{"function", Align::kLeft},
                   {"m"},
                   {"n"},
                   {"k"},
                   {"calls"},
                   {page.summary.on_gpu ? "GPU time" : "time"},
                   {"GFLOP/s"},
                   {"peak %"},
                   {"GB/s"},
                   {"stage", Align::kLeft},
                   {"operators", Align::kLeft, true}});
  std::size_t all = 0;
  bool shared = false;
  for (const analyze::GemmShape& g : page.summary.gemms) {
    if (!shown(page, g.stage) || ++all > page.top) continue;
    shared = shared || g.shared_ns > 0;
    table.add({gemm_name(page, g), std::to_string(g.m), std::to_string(g.n), std::to_string(g.k),
               std::to_string(g.calls), g.time_ns > 0 ? device_time_cell(g.time_ns, g.estimated_ns) : "-",
               giga_cell(g.flops_per_s), percent_cell(g.of_peak), giga_cell(g.bytes_per_s), stage_name(g.stage),
               first_of(g.ops)});
  }
  if (all == 0) return "";
  return style.heading("Matrix products by time") + table.render(kWidth) + left_out(all, page.top, "shapes") +
         wrapped(fmt::format("peak %: FLOPs of the shapes / time, of the device's peak FLOP/s of the type{}. GB/s: "
                             "operands and result, "
                             "each moved once; a rate above the memory's means the cache helped.",
                             peak_of(page))) +
         (shared ? wrapped("shared: groups of one call, computed by one kernel. Its time is shared by their FLOPs: how "
                           "long each group took is not known.")
                 : "");
}

}  // namespace llmprof::report

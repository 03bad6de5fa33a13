#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/names/grammar.h"
#include "base/human.h"
#include "report/table.h"

namespace llmprof::report {
namespace {

using analyze::Stage;
using base::Json;

// " (227 GFLOP/s float32)": the peak of the run's own type.
std::string peak_of(const Page& page) {
  if (page.summary.devices.empty() || !page.summary.devices.front().peak_flops) return "";
  const analyze::DeviceCard& device = page.summary.devices.front();
  return fmt::format(" ({} {})", base::human_rate(*device.peak_flops, "FLOP/s"), device.type);
}

std::string ridge_line(const Page& page) {
  if (!page.summary.ridge) return "";
  return wrapped(fmt::format(
      "FLOP/B: FLOPs for each byte that must move. Above the ridge of this device, {} FLOP/B, FLOPs bound; below it, "
      "bytes do.",
      base::three_digits(*page.summary.ridge)));
}

// Only parts that the model analysis knows something of.
std::string part_costs(const std::string& view, const Json& parts, const Style& style, const TableText& tables) {
  Json known = Json::array();
  for (const Json& part : parts) {
    if (!part["flops"].is_null() || !part["bytes"].is_null()) known.push_back(part);
  }
  return known.empty() ? "" : style.heading(tables.title(view)) + tables.rows(view, known) + tables.notes(view);
}

// Below an operator its costliest products: the two of a backward pass, at most.
constexpr std::size_t kMostProducts = 2;

void add_products(const Json& op, bool on_gpu, Json& rows) {
  for (std::size_t i = 0; i < std::min(op["products"].size(), kMostProducts); ++i) {
    const Json& product = op["products"][i];
    rows.push_back({{"below", true},
                    {"name", "  " + product["shape"].get<std::string>()},
                    {"calls", product["calls"]},
                    {on_gpu ? "kernel_ns" : "total_ns", product["time_ns"]},
                    {"flops_per_s", product["flops_per_s"]}});
  }
}

std::string operators_of(const Page& page, const Style& style, const TableText& tables, const std::string& stage,
                         std::int64_t stage_ns) {
  const bool on_gpu = page.summary.on_gpu;
  Json rows = Json::array();
  for (const Json& op : tables.report()["operators"]) {
    if (op["stage"] != base::text_or_null(stage)) continue;
    rows.push_back(op);
    add_products(op, on_gpu, rows);
  }
  if (rows.empty()) return "";
  const bool inferred = rows[0]["source"] != "range";
  for (const Json& rest : tables.report()["unmatched"]) {
    if (rest["stage"] != stage || rest["time_ns"] == 0) continue;
    rows.push_back({{"last", true},
                    {"name", "not matched to the model"},
                    {on_gpu ? "kernel_ns" : "self_ns", rest["time_ns"]},
                    {"share", rest["share"]}});
  }
  std::string out = style.heading(fmt::format("Operators of {}", stage.empty() ? "no stage" : stage));
  if (stage_ns > 0) {
    const std::string of = base::human_ns(static_cast<double>(stage_ns));
    out += wrapped(
        on_gpu
            ? fmt::format("stage %: GPU time, of that of its kernels, {} in sum; host: self time of its ranges. Rates: "
                          "model FLOPs and bytes by GPU time, parts inside included.",
                          of)
            : fmt::format("stage %: self time, of its steps, {} in sum. Rates: model FLOPs and bytes by total time.",
                          of));
  }
  out += tables.rows("operators[]#time", rows);
  if (on_gpu && !stage.empty()) out += estimate_line(page, stage);
  if (inferred) {
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

}  // namespace

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
  const auto copies = std::ranges::count_if(ranks, &analyze::JobRank::counts_tokens);
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

std::string stage_table(const Page& page, const Style& style, const TableText& tables) {
  std::string out = tables.section("stages[]#times", style);
  out += warm_up_lines(page);
  out += step_lines(page);
  for (const Stage& s : page.summary.stages) {
    if (!shown(page, s.name) || s.declared()) continue;
    const std::string_view how = s.source == "inferred" && s.confidence == analyze::kSampledConfidence
                                     ? "inferred from functions on stack samples"
                                 : s.source == "inferred" ? "inferred from the shapes and order of BLAS calls"
                                 : s.confidence == analyze::kPassConfidence ? "inferred from calls of the model"
                                                                            : "inferred from the names of ranges";
    out += wrapped(fmt::format("* {}: {}, confidence {:.2g}.", s.name, how, s.confidence));
  }
  return out;
}

std::string efficiency_table(const Style& style, const TableText& tables, const Page& page) {
  return tables.section("stages[]#efficiency", style) + ridge_line(page);
}

std::string operator_tables(const Page& page, const Style& style, const TableText& tables) {
  std::string out;
  for (const Stage& stage : page.summary.stages) {
    if (shown(page, stage.name))
      out += operators_of(page, style, tables, stage.name, page.summary.on_gpu ? stage.kernel_ns : stage.steps_ns);
  }
  if (page.stage.empty()) out += operators_of(page, style, tables, "", 0);
  return out + part_costs("operators[]#cost", tables.report()["operators"], style, tables);
}

std::string module_tables(const Page&, const Style& style, const TableText& tables) {
  return tables.section("modules[]#time", style) +
         part_costs("modules[]#cost", tables.report()["modules"], style, tables);
}

std::string gemm_table(const Page& page, const Style& style, const TableText& tables) {
  const std::string table = tables.section("gemms[]#time", style);
  if (table.empty()) return "";
  return table +
         wrapped(fmt::format("peak %: FLOPs of the shapes / time, of the device's peak FLOP/s of the type{}. B/s: "
                             "operands and result, each moved once; a rate above the memory's means the cache helped.",
                             peak_of(page))) +
         tables.notes("gemms[]");
}

}  // namespace llmprof::report

// CUDA graphs that were captured for more sequences than they are launched for.

#include <map>

#include "analyze/rules/tools.h"

namespace llmprof::analyze::graph_padding {
namespace {

constexpr double kLeastPadding = 0.1;  // of the rows that are computed
constexpr double kLeastShare = 0.01;   // of the stage's time

struct Padding {
  double launches = 0, padded = 0;        // launches; of these, with rows that nobody needs
  double rows = 0, computed = 0;          // over all launches
  double proportional_ns = 0;             // time of launches x their padded share
  double extra_row_launches = 0;          // padded rows over all launches
  std::map<double, double> time_by_size;  // median ns of a launch, by captured rows

  double share() const { return computed > 0 ? 1 - rows / computed : 0; }
  // ns that one more row costs, by the smallest and largest graph; nullopt with one size.
  std::optional<double> per_row_ns() const {
    if (time_by_size.size() < 2) return std::nullopt;
    const auto& [small, fast] = *time_by_size.begin();
    const auto& [large, slow] = *time_by_size.rbegin();
    return std::max(0.0, (slow - fast) / (large - small));
  }
};

std::map<std::string, Padding> by_stage(const std::vector<GraphBucket>& buckets) {
  std::map<std::string, Padding> out;
  for (const GraphBucket& bucket : buckets) {
    Padding& stage = out[bucket.stage];
    const auto launches = static_cast<double>(bucket.launches), computed = static_cast<double>(bucket.captured_rows),
               rows = static_cast<double>(bucket.rows);
    if (rows > computed || rows <= 0) continue;  // products of one sequence of many: rows are not what was captured
    stage.launches += launches;
    stage.rows += launches * rows, stage.computed += launches * computed;
    stage.time_by_size[computed] = static_cast<double>(bucket.median_ns);
    if (rows == computed) continue;
    stage.padded += launches;
    stage.proportional_ns += static_cast<double>(bucket.time_ns) * (1 - rows / computed);
    stage.extra_row_launches += launches * (computed - rows);
  }
  return out;
}

Finding finding_of(const Padding& padding, const Stage& stage) {
  Finding out{.stage = stage.name};
  out.title =
      fmt::format("{} of the rows that {} graphs compute are padding", human_percent(padding.share()), stage.name);
  out.text = fmt::format("{:.0f} of {:.0f} launches are of a graph captured for more sequences than the step has.",
                         padding.padded, padding.launches);
  const std::string rows = fmt::format(
      "SELECT s.number, s.batch, s.tokens, l.graph, l.end_ns - l.begin_ns AS ns FROM graph_launch AS l JOIN "
      "launch_place AS p ON p.graph_launch_id = l.id JOIN step AS s ON s.id = p.step_id WHERE s.stage = {} ORDER BY "
      "s.number",
      sql_literal(stage.name));
  out.add_fraction("padding", "rows that no sequence needs", padding.share(),
                   fmt::format("{:.0f} rows computed by graphs", padding.computed), "counted", rows);
  out.add_fraction("padded_launches", "launches with padding", padding.padded / padding.launches,
                   fmt::format("{:.0f} launches", padding.launches), "counted", rows);
  out.advice = {
      "Capture graphs for more sizes (vLLM: cudagraph_capture_sizes; SGLang: cuda-graph-bs), or admit requests up to a "
      "captured size."};
  const double of_stage = stage.time_ns;
  if (const auto per_row = padding.per_row_ns()) {
    const double gain = *per_row * padding.extra_row_launches;
    out.add_time("time_per_row", "what one more row costs, between the smallest and the largest graph", *per_row,
                 "inferred", rows);
    out.set_gain(gain, of_stage,
                 fmt::format("{:.0f} padded rows at {} each, by the times of graphs of {} sizes: {} of {}",
                             padding.extra_row_launches, human_ns(*per_row), padding.time_by_size.size(),
                             human_ns(gain), human_ns(of_stage)),
                 false);
  } else if (stage.efficiency.bound == "compute") {
    out.set_gain(padding.proportional_ns, of_stage,
                 fmt::format("time of padded launches in proportion to their padded rows: {} of {}",
                             human_ns(padding.proportional_ns), human_ns(of_stage)));
  } else {
    out.text +=
        " Weights are read once whatever the rows are, so where memory bounds the stage padding costs little; graphs "
        "of one size alone do not tell how much.";
  }
  out.next = "llmprof diff RUN CHANGED_RUN";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.graph_buckets.empty())
    return not_applicable("0 launches of graphs whose matrix products are known, in steps that say their size");
  RuleResult out;
  for (const auto& [name, padding] : by_stage(run.facts.graph_buckets)) {
    const Stage* stage = stage_named(run.summary, name);
    if (stage == nullptr) continue;
    const auto per_row = padding.per_row_ns();
    const bool cheap = per_row && *per_row * padding.extra_row_launches < kLeastShare * stage->time_ns;
    if (padding.share() >= kLeastPadding && !cheap) {
      out.findings.push_back(finding_of(padding, *stage));
    } else {
      out.add_why(
          name, fmt::format(
                    "{} of the rows in {:.0f} launches are padding{}", human_percent(padding.share()), padding.launches,
                    cheap ? fmt::format(", which costs {}", human_ns(*per_row * padding.extra_row_launches)) : ""));
    }
  }
  return out;
}

}  // namespace llmprof::analyze::graph_padding

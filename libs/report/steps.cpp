#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/sections/sections.h"
#include "base/human.h"
#include "base/text_table.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

using analyze::Block;
using analyze::StepSeries;
using analyze::TrainingStep;
using base::Align;
using base::Json;
using base::TextTable;

constexpr std::size_t kMostBars = 80, kStepBars = 50;

std::string series_table(const StepSeries& series, const TableText& tables) {
  const auto slowest = std::ranges::max_element(series.steps, {}, &TrainingStep::total_ns);
  Json rows = Json::array();
  const auto add = [&](const char* which, const TrainingStep& step) {
    rows.push_back(base::fields_json(step));
    rows.back()["which"] = which;
  };
  add("first", series.steps.front());
  add("median", analyze::median_step(series));
  add("last", series.steps.back());
  add("slowest", *slowest);
  return tables.rows("training[].steps[]", rows);
}

// The blocks to show: the `top` that took most time, in the order of the model.
std::vector<const Block*> costliest(const std::vector<Block>& blocks, std::size_t top) {
  const auto time = [](const Block& block) {
    std::int64_t sum = 0;
    for (const Block::InStage& in : block.stages) sum += in.total_ns;
    return sum;
  };
  std::vector<const Block*> shown;
  shown.reserve(blocks.size());
  for (const Block& block : blocks) shown.push_back(&block);
  if (shown.size() <= top) return shown;
  std::stable_sort(shown.begin(), shown.end(), [&](auto* a, auto* b) { return time(*a) > time(*b); });
  shown.resize(top);
  std::sort(shown.begin(), shown.end());  // they lie in one array, in the order of the model
  return shown;
}

const Block::InStage* find_stage(const Block& block, const std::string& stage) {
  const auto found = std::find_if(block.stages.begin(), block.stages.end(),
                                  [&](const Block::InStage& in) { return in.stage == stage; });
  return found == block.stages.end() ? nullptr : &*found;
}

}  // namespace

std::string step_lines(const Page& page) {
  constexpr std::int64_t kLeastSteps = 3;
  std::size_t names = 0;
  std::vector<const analyze::StepCurve*> curves;
  for (const analyze::StepCurve& curve : page.summary.step_curves) {
    if (curve.steps < kLeastSteps || !shown(page, curve.stage)) continue;
    curves.push_back(&curve);
    names = std::max(names, std::min<std::size_t>(base::display_width(base::printable(curve.stage)), 16));
  }
  if (curves.empty()) return "";
  constexpr std::size_t kTimes = 33, kMargins = 4;
  const std::size_t bars = std::min(kStepBars, line_width() - names - kTimes - kMargins);
  std::string out = wrapped("Step times in order of time: min, median, max.");
  for (const analyze::StepCurve* curve : curves) {
    const std::string name = base::shorten(base::printable(curve->stage), names);
    // A full bar is a quarter above the least at least: noise stays low.
    const analyze::StepCurve& c = *curve;
    const SparkRange range{c.least_ns, std::max(c.most_ns, c.least_ns + c.least_ns / 4)};
    out += fmt::format("  {}{}  {}  {}  {}  {}\n", name, std::string(names - base::display_width(name), ' '),
                       sparkline(c.duration_ns, bars, page.unicode, range), time_cell(c.least_ns),
                       time_cell(c.median_ns), time_cell(c.most_ns));
  }
  return out;
}

// Of the median step: tokens of its forward passes, and what forward and backward must compute, by its time.
std::string training_rates(const Page& page, const StepSeries& series) {
  const TrainingStep& step = analyze::median_step(series);
  if (step.total_ns <= 0 || step.tokens <= 0) return "";
  const double seconds = static_cast<double>(step.total_ns) * 1e-9;
  std::string out = fmt::format(
      "At the median step{}: {} tokens/s ({} tokens in {})", page.summary.training.size() > 1 ? " of this thread" : "",
      base::human_count(static_cast<double>(step.tokens) / seconds), step.tokens, time_cell(step.total_ns));
  double flops = 0, again = 0;
  for (const analyze::Stage& stage : page.summary.stages) {
    if (stage.name != "forward" && stage.name != "backward") continue;
    if (!stage.efficiency.flops || page.summary.training.size() > 1) return wrapped(out + ".");
    flops += *stage.efficiency.flops / static_cast<double>(series.steps.size());
    again += stage.efficiency.recomputed_flops.value_or(0) / static_cast<double>(series.steps.size());
  }
  if (!page.summary.peak_flops) return wrapped(out + ".");
  const auto of_peak = [&](double amount) { return base::human_percent(amount / seconds / *page.summary.peak_flops); };
  const std::string computed =
      again > 0 ? fmt::format("; HFU {} with {}FLOP computed again", of_peak(flops + again), base::human_count(again))
                : "";
  return wrapped(fmt::format("{}, MFU {}: {}FLOP of forward and backward passes, of {}{}.", out, of_peak(flops),
                             base::human_count(flops), base::human_rate(*page.summary.peak_flops, "FLOP/s"), computed));
}

std::string step_rate(const Page& page) {
  return page.summary.training.empty() || !page.stage.empty() ? ""
                                                              : training_rates(page, page.summary.training.front());
}

std::string training_table(const Page& page, const Style& style, const TableText& tables) {
  const auto& all = page.summary.training;
  if (all.empty() || !page.stage.empty()) return "";
  const StepSeries& series = all.front();
  std::vector<std::int64_t> totals;
  for (const TrainingStep& step : series.steps) totals.push_back(step.total_ns);
  const auto [low, high] = std::minmax_element(totals.begin(), totals.end());
  const std::size_t bars_shown = std::min(kMostBars, line_width() - 2);
  std::string out = style.heading("Training steps") + series_table(series, tables);
  out += training_rates(page, series);
  out += "  " + sparkline(totals, bars_shown, page.unicode) + "\n";
  const std::string bars = totals.size() > bars_shown ? ", each bar the slowest of its steps" : "";
  out += wrapped(fmt::format("Total of {} in order of time{}: {} to {}.", counted(std::ssize(series.steps), "step"),
                             bars, time_cell(*low), time_cell(*high)));
  out += wrapped("between: time of the step outside these stages. median: the step whose total is the median.");
  if (all.size() > 1) {
    out += wrapped(fmt::format("{} trained too; --json has them.", counted(std::ssize(all) - 1, "more thread")));
  }
  return out;
}

std::string block_table(const Page& page, const Style& style) {
  std::vector<std::string> stages;
  std::vector<TextTable::Column> columns{{"block", Align::kLeft, true}};
  for (const analyze::Stage& stage : page.summary.stages) {
    const bool used = std::any_of(page.summary.blocks.begin(), page.summary.blocks.end(),
                                  [&](const Block& block) { return find_stage(block, stage.name) != nullptr; });
    if (!used || !shown(page, stage.name)) continue;
    stages.push_back(stage.name);
    columns.push_back({stage.name});
  }
  if (stages.empty()) return "";
  TextTable table(columns);
  for (const Block* block : costliest(page.summary.blocks, page.top)) {
    std::vector<std::string> cells{block->name};
    for (const std::string& stage : stages) {
      const Block::InStage* const in = find_stage(*block, stage);
      cells.push_back(in != nullptr ? time_cell(in->total_ns) : "-");
    }
    table.add(std::move(cells));
  }
  const std::size_t all = page.summary.blocks.size();
  const std::string rest =
      all > page.top
          ? fmt::format("  {} that took less; --top shows more.\n",
                        counted(std::ssize(page.summary.blocks) - static_cast<std::int64_t>(page.top), "block"))
          : "";
  return style.heading("Blocks") +
         wrapped(page.summary.on_gpu ? "GPU time in each stage, what is inside included."
                                     : "Total time in each stage, what is inside included.") +
         table.render(line_width()) + rest;
}

}  // namespace llmprof::report

// llmprof counters, as text.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text_table.h"
#include "counters_verb.h"
#include "hw/counters/passes.h"
#include "report/layout.h"

namespace llmprof::app {
namespace {

using namespace hw::counters;
using base::Align;
using base::TextTable;

constexpr std::size_t kWordsWidth = 46;  // of what a counter means, in a table

std::string cell(std::optional<int> passes) { return passes ? std::to_string(*passes) : "-"; }

bool wants(WantedMethod wanted, Method method) { return !wanted || *wanted == method; }

std::string meaning_of(const Counter& counter) {
  return counter.denominator.empty() ? counter.meaning : fmt::format("{}, of {}", counter.meaning, counter.denominator);
}

// A row whose last cell may need several lines.
void add_row(TextTable& table, std::vector<std::string> cells, std::string_view words) {
  const std::size_t columns = cells.size();
  const std::string lines = report::wrapped(words, 0, kWordsWidth);
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    cells.push_back(lines.substr(begin, end - begin));
    table.add(std::move(cells));
    cells = std::vector<std::string>(columns);
    begin = end + 1;
  }
}

// "5 of 8": what sampling keeps.
std::string kept_when_sampled(const Set& set, std::string_view chip) {
  const Result<Selection> selection = select(set.name);
  if (!selection) return "-";
  const std::size_t missing = metrics_of(*selection, chip, Method::kSampled).missing.size();
  return fmt::format("{} of {}", set.counters.size() - missing, set.counters.size());
}

std::string sets_text(const Chip& chip, WantedMethod method) {
  std::vector<TextTable::Column> columns{{"set", Align::kLeft}};
  const bool ranges = wants(method, Method::kRange) || wants(method, Method::kKernel);
  if (ranges) columns.push_back({"passes"});
  if (wants(method, Method::kSampled)) columns.push_back({"sampled"});
  columns.push_back({"what", Align::kLeft});
  TextTable table(columns);
  for (const Set& set : sets()) {
    std::vector<std::string> cells{set.name};
    if (ranges) cells.push_back(cell(passes_of(set.name, chip.name, Method::kRange)));
    if (wants(method, Method::kSampled)) cells.push_back(kept_when_sampled(set, chip.name));
    add_row(table, std::move(cells), set.meaning);
  }
  return table.render();
}

std::string counters_text(const std::vector<const Counter*>& counters, const Chip& chip, WantedMethod method) {
  TextTable table({{"counter", Align::kLeft},
                   {"unit", Align::kLeft},
                   {"passes"},
                   {"sampled", Align::kLeft},
                   {"what", Align::kLeft}});
  std::vector<std::string> missing;
  for (const Counter* counter : counters) {
    const std::optional<int> passes = passes_of(counter->name, chip.name, Method::kRange);
    const bool sampled = formula_of(*counter, chip.name, Method::kSampled) != nullptr;
    const bool ranges = passes && (wants(method, Method::kRange) || wants(method, Method::kKernel));
    if (!ranges && !(sampled && wants(method, Method::kSampled))) {
      missing.push_back(counter->name);
      continue;
    }
    add_row(table, {counter->name, counter->unit, cell(passes), sampled ? "yes" : "-"}, meaning_of(*counter));
  }
  std::string text = table.render(120);
  if (!missing.empty()) {
    const std::string how = method ? fmt::format(", method {}", name_of(*method)) : "";
    text += report::wrapped(fmt::format("Not on {}{}: {}.", chip.name, how, fmt::join(missing, ", ")));
  }
  return text;
}

std::string title_of(const Chip& chip) {
  const std::string devices = chip.devices.empty() ? "" : fmt::format("; {}", fmt::join(chip.devices, ", "));
  return fmt::format("{} ({}, compute capability {}{})\n", chip.name, chip.generation, chip.capability, devices);
}

std::string_view words_of(Aggregation together) {
  if (together == Aggregation::kSum) return "sum";
  return together == Aggregation::kMean ? "mean" : "mean, weighted by time";
}

std::string card(const Counter& counter, const Asked& asked) {
  std::string text = fmt::format("\n{} ({})\n", counter.name, counter.unit);
  const auto line = [&](std::string_view title, std::string_view words) {
    text += report::wrapped(fmt::format("{}: {}", title, words));
  };
  line("is", counter.meaning);
  if (!counter.denominator.empty()) line("percent of", counter.denominator);
  const Formula* ranges = formula_of(counter, asked.chip.name, Method::kRange);
  const Formula* sampled = formula_of(counter, asked.chip.name, Method::kSampled);
  if (ranges == nullptr && sampled == nullptr) {
    line("formula", fmt::format("none: {} does not have it", asked.chip.name));
    return text;
  }
  line("formula", ranges != nullptr ? ranges->text : sampled->text);
  if (ranges != nullptr && sampled != nullptr && ranges->text != sampled->text) line("formula, sampled", sampled->text);
  line("passes", ranges != nullptr ? cell(passes_of(counter.name, asked.chip.name, Method::kRange)) : "-");
  line("sampled", sampled != nullptr ? "yes" : "no");
  line("several windows", words_of(counter.together));
  if (counter.apart) line("in ranges", "only beside other counters of links and gpu_time_ns");
  return text;
}

std::string metric_card(const std::string& metric, const Asked& asked) {
  std::string text = fmt::format("\n{}\n", metric);
  if (asked.library == nullptr) return text + "  a metric of the chip; unknown without CUPTI\n";
  const std::string base = metric.substr(0, metric.find('.'));
  const auto description = asked.library->describe(asked.chip.name, Method::kRange, base);
  const auto also = description ? description : asked.library->describe(asked.chip.name, Method::kSampled, base);
  if (!also) return text + report::wrapped(also.error().message);
  return text + report::wrapped(fmt::format("{}{}", also->text, also->unit.empty() ? "" : ", in " + also->unit));
}

std::string together_text(const Asked& asked) {
  std::string text = "\nTogether\n";
  for (const Method method : {Method::kRange, Method::kSampled}) {
    if (!wants(asked.method, method) && !(method == Method::kRange && wants(asked.method, Method::kKernel))) continue;
    const std::string_view how = method == Method::kRange ? "in ranges and kernels" : "sampled";
    const ChipMetrics metrics = metrics_of(asked.selection, asked.chip.name, method);
    const Result<std::optional<int>> passes = passes_together(asked, method);
    std::string words = !passes                ? passes.error().message
                        : !passes->has_value() ? "passes unknown without CUPTI"
                        : **passes == 0        ? "nothing"
                                               : report::counted(**passes, "pass");
    if (passes && method == Method::kSampled && passes->value_or(0) > 1) {
      words += "; samples have one: what fits is kept, in the order asked for";
    }
    if (!metrics.missing.empty()) words += fmt::format("; without {}", fmt::join(metrics.missing, ", "));
    text += report::wrapped(fmt::format("{}: {}", how, words));
  }
  return text;
}

}  // namespace

std::string chips_text() {
  std::vector<TextTable::Column> columns{{"chip", Align::kLeft}, {"generation", Align::kLeft}};
  for (const Set& set : sets()) columns.push_back({set.name});
  columns.push_back({"sampled", Align::kLeft});
  columns.push_back({"in", Align::kLeft});
  TextTable table(columns);
  for (const std::string_view name : chips()) {
    const Chip& chip = *find_chip(name);
    std::vector<std::string> cells{chip.name, chip.generation};
    for (const Set& set : sets()) cells.push_back(cell(passes_of(set.name, chip.name, Method::kRange)));
    cells.emplace_back(chip.sampled ? "yes" : "no");
    cells.push_back(fmt::format("{}", fmt::join(chip.devices, ", ")));
    table.add(std::move(cells));
  }
  return "Sets of hardware counters, and the passes that each needs in ranges and kernels\n" + table.render(120) +
         "\n" +
         report::wrapped(
             "Samples have one pass: a set keeps what fits. `llmprof counters --chip GH100` lists what a chip "
             "counts, `llmprof record --counters SET` counts it.",
             0);
}

std::string chip_text(const Chip& chip, WantedMethod method) {
  std::vector<const Counter*> all;
  for (const Counter& counter : catalog()) all.push_back(&counter);
  return title_of(chip) + "\nSets\n" + sets_text(chip, method) + "\nCounters\n" + counters_text(all, chip, method) +
         "\n" +
         report::wrapped(
             "passes: occurrences of a step, or launches of a kernel, that it takes to read all of it in ranges "
             "or kernels; nothing is executed twice. sampled: whether PM sampling offers it, or how many of "
             "the set it keeps in its one pass. `llmprof counters NAME` shows the formula.",
             0);
}

std::string asked_text(const Asked& asked) {
  std::string text = title_of(asked.chip);
  const bool many = asked.selection.counters.size() > 4;
  if (many) text += "\n" + counters_text(asked.selection.counters, asked.chip, asked.method);
  if (!many) {
    for (const Counter* counter : asked.selection.counters) text += card(*counter, asked);
  }
  for (const std::string& metric : asked.selection.raw) text += metric_card(metric, asked);
  return text + together_text(asked);
}

std::string raw_text(const std::vector<RawMetric>& metrics) {
  TextTable table({{"metric", Align::kLeft}, {"unit", Align::kLeft}, {"by", Align::kLeft}, {"what", Align::kLeft}});
  for (const RawMetric& metric : metrics) {
    const char* by = metric.ranges && metric.sampled ? "both" : metric.ranges ? "ranges" : "samples";
    add_row(table, {metric.name, metric.unit, by}, metric.text);
  }
  return table.render(180) + "\n" + report::counted(static_cast<std::int64_t>(metrics.size()), "metric") +
         "; add .sum, .avg, .max or .min to count one (.pct or .ratio where it is a ratio).\n";
}

}  // namespace llmprof::app

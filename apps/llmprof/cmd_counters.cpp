// llmprof counters: the hardware counters that can be recorded, by chip: sets, formulas, passes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/strings.h"
#include "base/suggest.h"
#include "hw/counters/host_library.h"
#include "hw/counters/passes.h"
#include "hw/device.h"
#include "report/table.h"
#include "verb.h"

namespace llmprof::app {
namespace counters_verb {
namespace {

using namespace hw::counters;
using base::Json;
using report::counted;
using report::described;
using report::Flags;
using report::TableText;
using report::wrapped;
using WantedMethod = std::optional<Method>;  // nothing: all of them

constexpr Option kOptions[] = {
    {"--chip", "", "", "CHIP", "", "a chip (GH100) or a device that has it (h200); this machine's GPU unless told"},
    {"--method", "", "", "METHOD", "", "only what this method offers: range, kernel or sampled"},
    {"--raw", "", "", "PATTERN", "", "the chip's own metrics, by a part of their name or a pattern with * and ?"},
    {"--json", "", "", "", "", "print as JSON"},
};
constexpr Positional kPositionals[] = {{"NAME", false, true}};
constexpr Method kMethods[] = {Method::kRange, Method::kKernel, Method::kSampled};

bool wants(WantedMethod wanted, Method method) { return !wanted || *wanted == method; }
bool wants_ranges(WantedMethod wanted) { return wants(wanted, Method::kRange) || wants(wanted, Method::kKernel); }

Json chip_facts(const Chip& chip) {
  Json all = base::fields_json(chip);
  for (const Set& set : sets()) all["passes"][set.name] = base::maybe(passes_of(set.name, chip.name, Method::kRange));
  return all;
}

// What is known of each method that was asked for; one without facts does not offer it.
template <class Facts>
Json by_method(WantedMethod wanted, const Facts& facts) {
  Json out = Json::object();
  for (const Method method : kMethods) {
    if (!wants(wanted, method)) continue;
    if (Json found = facts(method); !found.is_null()) out[std::string(name_of(method))] = std::move(found);
  }
  return out;
}

Json counter_facts(const Counter& counter, const Chip& chip, WantedMethod wanted) {
  constexpr std::string_view kTogether[] = {"sum", "mean", "mean by time"};
  Json all{{"name", counter.name},       {"unit", counter.unit},
           {"meaning", counter.meaning}, {"denominator", base::text_or_null(counter.denominator)},
           {"apart", counter.apart},     {"together", kTogether[static_cast<std::size_t>(counter.together)]}};
  all["methods"] = by_method(wanted, [&](Method method) -> Json {
    const Formula* formula = formula_of(counter, chip.name, method);
    if (formula == nullptr) return nullptr;
    return {{"formula", formula->text},
            {"metrics", formula->metrics},
            {"passes", base::maybe(passes_of(counter.name, chip.name, method))}};
  });
  return all;
}

Json set_facts(const Set& set, const Chip& chip, WantedMethod wanted) {
  Json all{{"name", set.name}, {"meaning", set.meaning}, {"counters", set.counters}};
  const Result<Selection> selection = select(set.name);
  all["methods"] = by_method(wanted, [&](Method method) -> Json {
    if (!selection) return nullptr;
    Json found = base::fields_json(metrics_of(*selection, chip.name, method));
    found["passes"] = base::maybe(passes_of(set.name, chip.name, method));
    return found;
  });
  return all;
}

void print_document(const Json& all) {
  Json json = json_head("llmprof.counters");
  json.update(described("llmprof.counters", all));
  print(base::to_text(json));
}

// Rows whose last cell, `what`, may need several lines: what follows is rows of it alone.
void add_lines(Json row, std::string_view words, Json& rows) {
  constexpr std::size_t kWordsWidth = 46;
  const std::string text = wrapped(words, 0, kWordsWidth);
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.empty()) continue;
    row["what"] = line;
    rows.push_back(std::exchange(row, Json::object()));
  }
}

std::string table(std::string_view path, const Json& rows, const Flags& flags = {}, std::size_t width = 120) {
  return TableText(rows, flags, SIZE_MAX, 2, width).rows(path, rows);
}

std::string chips_text(const Json& chips) {
  const auto* description = analyze::find_description("llmprof.counters.chips[]");
  TableText::Columns before = {*description->column("name"), *description->column("generation")};
  before[0].title = "chip", before[1].title = "generation";
  for (const Set& set : sets()) before.push_back({.key = "passes." + set.name, .title = set.name, .format = "count"});
  Json rows = chips;
  for (Json& row : rows) row["in"] = fmt::format("{}", fmt::join(row["devices"].get<std::vector<std::string>>(), ", "));
  return "Sets of hardware counters, and the passes that each needs in ranges and kernels\n" +
         TableText(rows, {}, SIZE_MAX, 2, 120).rows("llmprof.counters.chips[]#table", rows, SIZE_MAX, before) + "\n" +
         wrapped(
             "Samples have one pass: a set keeps what fits. `llmprof counters --chip GH100` lists what a chip "
             "counts, `llmprof record --counters SET` counts it.",
             0);
}

std::string sets_text(const Chip& chip, WantedMethod method) {
  Json rows = Json::array();
  for (const Set& set : sets()) {
    Json row{{"name", set.name}, {"passes", base::maybe(passes_of(set.name, chip.name, Method::kRange))}};
    const Result<Selection> selection = select(set.name);
    const std::size_t missing = selection ? metrics_of(*selection, chip.name, Method::kSampled).missing.size() : 0;
    row["kept"] = selection ? fmt::format("{} of {}", set.counters.size() - missing, set.counters.size()) : "-";
    add_lines(std::move(row), set.meaning, rows);
  }
  Flags flags;
  if (wants_ranges(method)) flags.insert("ranges");
  if (wants(method, Method::kSampled)) flags.insert("sampled");
  return table("llmprof.counters.sets[]#table", rows, flags, report::line_width());
}

std::string counters_text(const std::vector<const Counter*>& counters, const Chip& chip, WantedMethod method) {
  Json rows = Json::array();
  std::vector<std::string> missing;
  for (const Counter* counter : counters) {
    const std::optional<int> passes = passes_of(counter->name, chip.name, Method::kRange);
    const bool sampled = formula_of(*counter, chip.name, Method::kSampled) != nullptr;
    if (!(passes && wants_ranges(method)) && !(sampled && wants(method, Method::kSampled))) {
      missing.push_back(counter->name);
      continue;
    }
    add_lines({{"name", counter->name},
               {"unit", counter->unit},
               {"passes", base::maybe(passes)},
               {"sampled", sampled ? "yes" : "-"}},
              counter->denominator.empty() ? counter->meaning
                                           : fmt::format("{}, of {}", counter->meaning, counter->denominator),
              rows);
  }
  std::string text = table("llmprof.counters.counters[]#table", rows);
  if (missing.empty()) return text;
  const std::string how = method ? fmt::format(", method {}", name_of(*method)) : "";
  return text + wrapped(fmt::format("Not on {}{}: {}.", chip.name, how, fmt::join(missing, ", ")));
}

std::string title_of(const Chip& chip) {
  const std::string devices = chip.devices.empty() ? "" : fmt::format("; {}", fmt::join(chip.devices, ", "));
  return fmt::format("{} ({}, compute capability {}{})\n", chip.name, chip.generation, chip.capability, devices);
}

std::string chip_text(const Chip& chip, WantedMethod method) {
  std::vector<const Counter*> all;
  for (const Counter& counter : catalog()) all.push_back(&counter);
  return title_of(chip) + "\nSets\n" + sets_text(chip, method) + "\nCounters\n" + counters_text(all, chip, method) +
         "\n" +
         wrapped(
             "passes: occurrences of a step, or launches of a kernel, that it takes to read all of it in ranges "
             "or kernels; nothing is executed twice. sampled: whether PM sampling offers it, or how many of "
             "the set it keeps in its one pass. `llmprof counters NAME` shows the formula.",
             0);
}

int show_chip(const Arguments& arguments, const Chip& chip, WantedMethod method) {
  if (!arguments.on("--json")) {
    print(chip_text(chip, method));
    return 0;
  }
  Json all{{"chip", chip_facts(chip)}, {"sets", Json::array()}, {"counters", Json::array()}};
  for (const Set& set : sets()) all["sets"].push_back(set_facts(set, chip, method));
  for (const Counter& counter : catalog()) all["counters"].push_back(counter_facts(counter, chip, method));
  print_document(all);
  return 0;
}

// ---- counters by name -----------------------------------------------------------------------------------------

// What was asked for by name, with formulas, and what all of it needs together.
struct Asked {
  const Selection& selection;
  const Chip& chip;
  WantedMethod method;
  const HostLibrary* library;  // null: passes come from the table
};

// Passes of all that was asked for; nothing where they are not known; an error where the chip refuses.
Result<std::optional<int>> passes_together(const Asked& asked, Method method) {
  const ChipMetrics metrics = metrics_of(asked.selection, asked.chip.name, method);
  if (metrics.metrics.empty()) return std::optional(0);
  if (asked.library == nullptr) return passes_of(asked.selection.text, asked.chip.name, method);
  LLMPROF_LET(const int passes, asked.library->passes(asked.chip.name, method, metrics.metrics));
  return std::optional(passes);
}

std::string passes_text(std::optional<int> passes) { return passes ? std::to_string(*passes) : "-"; }

std::string_view words_of(Aggregation together) {
  if (together == Aggregation::kSum) return "sum";
  return together == Aggregation::kMean ? "mean" : "mean, weighted by time";
}

std::string card(const Counter& counter, const Asked& asked) {
  std::string text = fmt::format("\n{} ({})\n", counter.name, counter.unit);
  const auto line = [&](std::string_view title, std::string_view words) {
    text += wrapped(fmt::format("{}: {}", title, words));
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
  line("passes", ranges != nullptr ? passes_text(passes_of(counter.name, asked.chip.name, Method::kRange)) : "-");
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
  if (!also) return text + wrapped(also.error().message);
  return text + wrapped(fmt::format("{}{}", also->text, also->unit.empty() ? "" : ", in " + also->unit));
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
                                               : counted(**passes, "pass");
    if (passes && method == Method::kSampled && passes->value_or(0) > 1) {
      words += "; samples have one: what fits is kept, in the order asked for";
    }
    if (!metrics.missing.empty()) words += fmt::format("; without {}", fmt::join(metrics.missing, ", "));
    text += wrapped(fmt::format("{}: {}", how, words));
  }
  return text;
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

Json asked_facts(const Asked& asked) {
  Json all{{"chip", chip_facts(asked.chip)},
           {"asked", asked.selection.text},
           {"counters", Json::array()},
           {"metrics_of_the_chip", asked.selection.raw}};
  for (const Counter* counter : asked.selection.counters)
    all["counters"].push_back(counter_facts(*counter, asked.chip, asked.method));
  all["together"] = by_method(asked.method, [&](Method method) {
    Json found = base::fields_json(metrics_of(asked.selection, asked.chip.name, method));
    const Result<std::optional<int>> passes = passes_together(asked, method);
    found["passes"] = passes ? base::maybe(*passes) : Json(nullptr);
    found["error"] = passes ? Json(nullptr) : Json(passes.error().message);
    return found;
  });
  return all;
}

Result<int> show_asked(const Arguments& arguments, const Chip& chip, WantedMethod method) {
  LLMPROF_LET(const Selection selection, select(fmt::format("{}", fmt::join(arguments.positionals, ","))));
  const Result<std::unique_ptr<HostLibrary>> library = HostLibrary::open();
  const Asked asked{selection, chip, method, library ? library->get() : nullptr};
  if (arguments.on("--json")) {
    print_document(asked_facts(asked));
  } else {
    print(asked_text(asked));
  }
  return 0;
}

// ---- metrics of the chip --------------------------------------------------------------------------------------

struct RawMetric {
  std::string name, unit, meaning;
  bool range = false, sampled = false;
};

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// Names of a method; a chip that does not have the method has none.
std::set<std::string> names_by(const HostLibrary& library, const std::string& chip, Method method) {
  const auto names = library.metrics(chip, method);
  return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>{};
}

// By a pattern with `*` and `?`, or a part of the name.
Result<std::vector<RawMetric>> raw_metrics(const HostLibrary& library, const std::string& chip,
                                           const std::string& pattern, WantedMethod method) {
  std::string wanted = base::lowercase(pattern);
  if (wanted.find_first_of("*?") == std::string::npos) wanted = "*" + wanted + "*";
  const bool ranges = wants_ranges(method);
  const std::set<std::string> in_ranges = ranges ? names_by(library, chip, Method::kRange) : std::set<std::string>{};
  const std::set<std::string> sampled =
      wants(method, Method::kSampled) ? names_by(library, chip, Method::kSampled) : std::set<std::string>{};
  std::set<std::string> all = in_ranges;
  all.insert(sampled.begin(), sampled.end());
  std::vector<RawMetric> found;
  for (const std::string& name : all) {
    if (!matches(wanted, base::lowercase(name))) continue;
    RawMetric metric{
        .name = name, .unit = "", .meaning = "", .range = in_ranges.contains(name), .sampled = sampled.contains(name)};
    const Method by = metric.range ? Method::kRange : Method::kSampled;
    if (const auto description = library.describe(chip, by, name)) {
      metric.unit = description->unit;
      metric.meaning = description->text;
    }
    found.push_back(std::move(metric));
  }
  if (!found.empty()) return found;
  return Error{ErrorCode::kNotFound, chip + " has no metric like " + pattern,
               "A pattern is a part of a name, or has * and ?: dram__bytes*."};
}

Result<int> show_raw(const Arguments& arguments, const Chip& chip, WantedMethod method) {
  Result<std::unique_ptr<HostLibrary>> library = HostLibrary::open();
  if (!library) {
    library.error().hint += " Without it, `llmprof counters` still lists our counters, their formulas and passes.";
    return library.error();
  }
  LLMPROF_LET(const std::vector<RawMetric> metrics, raw_metrics(**library, chip.name, arguments.get("--raw"), method));
  if (arguments.on("--json")) {
    print_document({{"chip", {{"name", chip.name}}}, {"metrics", base::fields_json(metrics)}});
    return 0;
  }
  Json rows = Json::array();
  for (const RawMetric& metric : metrics) {
    Json row = base::fields_json(metric);
    row["by"] = metric.range && metric.sampled ? "both" : metric.range ? "ranges" : "samples";
    add_lines(std::move(row), metric.meaning, rows);
  }
  print(table("llmprof.counters.metrics[]#table", rows, {}, 180) + "\n" +
        counted(static_cast<std::int64_t>(metrics.size()), "metric") +
        "; add .sum, .avg, .max or .min to count one (.pct or .ratio where it is a ratio).\n");
  return 0;
}

// ---- the verb -------------------------------------------------------------------------------------------------

Result<WantedMethod> method_of(const std::string& word) {
  if (word.empty()) return WantedMethod();
  for (const Method method : kMethods) {
    if (word == name_of(method)) return WantedMethod(method);
  }
  return Error{ErrorCode::kUsage, fmt::format("there is no method `{}`", word),
               "Methods are range, kernel and sampled."};
}

Error unknown_chip(const std::string& word) {
  return {ErrorCode::kNotFound, fmt::format("there is no chip `{}` in the catalogue of counters", word),
          fmt::format("{}Chips are {}.", base::did_you_mean(word, chips()), fmt::join(chips(), ", "))};
}

// The chip asked for, else the one of this machine; nullptr: neither.
Result<const Chip*> chip_of(const std::string& word) {
  if (word.empty()) {
    for (const hw::Device& device : hw::probe_gpus()) {
      if (const Chip* chip = chip_of_capability(device.chip)) return chip;
    }
    return nullptr;
  }
  if (const Chip* chip = find_chip(word)) return chip;
  return unknown_chip(word);
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const WantedMethod method, method_of(arguments.get("--method")));
  LLMPROF_LET(const Chip* chip, chip_of(arguments.get("--chip")));
  const bool raw = arguments.given("--raw"), named = !arguments.positionals.empty();
  if (raw && named) return Error{ErrorCode::kUsage, "--raw and NAME ask for different things", "give one of them"};
  if (chip != nullptr) {
    if (raw) return show_raw(arguments, *chip, method);
    return named ? show_asked(arguments, *chip, method) : show_chip(arguments, *chip, method);
  }
  if (raw || named || method) {
    return Error{ErrorCode::kUsage, "this machine has no GPU that the catalogue knows, so the chip is not known",
                 "Say which: --chip GH100, or a device that has it (--chip h200)."};
  }
  Json all = Json::array();
  for (const std::string_view name : chips()) all.push_back(chip_facts(*find_chip(name)));
  if (arguments.on("--json")) {
    print_document({{"chips", all}});
  } else {
    print(chips_text(all));
  }
  return 0;
}

}  // namespace
}  // namespace counters_verb

extern const Verb kCounters;
const Verb kCounters{"counters",
                     "list the hardware counters that can be recorded",
                     counters_verb::kOptions,
                     counters_verb::kPositionals,
                     false,
                     counters_verb::run};

}  // namespace llmprof::app

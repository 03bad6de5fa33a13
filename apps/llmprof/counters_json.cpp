// llmprof counters, as JSON; and what both forms ask of CUPTI.

#include <algorithm>
#include <cctype>
#include <set>

#include "base/json.h"
#include "base/strings.h"
#include "counters_verb.h"
#include "hw/counters/passes.h"

namespace llmprof::app {
namespace {

using namespace hw::counters;
using base::Json;

bool wants(WantedMethod wanted, Method method) { return !wanted || *wanted == method; }

Json head_of(const Chip& chip) {
  Json json = json_head("llmprof.counters");
  json["chip"] = {
      {"name", chip.name}, {"generation", chip.generation}, {"capability", chip.capability}, {"devices", chip.devices}};
  return json;
}

std::string_view word_of(Aggregation together) {
  if (together == Aggregation::kSum) return "sum";
  return together == Aggregation::kMean ? "mean" : "mean by time";
}

// By method, where the chip offers it.
Json counter_json(const Counter& counter, const Chip& chip, WantedMethod wanted) {
  Json json{{"name", counter.name},
            {"unit", counter.unit},
            {"meaning", counter.meaning},
            {"denominator", base::text_or_null(counter.denominator)},
            {"together", word_of(counter.together)},
            {"apart", counter.apart},
            {"methods", Json::object()}};
  for (const Method method : {Method::kRange, Method::kKernel, Method::kSampled}) {
    const Formula* formula = formula_of(counter, chip.name, method);
    if (formula == nullptr || !wants(wanted, method)) continue;
    json["methods"][std::string(name_of(method))] = {
        {"formula", formula->text},
        {"metrics", formula->metrics},
        {"passes", base::maybe(passes_of(counter.name, chip.name, method))}};
  }
  return json;
}

Json set_json(const Set& set, const Chip& chip, WantedMethod wanted) {
  Json json{{"name", set.name}, {"meaning", set.meaning}, {"counters", set.counters}, {"methods", Json::object()}};
  const Result<Selection> selection = select(set.name);
  for (const Method method : {Method::kRange, Method::kKernel, Method::kSampled}) {
    if (!selection || !wants(wanted, method)) continue;
    const ChipMetrics metrics = metrics_of(*selection, chip.name, method);
    json["methods"][std::string(name_of(method))] = {{"passes", base::maybe(passes_of(set.name, chip.name, method))},
                                                     {"metrics", metrics.metrics},
                                                     {"missing", metrics.missing}};
  }
  return json;
}

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

}  // namespace

Json chips_json() {
  Json json = json_head("llmprof.counters");
  json["chips"] = Json::array();
  for (const std::string_view name : chips()) {
    const Chip& chip = *find_chip(name);
    Json row{{"name", chip.name},
             {"generation", chip.generation},
             {"capability", chip.capability},
             {"devices", chip.devices}};
    row["sampled"] = chip.sampled;
    row["passes"] = Json::object();
    for (const Set& set : sets()) row["passes"][set.name] = base::maybe(passes_of(set.name, chip.name, Method::kRange));
    json["chips"].push_back(std::move(row));
  }
  return json;
}

Json chip_json(const Chip& chip, WantedMethod method) {
  Json json = head_of(chip);
  json["sets"] = Json::array();
  for (const Set& set : sets()) json["sets"].push_back(set_json(set, chip, method));
  json["counters"] = Json::array();
  for (const Counter& counter : catalog()) json["counters"].push_back(counter_json(counter, chip, method));
  return json;
}

Result<std::optional<int>> passes_together(const Asked& asked, Method method) {
  const ChipMetrics metrics = metrics_of(asked.selection, asked.chip.name, method);
  if (metrics.metrics.empty()) return std::optional(0);
  if (asked.library == nullptr) return passes_of(asked.selection.text, asked.chip.name, method);
  LLMPROF_LET(const int passes, asked.library->passes(asked.chip.name, method, metrics.metrics));
  return std::optional(passes);
}

Json asked_json(const Asked& asked) {
  Json json = head_of(asked.chip);
  json["asked"] = asked.selection.text;
  json["counters"] = Json::array();
  for (const Counter* counter : asked.selection.counters) {
    json["counters"].push_back(counter_json(*counter, asked.chip, asked.method));
  }
  json["metrics_of_the_chip"] = asked.selection.raw;
  json["together"] = Json::object();
  for (const Method method : {Method::kRange, Method::kKernel, Method::kSampled}) {
    if (!wants(asked.method, method)) continue;
    const ChipMetrics metrics = metrics_of(asked.selection, asked.chip.name, method);
    const Result<std::optional<int>> passes = passes_together(asked, method);
    json["together"][std::string(name_of(method))] = {{"metrics", metrics.metrics},
                                                      {"missing", metrics.missing},
                                                      {"passes", passes ? base::maybe(*passes) : Json(nullptr)},
                                                      {"error", passes ? Json(nullptr) : Json(passes.error().message)}};
  }
  return json;
}

Result<std::vector<RawMetric>> raw_metrics(const HostLibrary& library, const std::string& chip,
                                           const std::string& pattern, WantedMethod method) {
  std::string wanted = base::lowercase(pattern);
  if (wanted.find_first_of("*?") == std::string::npos) wanted = "*" + wanted + "*";
  const bool ranges = wants(method, Method::kRange) || wants(method, Method::kKernel);
  const std::set<std::string> in_ranges = ranges ? names_by(library, chip, Method::kRange) : std::set<std::string>{};
  const std::set<std::string> sampled =
      wants(method, Method::kSampled) ? names_by(library, chip, Method::kSampled) : std::set<std::string>{};
  std::set<std::string> all = in_ranges;
  all.insert(sampled.begin(), sampled.end());
  std::vector<RawMetric> found;
  for (const std::string& name : all) {
    if (!matches(wanted, base::lowercase(name))) continue;
    RawMetric metric{
        .name = name, .unit = "", .text = "", .ranges = in_ranges.contains(name), .sampled = sampled.contains(name)};
    const Method by = metric.ranges ? Method::kRange : Method::kSampled;
    if (const auto description = library.describe(chip, by, name)) {
      metric.unit = description->unit;
      metric.text = description->text;
    }
    found.push_back(std::move(metric));
  }
  if (!found.empty()) return found;
  return Error{ErrorCode::kNotFound, chip + " has no metric like " + pattern,
               "A pattern is a part of a name, or has * and ?: dram__bytes*."};
}

Json raw_json(const std::vector<RawMetric>& metrics) {
  Json list = Json::array();
  for (const RawMetric& metric : metrics) {
    list.push_back({{"name", metric.name},
                    {"unit", base::text_or_null(metric.unit)},
                    {"meaning", base::text_or_null(metric.text)},
                    {"range", metric.ranges},
                    {"sampled", metric.sampled}});
  }
  return list;
}

}  // namespace llmprof::app

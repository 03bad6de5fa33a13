#include "hw/counters/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/asset.h"
#include "base/json.h"

namespace llmprof::hw_counters {

std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::hw::counters {
namespace {

const base::Json& table() {
  static const base::Json kTable = [] {
    const std::string_view name = "counters/passes.json";
    Result<base::Json> json = base::parse_json(base::find_asset(hw_counters::assets(), name), name);
    return json && json->is_object() ? std::move(*json) : base::Json::object();  // a test holds it to be readable
  }();
  return kTable;
}

// Counters of one pass are not listed.
int in_ranges(std::string_view name, std::string_view chip) {
  const auto row = table().find(std::string(chip));
  if (row == table().end() || !row->is_object()) return 1;
  const auto passes = row->find(std::string(name));
  return passes != row->end() && passes->is_number_integer() ? passes->get<int>() : 1;
}

constexpr std::string_view kBegin = "<!-- counters: made from the catalogue by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /counters -->";
constexpr std::string_view kExample = "GH100";

std::string_view word_of(Aggregation together) {
  if (together == Aggregation::kSum) return "sum";
  return together == Aggregation::kMean ? "mean" : "mean by time";
}

std::string cell(std::optional<int> passes) { return passes ? std::to_string(*passes) : "-"; }

std::string counters_table() {
  std::string text = fmt::format(
      "| counter | unit | meaning | percent of | windows together | sampled | passes on {0} | formula on {0} |\n"
      "|---|---|---|---|---|---|---|---|\n",
      kExample);
  for (const Counter& counter : catalog()) {
    const Formula* formula = formula_of(counter, kExample, Method::kRange);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", counter.name, counter.unit, counter.meaning,
                        counter.denominator, word_of(counter.together),
                        formula_of(counter, kExample, Method::kSampled) != nullptr ? "yes" : "no",
                        cell(passes_of(counter.name, kExample, Method::kRange)),
                        formula == nullptr ? "not on this chip" : "`" + formula->text + "`");
  }
  return text;
}

std::string sets_table() {
  std::string text = "| set | what | counters | kept when sampled |\n|---|---|---|---|\n";
  for (const Set& set : sets()) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", set.name, set.meaning, fmt::join(set.counters, ", "),
                        fmt::join(set.sampled, ", "));
  }
  return text;
}

std::string passes_table() {
  std::string text = "| chip | generation |", line = "|---|---|";
  for (const Set& set : sets()) {
    text += fmt::format(" {} |", set.name);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const std::string_view name : chips()) {
    text += fmt::format("| {} | {} |", name, find_chip(name)->generation);
    for (const Set& set : sets()) text += fmt::format(" {} |", cell(passes_of(set.name, name, Method::kRange)));
    text += "\n";
  }
  return text;
}

std::string reference() {
  return fmt::format(
      "### Counters\n\n{}\n### Sets\n\n{}\n### Passes of a set in ranges and kernels\n\nBy CUPTI {}. Samples have one "
      "pass, on every chip but GV100, which has none.\n\n{}",
      counters_table(), sets_table(), passes_version(), passes_table());
}

}  // namespace

std::optional<int> passes_of(std::string_view set_or_counter, std::string_view chip, Method method) {
  if (find_set(set_or_counter) == nullptr && find_counter(set_or_counter) == nullptr) return std::nullopt;
  const Result<Selection> selection = select(set_or_counter);
  if (!selection || metrics_of(*selection, chip, method).metrics.empty()) return std::nullopt;
  return method == Method::kSampled ? 1 : in_ranges(set_or_counter, chip);
}

int passes_version() {
  const auto version = table().find("cupti");
  return version != table().end() && version->is_number_integer() ? version->get<int>() : 0;
}

std::string with_current_catalog(std::string page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}\n", kBegin, reference()));
}

}  // namespace llmprof::hw::counters

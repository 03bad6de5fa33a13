#include "hw/counters/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hw/counters/passes.h"

namespace llmprof::hw::counters {
namespace {

constexpr std::string_view kBegin = "<!-- counters: made from the catalogue by `make docs` -->";
constexpr std::string_view kEnd = "<!-- /counters -->";
constexpr std::string_view kExample = "GH100";

std::string_view word_of(Together together) {
  if (together == Together::kSum) return "sum";
  return together == Together::kMean ? "mean" : "mean by time";
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

std::string with_current_catalog(std::string page) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end - begin, fmt::format("{}\n\n{}\n", kBegin, reference()));
}

}  // namespace llmprof::hw::counters

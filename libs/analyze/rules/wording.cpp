#include "analyze/rules/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "base/kernel_name.h"

namespace llmprof::analyze {

Evidence number(std::string name, std::string what, std::optional<double> value, std::string unit, std::string source,
                std::string rows) {
  return {.name = std::move(name),
          .what = std::move(what),
          .value = value,
          .unit = std::move(unit),
          .source = std::move(source),
          .rows = std::move(rows)};
}

Evidence fraction(std::string name, std::string what, std::optional<double> value, std::string of, std::string source,
                  std::string rows) {
  Evidence out = number(std::move(name), std::move(what), value, "1", std::move(source), std::move(rows));
  out.of = std::move(of);
  return out;
}

Evidence time_of(std::string name, std::string what, double ns, std::string source, std::string rows) {
  return number(std::move(name), std::move(what), ns * 1e-9, "s", std::move(source), std::move(rows));
}

RuleResult not_found(std::string why) { return {.why = std::move(why)}; }

RuleResult not_applicable(std::string why) { return {.applicable = false, .why = std::move(why)}; }

void set_gain(Finding& finding, double ns, double of_stage_ns, std::string how, bool upper_bound) {
  finding.gain = Gain{.ns = ns, .of_ns = of_stage_ns, .upper_bound = upper_bound, .how = std::move(how)};
}

void add_counted_bytes(const Summary& summary, std::string_view stage, std::vector<Evidence>& evidence) {
  for (const CountedStage& counted : summary.counters.stages) {
    if (counted.stage != stage || !counted.work.dram_bytes) continue;
    evidence.push_back(number(std::string(stage) + ".dram_bytes_per_step",
                              "bytes that the device's memory moved in a step", counted.work.dram_bytes, "B",
                              "counted"));
    if (counted.redundancy)
      evidence.push_back(number(std::string(stage) + ".redundancy", "of these, for each byte that must move",
                                counted.redundancy, "", "counted"));
  }
}

const Stage* stage_named(const Summary& summary, std::string_view name) {
  for (const Stage& stage : summary.stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

bool is_preparation(std::string_view stage) { return stage == "load" || stage == "warm-up"; }

std::optional<double> busy_share(const Stage& stage) {
  const auto total = static_cast<double>(stage.device_busy_ns + stage.idle_ns);
  return total > 0 ? std::optional(static_cast<double>(stage.device_busy_ns) / total) : std::nullopt;
}

std::string count_of(double count, std::string_view plural) {
  const double shown = count < 10 ? std::round(count * 10) / 10 : std::round(count);
  return fmt::format("{} {}", shown, shown == 1 ? base::singular(plural) : std::string(plural));
}

std::string short_kernel(std::string_view name) {
  const std::string last = base::kernel_function(name);
  // PyTorch's reductions differ by an argument only.
  return name.find("ArgMaxOps") != name.npos ? last + " (argmax)" : last;
}

std::string step_word(std::string_view stage, std::string_view word) {
  return stage == "steps" ? std::string(word) : fmt::format("{} {}", stage, word);
}

bool makes_tokens(std::string_view stage) {
  static constexpr std::array<std::string_view, 6> kMake{"prefill", "decode", "mixed", "draft", "verify", "generation"};
  return std::ranges::find(kMake, stage) != kMake.end();
}

bool is_training(std::string_view stage) {
  return stage == "forward" || stage == "backward" || stage == "optimizer" || stage == "training";
}

}  // namespace llmprof::analyze

#include "record/control/window_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/human.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "record/record.h"

namespace llmprof::record {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kLeastSegmentMs = 100;
constexpr std::int64_t kSegments = 8;  // logs that the kept end is cut into: one of them more is on the disk
constexpr std::size_t kMaxNameBytes = 2000;

Error usage(std::string message, std::string hint) { return {ErrorCode::kUsage, std::move(message), std::move(hint)}; }

struct Unit {
  std::string_view name;
  double size;
};

// "1.5GB": the number times the size of its unit. None: it is no number with one of these units.
std::optional<double> in_units(std::string_view text, std::span<const Unit> units) {
  std::string_view rest;
  const auto value = base::leading_number<double>(text, rest);
  const auto unit = std::ranges::find(units, rest, &Unit::name);
  return value && unit != units.end() ? std::optional(*value * unit->size) : std::nullopt;
}

std::string span(std::int64_t ns) { return base::human_ns(static_cast<double>(ns)); }

std::string step_lines(const WindowOptions& options) {
  std::string lines = options.declared_steps ? "@step" : "";
  for (const std::string& name : options.step_names) lines += (lines.empty() ? "" : "\n") + name;
  for (const std::string& name : options.plain_step_names) lines += (lines.empty() ? "!" : "\n!") + name;
  return lines;
}

Result<void> check_switches(const WindowOptions& options) {
  const bool other =
      options.delay_ns || options.duration_ns || !options.start_range.empty() || options.steps || options.last_ns;
  if (options.start_stopped && options.control.empty()) {
    return usage("--start-stopped waits for a start that comes through a socket", "use it with --control SOCKET");
  }
  if (!options.control.empty() && options.profiler_api) {
    return usage("--control and --profiler-api both say when to record", "leave out one of them");
  }
  if ((!options.control.empty() || options.profiler_api) && other) {
    return usage(fmt::format("{} says when to record; it cannot be combined with another window",
                             options.profiler_api ? "--profiler-api" : "--control"),
                 "leave out --delay, --duration, --start-range, --steps and --last");
  }
  return {};
}

}  // namespace

Result<void> check(const WindowOptions& options) {
  LLMPROF_TRY(check_switches(options));
  const bool window = options.delay_ns || options.duration_ns || !options.start_range.empty() || options.steps;
  if (options.last_ns && window) {
    return usage("--last keeps the end of the recording; it cannot be combined with a window",
                 "leave out --delay, --duration, --start-range and --steps");
  }
  if (options.steps && (options.delay_ns || options.duration_ns || !options.start_range.empty())) {
    return usage("--steps says where the window begins and ends; it cannot be combined with another window",
                 "leave out --delay, --duration and --start-range");
  }
  if (options.steps && step_lines(options).size() > kMaxNameBytes) {
    return usage("the names of the steps are too long", "choose one with --step-range");
  }
  if (options.start_range.size() > kMaxNameBytes || options.start_range.find('\n') != std::string::npos) {
    return usage("the name of --start-range is too long or has several lines", "cut it and end it with *");
  }
  return {};
}

const std::vector<std::string>& window_variable_names() {
  static const std::vector<std::string> names{
      "LLMPROF_WINDOW_FROM_NS", "LLMPROF_WINDOW_UNTIL_NS", "LLMPROF_WINDOW_LASTS_NS", "LLMPROF_WINDOW_RANGE",
      "LLMPROF_STEP_PATTERNS",  "LLMPROF_FIRST_STEP",      "LLMPROF_END_STEP",        "LLMPROF_KEEP_MS",
      "LLMPROF_SEGMENT_MS",     "LLMPROF_CONTROL",         "LLMPROF_PROFILER_API"};
  return names;
}

std::vector<std::pair<std::string, std::string>> window_variables(const WindowOptions& options, std::int64_t begin_ns) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto add = [&](const char* name, std::int64_t value) { variables.emplace_back(name, fmt::to_string(value)); };
  const std::int64_t from_ns = begin_ns + options.delay_ns.value_or(0);
  if (options.delay_ns) add("LLMPROF_WINDOW_FROM_NS", from_ns);
  if (!options.start_range.empty()) variables.emplace_back("LLMPROF_WINDOW_RANGE", options.start_range);
  if (options.duration_ns && options.start_range.empty())
    add("LLMPROF_WINDOW_UNTIL_NS", from_ns + *options.duration_ns);
  if (options.duration_ns && !options.start_range.empty()) add("LLMPROF_WINDOW_LASTS_NS", *options.duration_ns);
  if (options.steps) {
    variables.emplace_back("LLMPROF_STEP_PATTERNS", step_lines(options));
    if (options.steps->first) add("LLMPROF_FIRST_STEP", *options.steps->first);
    if (options.steps->end) add("LLMPROF_END_STEP", *options.steps->end);
  }
  if (options.last_ns) {
    const std::int64_t keep_ms = std::max<std::int64_t>(*options.last_ns / kNsPerMs, 1);
    add("LLMPROF_KEEP_MS", keep_ms);
    add("LLMPROF_SEGMENT_MS", std::max(keep_ms / kSegments, kLeastSegmentMs));
  }
  if (!options.control.empty()) add("LLMPROF_CONTROL", 1);
  if (options.profiler_api) add("LLMPROF_PROFILER_API", 1);
  return variables;
}

std::string describe(const WindowOptions& options) {
  if (!options.control.empty()) return "while it was switched on through a socket";
  if (options.profiler_api) return "between cudaProfilerStart and cudaProfilerStop of each process";
  if (options.last_ns) return fmt::format("the last {}", span(*options.last_ns));
  if (options.steps) {
    const auto first = options.steps->first, end = options.steps->end;
    if (!first) return fmt::format("up to the end of step {} of each process", *end - 1);
    if (!end) return fmt::format("from step {} of each process on", *first);
    if (*end == *first + 1) return fmt::format("step {} of each process", *first);
    return fmt::format("steps {} to {} of each process", *first, *end - 1);
  }
  std::string text = options.duration_ns ? span(*options.duration_ns) + " " : "";
  if (!options.start_range.empty())
    text += fmt::format("from the first range \"{}\" of each process on", options.start_range);
  if (options.delay_ns) {
    text += fmt::format("{}{} after the start{}", options.start_range.empty() ? "from " : ", not before ",
                        span(*options.delay_ns), options.start_range.empty() ? " on" : "");
  }
  if (options.duration_ns && !options.delay_ns && options.start_range.empty()) text += "from the start on";
  return text;
}

Result<std::int64_t> parse_moment(std::string_view text) {
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  const double ns = in_units(text, kUnits).value_or(-1);
  if (ns >= 0 && ns < 1e18) return static_cast<std::int64_t>(std::round(ns));
  return usage(fmt::format("'{}' is not a time", text), "write it as 0s, 250us, 500ms, 1.5s, 5m or 1h");
}

Result<std::int64_t> parse_duration(std::string_view text) {
  const Result<std::int64_t> ns = parse_moment(text);
  if (ns && *ns >= 1'000'000) return *ns;
  return usage(fmt::format("'{}' is not a duration of a millisecond or more", text),
               "write it as 500ms, 10s, 5m or 1h");
}

Result<StepSpan> parse_steps(std::string_view text) {
  const Error error = usage(fmt::format("'{}' are not steps", text),
                            "write 10:20 for steps 10 to 19, 10: for all from 10 on, :20 for all before 20");
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text == ":") return error;
  const std::string_view first = text.substr(0, colon), end = text.substr(colon + 1);
  const StepSpan span{base::parse_number<std::int64_t>(first), base::parse_number<std::int64_t>(end)};
  if ((!first.empty() && span.first.value_or(-1) < 0) || (!end.empty() && span.end.value_or(-1) < 0)) return error;
  if (span.end && *span.end <= span.first.value_or(0)) return error;
  return span;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr double kKi = 1024, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;
  constexpr Unit kUnits[] = {{"", 1},      {"b", 1},     {"kb", 1e3},  {"mb", 1e6},  {"gb", 1e9},
                             {"tb", 1e12}, {"kib", kKi}, {"mib", kMi}, {"gib", kGi}, {"tib", kTi},
                             {"k", kKi},   {"m", kMi},   {"g", kGi},   {"t", kTi}};
  const double bytes = in_units(base::lowercase(text), kUnits).value_or(0);
  if (bytes > 0 && bytes < 9e18) return static_cast<std::uint64_t>(bytes);
  return usage(fmt::format("'{}' is not a size", text), "write it as 500MB or 10GiB");
}

}  // namespace llmprof::record

#include <fmt/format.h>

#include <string.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>

#include "base/human.h"
#include "base/text_table.h"
#include "report/layout.h"
#include "report/sections.h"

namespace llmprof::report {

namespace {

using analyze::Host;
using base::Json;

std::string bytes_cell(std::optional<std::int64_t> bytes) {
  return bytes ? base::human_bytes(static_cast<double>(*bytes)) : "-";
}
std::string open_text(const std::vector<analyze::OpenRanges>& processes) {
  if (processes.empty()) return "no range";
  std::string text;
  for (const analyze::OpenRanges& open : processes) {
    std::string path;
    for (std::size_t i = 0; i < open.names.size(); ++i) {
      if (i > 0 && open.names[i] == open.names[i - 1]) continue;  // a stage and its step
      path += (path.empty() ? "" : " › ") + open.names[i];
    }
    if (!text.empty()) text += "; ";
    text += processes.size() > 1 ? fmt::format("in {} {}", open.pid, path) : path;
  }
  return text;
}

std::string memory_lines(const Page& page) {
  const Host& host = page.summary.host;
  if (!host.peak || host.memory.empty()) return "";
  const std::size_t columns = std::min<std::size_t>(64, line_width() - 28);
  const std::int64_t begin = host.memory.front().ts_ns;
  const analyze::MemoryMoment& highest = host.peak->highest;
  const analyze::MemoryMoment& nearly = host.peak->nearly;
  std::string out =
      fmt::format("  memory  {}  up to {}\n", sparkline(highest_in_parts(host.memory, columns), columns, page.unicode),
                  bytes_cell(highest.rss_bytes));
  out += wrapped(
      fmt::format("All processes together, resident, over {}; memory they share counts for each. Highest {} after {}; "
                  "open then: {}.",
                  time_cell(host.memory.back().ts_ns - begin), bytes_cell(highest.rss_bytes),
                  time_cell(highest.ts_ns - begin), open_text(highest.open_ranges)));
  if (nearly.ts_ns == highest.ts_ns) return out;
  return out + wrapped(fmt::format("95 % of it was there after {}; open then: {}.", time_cell(nearly.ts_ns - begin),
                                   open_text(nearly.open_ranges)));
}

// What threads did and waited for. States with less than a hundredth of the time, and processes with less than a
// hundredth of the busiest one's CPU time, are in the JSON only.
std::string waits_section(const Style& style, const TableText& tables) {
  constexpr double kLeast = 0.01;
  constexpr std::string_view kWaits = "host.thread_states[]", kThreads = "host.threads[]";
  const Json& all = tables.report()["host"]["thread_states"];
  std::map<std::int64_t, double> cpu_ns;  // by process
  double most_ns = 0;
  for (const Json& wait : all) {
    if (wait["state"] != "user" && wait["state"] != "system") continue;
    most_ns = std::max(most_ns, cpu_ns[wait["pid"].get<std::int64_t>()] += wait["time_ns"].get<double>());
  }
  Json rows = Json::array();
  std::string before;
  for (const Json& wait : all) {
    if (cpu_ns[wait["pid"].get<std::int64_t>()] < kLeast * most_ns) continue;
    const bool main = wait["main_share"].is_number() && wait["main_share"].get<double>() >= kLeast;
    if (wait["share"].get<double>() < kLeast && !main) continue;
    rows.push_back(wait);
    const auto label = wait["label"].get<std::string>();
    if (label == before) rows.back()["label"] = "";  // said once
    before = label;
  }
  if (rows.empty()) return "";
  std::string out = style.heading(tables.title(kWaits)) + tables.rows(kWaits, rows, SIZE_MAX) + tables.notes(kWaits);
  const Json& threads = tables.report()["host"]["threads"];
  if (threads.size() > 1)
    out += style.heading(tables.title(kThreads)) + tables.rows(kThreads, threads) + tables.notes(kThreads);
  return out;
}

// Gains that matter: a thousandth of the peak or more.
std::string gain_table(const Page& page, const Style& style, const TableText& tables) {
  const Host& host = page.summary.host;
  const std::int64_t least = host.peak ? host.peak->highest.rss_bytes / 1000 : 0;
  const auto size = [](const Json& gain, const char* key) { return std::abs(gain[key].get<std::int64_t>()); };
  Json gains = Json::array();
  for (const Json& gain : tables.report()["host"]["gains"]) {
    if (std::max(size(gain, "gained_bytes"), size(gain, "largest_bytes")) >= least) gains.push_back(gain);
  }
  if (gains.empty()) return "";
  std::stable_sort(gains.begin(), gains.end(),
                   [&](const Json& a, const Json& b) { return size(a, "gained_bytes") > size(b, "gained_bytes"); });
  constexpr std::string_view kTable = "host.gains[]";
  return style.heading(tables.title(kTable)) + tables.rows(kTable, gains) + tables.notes(kTable);
}

}  // namespace

std::vector<std::int64_t> highest_in_parts(const std::vector<analyze::MemoryPoint>& points, std::size_t columns) {
  if (points.empty() || columns == 0) return {};
  const std::int64_t begin = points.front().ts_ns;
  const std::int64_t part_ns = (points.back().ts_ns - begin) / static_cast<std::int64_t>(columns) + 1;
  std::vector<std::int64_t> highest(columns, -1);
  for (const analyze::MemoryPoint& point : points) {
    std::int64_t& value = highest[static_cast<std::size_t>((point.ts_ns - begin) / part_ns)];
    value = std::max(value, point.rss_bytes);
  }
  for (std::size_t i = 1; i < columns; ++i) {
    if (highest[i] < 0) highest[i] = highest[i - 1];
  }
  return highest;
}

std::string host_section(const Page& page, const Style& style, const TableText& tables) {
  const Host& host = page.summary.host;
  if (host.processes.empty()) return style.heading("Processes") + wrapped(kNoReadings);
  constexpr std::string_view kTable = "host.processes[]";
  std::string title = tables.title(kTable);
  if (host.readings_per_s) title += fmt::format(" {} times a second", base::three_digits(*host.readings_per_s));
  return style.heading(title) + tables.rows(kTable, tables.report()["host"]["processes"]) + tables.notes(kTable) +
         memory_lines(page) + waits_section(style, tables) + gain_table(page, style, tables);
}

bool is_plain_program(const Page& page) {
  const analyze::Summary& summary = page.summary;
  return !is_imported(page) && summary.coverage.kernels == 0 && summary.coverage.gemms == 0 &&
         summary.coverage.ranges == 0 && summary.stages.empty() && summary.host.sampled_stages.empty() &&
         summary.model.empty();
}

std::string functions_section(const Page& page, const Style& style, const TableText& tables) {
  const bool staged = std::ranges::any_of(page.summary.host.functions,
                                          [](const analyze::Function& function) { return !function.stage.empty(); });
  return tables.section(staged ? "functions[]" : "top_functions[]", style) +
         tables.section("python_functions[]", style);
}

namespace {

using analyze::SampledStage;
using analyze::StackCoverage;
using base::Json;

double share(std::int64_t part, std::int64_t of) {
  return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0;
}

}  // namespace

std::string stack_coverage(const Page& page) {
  const StackCoverage& stacks = page.summary.host.stacks;
  if (stacks.samples == 0) {
    return stacks.why.empty() ? "" : wrapped(fmt::format("CPU stacks were not sampled: {}.", stacks.why));
  }
  std::string line = fmt::format("{} of CPU time in {}; {} of the stacks are truncated (outer frames missing)",
                                 base::human_ns(static_cast<double>(stacks.sampled_ns)),
                                 counted(stacks.samples, "stack sample"), base::human_percent(stacks.truncated_share));
  if (stacks.without_stack > 0) line += fmt::format(", {} could not be read", stacks.without_stack);
  if (stacks.lost > 0) line += fmt::format(", {} more were lost", stacks.lost);
  if (page.info.rests) {
    const auto time = [](std::uint64_t ns) { return base::human_ns(static_cast<double>(ns)); };
    line += fmt::format("; none were taken in rests of recording, {} of every {}, so the CPU time of these is missing",
                        time(page.info.rests->when.lasts_ns), time(page.info.rests->when.every_ns));
  }
  return wrapped(line + ".");
}

// What stack samples tell of a training loop whose matrix products are compiled into the program.
std::string sampled_section(const Page& page, const Style& style, const TableText& tables) {
  const std::vector<SampledStage>& stages = page.summary.host.sampled_stages;
  if (stages.empty()) return "";
  std::int64_t uncounted = 0, samples = 0, sampled_ns = 0;
  for (const SampledStage& stage : stages) {
    samples += stage.samples;
    sampled_ns += stage.time_ns;
    uncounted += shown(page, stage.stage) && stage.stage != "forward only" && !stage.passes ? 1 : 0;
  }
  Json rows = Json::array();
  for (const Json& stage : tables.report()["sampled_stages"]) {
    rows.push_back(stage);
    std::size_t parts = 0;
    for (Json part : stage["parts"]) {
      if (part["name"] == stage["function"] || ++parts > page.top) continue;
      part["function"] = "  " + part["name"].get<std::string>(), part["below"] = true;
      rows.push_back(std::move(part));
    }
  }
  const double period_ns = share(sampled_ns, samples);
  std::string out = style.heading(tables.title("sampled_stages[]"));
  out += wrapped(fmt::format(
      "{} calls functions in turn whose names say forward and backward: from the one to the other {} times, in {} of "
      "its thread, one for every {} of CPU time.",
      stages.front().caller, stages.front().changes, counted(samples, "stack sample"), base::human_ns(period_ns)));
  out += tables.rows("sampled_stages[]", rows, SIZE_MAX) + tables.notes("sampled_stages[]");
  if (uncounted > 0) {
    out += wrapped(
        "passes: unknown where one takes less time than two samples, or where they differ so much that two may have "
        "been "
        "taken for one. A higher --sample-hz may tell. Forward passes that nothing is learned from (validation) may "
        "then "
        "be among the others.");
  } else {
    out += wrapped(
        fmt::format("passes: by the changes between the functions. Begin and end of each are known to {} of CPU time.",
                    base::human_ns(period_ns / 2)));
  }
  if (page.summary.coverage.gemms == 0) {
    out += wrapped(
        "Shapes, tokens and FLOPs are unknown: the matrix products are compiled into the program, so that no call of a "
        "library tells them. Annotations (include/llmprof/annotate.h, NVTX) would tell steps and sizes exactly.");
  }
  return out;
}

namespace {

using analyze::Companion;
using analyze::Life;
using analyze::LifePhase;
using base::Json;

constexpr double kLeastPhase = 0.001;  // of the life: phases with less are one row

// One sign for each phase: a letter of its label that no longer one has, time without work as '.'.
std::vector<std::string> signs(const Life& life) {
  std::vector<std::string> out(life.phases.size());
  std::vector<std::size_t> order(life.phases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return life.phases[i].time_ns; });
  std::string used;
  const auto take = [&](char sign) {
    const bool fresh = used.find(sign) == std::string::npos;
    if (fresh) used += sign;
    return fresh;
  };
  for (const std::size_t phase_number : order) {
    const LifePhase& phase = life.phases[phase_number];
    char sign = phase.name == "idle" ? '.' : phase.name == "unknown" ? '?' : ' ';
    const std::string letters = phase.label + "abcdefghijklmnopqrstuvwxyz0123456789";
    for (std::size_t i = 0; i < letters.size() && sign == ' '; ++i) {
      const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letters[i])));
      if (std::isalnum(static_cast<unsigned char>(upper)) != 0 && take(upper)) sign = upper;
    }
    out[phase_number] = sign;
  }
  return out;
}

// Without the folder of the program: what follows says more.
std::string whose(const Life& life) {
  std::string command = life.arguments.empty() ? life.executable : life.arguments;
  const std::size_t folder = command.substr(0, command.find(' ')).rfind('/');
  if (folder != std::string::npos) command.erase(0, folder + 1);
  return fmt::format("{} (process {})", cut_off(base::printable(command), 60), life.pid);
}

std::string phase_table(const Life& life, const std::vector<std::string>& sign, const TableText& tables) {
  Json rows = Json::array();
  std::int64_t small = 0, small_ns = 0;
  for (std::size_t i = 0; i < life.phases.size(); ++i) {
    if (life.phases[i].share < kLeastPhase) {
      ++small, small_ns += life.phases[i].time_ns;
      continue;
    }
    rows.push_back(tables.report()["life"]["phases"][i]);
    rows.back()["sign"] = sign[i];
  }
  if (small > 0) {
    rows.push_back({{"label", counted(small, "phase") + " below 0.1 %"},
                    {"time_ns", small_ns},
                    {"share", static_cast<double>(small_ns) / static_cast<double>(life.time_ns())}});
  }
  return tables.rows("life.phases[]", rows, SIZE_MAX);
}

std::string companion_line(const Life& life) {
  constexpr std::size_t kMost = 5;
  if (life.concurrent.empty()) return "";
  std::string names;
  for (std::size_t i = 0; i < std::min(kMost, life.concurrent.size()); ++i) {
    const Companion& c = life.concurrent[i];
    names += fmt::format("{}{} {} ({}, CPU {})", names.empty() ? "" : ", ", c.processes, base::printable(c.name),
                         base::human_ns(static_cast<double>(c.life_ns)), base::human_ns(static_cast<double>(c.cpu_ns)));
  }
  const auto left = static_cast<std::int64_t>(life.concurrent.size() - std::min(kMost, life.concurrent.size()));
  if (left > 0) names += ", " + counted(left, "other program");
  return wrapped(fmt::format(
      "Processes that ran at the same time, not in the bar (sums of their lifetimes and CPU times): {}.", names));
}

}  // namespace

std::string exit_words(const Page& page) {
  const Life& life = page.summary.life;
  if (!life.exit_status) return "";
  const char* name = *life.exit_status > 128 ? ::sigabbrev_np(static_cast<int>(*life.exit_status - 128)) : nullptr;
  return fmt::format("exit status {}{}", *life.exit_status,
                     name != nullptr ? fmt::format(" (as by signal SIG{})", name) : "");
}

std::string life_bar(const Page& page) {
  const Life& life = page.summary.life;
  constexpr double kWorthNaming = 0.01;
  if (life.process_id == 0 || life.time_ns() <= 0) return "";
  const std::vector<std::string> sign = signs(life);
  std::string bar, names;
  for (const std::size_t phase : life.strip) bar += sign[phase];
  std::vector<std::size_t> order(life.phases.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return life.phases[i].time_ns; });
  for (const std::size_t i : order) {
    if (life.phases[i].share < kWorthNaming) break;
    std::string name =
        fmt::format("{} {} {}", sign[i], life.phases[i].label, base::human_percent(life.phases[i].share));
    for (std::size_t at = name.find(' '); at != std::string::npos; at = name.find(' ', at))
      name.replace(at, 1, kNoBreak);
    names += (names.empty() ? "" : ", ") + name;
  }
  return fmt::format("  {}\n", bar) + wrapped(names);
}

std::string life_section(const Page& page, const Style& style, const TableText& tables) {
  const Life& life = page.summary.life;
  if (life.process_id == 0 || life.time_ns() <= 0) return "";
  const std::vector<std::string> sign = signs(life);
  const bool attached = page.info.window.starts_with("from outside");  // record --pid
  std::string out = style.heading("Life of the program");
  out += wrapped(
      fmt::format("{}: {} from {} to {}{}.", whose(life), base::human_ns(static_cast<double>(life.time_ns())),
                  attached    ? "attaching"
                  : life.root ? "exec"
                              : "its start",
                  life.ended ? "exit" : "what was seen last of it", life.exit_status ? ", " + exit_words(page) : ""));
  std::string bar;
  for (const std::size_t phase : life.strip) bar += sign[phase];
  out += fmt::format("  {}\n", bar) + phase_table(life, sign, tables);
  out += wrapped(
      "Each letter is 1/64 of the life and stands for the phase that took most of it. Phases come from steps; "
      "elsewhere from stack samples of the main thread, from copies, and where it waits from other threads and "
      "processes.");
  if (!life.sampled) out += wrapped("No stacks were sampled: what the host did outside of steps is not known.");
  return out + companion_line(life);
}

}  // namespace llmprof::report

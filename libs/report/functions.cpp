#include "report/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::Function;
using analyze::SampledPart;
using analyze::SampledStage;
using analyze::StackCoverage;
using base::Align;
using base::Json;
using base::TextTable;

double share(std::int64_t part, std::int64_t of) {
  return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0;
}

// "train.py", "libc.so.6": the folders are in the JSON. Short enough to leave the function its room.
std::string file_cell(const std::string& path) { return base::shorten(path.substr(path.rfind('/') + 1), 22); }

std::string kind_word(const std::string& kind) { return kind == "python" ? "py" : kind; }

}  // namespace

std::string stack_coverage(const Page& page) {
  const StackCoverage& stacks = page.summary.host.stacks;
  if (stacks.samples == 0) {
    return stacks.why.empty() ? "" : wrapped(fmt::format("CPU stacks were not sampled: {}.", stacks.why));
  }
  std::string line =
      fmt::format("{} of CPU time in {}; {} of the stacks are truncated (outer frames missing)",
                  base::human_ns(static_cast<double>(stacks.sampled_ns)), counted(stacks.samples, "stack sample"),
                  base::human_percent(share(stacks.truncated, stacks.samples)));
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
std::string sampled_section(const Page& page, const Style& style) {
  const std::vector<SampledStage>& stages = page.summary.host.sampled_stages;
  if (stages.empty()) return "";
  TextTable table({{"function", Align::kLeft, true},
                   {"stage", Align::kLeft},
                   {"samples"},
                   {"CPU time"},
                   {"CPU %"},
                   {"passes"},
                   {"CPU a pass"}});
  std::int64_t uncounted = 0, samples = 0, sampled_ns = 0;
  for (const SampledStage& stage : stages) {
    samples += stage.samples;
    sampled_ns += stage.time_ns;
    if (!shown(page, stage.stage)) continue;
    const bool learns = stage.stage != "forward only";
    uncounted += learns && !stage.passes ? 1 : 0;
    const auto of_all = [&](std::int64_t ns) { return percent_cell(share(ns, page.summary.host.stacks.sampled_ns)); };
    table.add({stage.function, stage.stage, std::to_string(stage.samples), time_cell(stage.time_ns),
               of_all(stage.time_ns), stage.passes ? std::to_string(*stage.passes) : "unknown",
               stage.passes ? time_cell(stage.time_ns / std::max<std::int64_t>(1, *stage.passes)) : "-"});
    std::size_t parts = 0;
    for (const SampledPart& part : stage.parts) {
      if (part.name == stage.function || ++parts > page.top) continue;
      table.add(
          {"  " + part.name, "", std::to_string(part.samples), time_cell(part.time_ns), of_all(part.time_ns), "", ""});
    }
  }
  const double period_ns = share(sampled_ns, samples);
  std::string out = style.heading("Training, by sampled functions");
  out += wrapped(fmt::format(
      "{} calls functions in turn whose names say forward and backward: from the one to the other {} times, in {} of "
      "its thread, one for every {} of CPU time.",
      stages.front().caller, stages.front().changes, counted(samples, "stack sample"), base::human_ns(period_ns)));
  out += table.render(kWidth);
  out += wrapped("CPU %: of all CPU time sampled. Below a function what it calls, with the time of all threads.");
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

std::string function_table(const Page& page, const Style& style) {
  TextTable table({{"function", Align::kLeft, true},
                   {"in", Align::kLeft},
                   {"kind", Align::kLeft},
                   {"stage", Align::kLeft},
                   {"calls"},
                   {"self"},
                   {"self %"},
                   {"total"}});
  std::size_t all = 0;
  for (const Function& f : page.summary.host.functions) {
    if (!shown(page, f.stage) || ++all > page.top) continue;
    table.add({f.name, file_cell(f.file), kind_word(f.kind), f.stage.empty() ? "(none)" : f.stage,
               f.calls ? std::to_string(*f.calls) : "-", time_cell(f.self_ns), percent_cell(f.self_share),
               time_cell(f.total_ns)});
  }
  if (all == 0) return "";
  std::string out = style.heading("Functions by self time") + table.render(kWidth);
  if (all > page.top) out += fmt::format("  {} more functions; --top shows more.\n", all - page.top);
  return out + wrapped(
                   "CPU time of all threads, from stack samples. self %: of the CPU time sampled in the stage. total: "
                   "with what it called. calls: where BLAS calls or ranges of that name were counted.");
}

Json stack_coverage_json(const Page& page) {
  const StackCoverage& stacks = page.summary.host.stacks;
  return {{"samples", stacks.samples},
          {"truncated", stacks.truncated},
          {"truncated_share", stacks.samples > 0 ? Json(share(stacks.truncated, stacks.samples)) : Json(nullptr)},
          {"without_stack", stacks.without_stack},
          {"lost", stacks.lost},
          {"sampled_ns", stacks.sampled_ns},
          {"why", stacks.why.empty() ? Json(nullptr) : Json(stacks.why)}};
}

Json sampled_json(const Page& page) {
  Json out = Json::array();
  for (const SampledStage& stage : page.summary.host.sampled_stages) {
    if (!shown(page, stage.stage)) continue;
    Json parts = Json::array();
    for (const SampledPart& part : stage.parts)
      parts.push_back({{"name", part.name}, {"samples", part.samples}, {"time_ns", part.time_ns}});
    out.push_back({{"function", stage.function},
                   {"caller", stage.caller},
                   {"stage", stage.stage},
                   {"samples", stage.samples},
                   {"time_ns", stage.time_ns},
                   {"passes", stage.passes ? Json(*stage.passes) : Json(nullptr)},
                   {"changes", stage.changes},
                   {"parts", std::move(parts)}});
  }
  return out;
}

Json functions_json(const Page& page) {
  Json out = Json::array();
  for (const Function& f : page.summary.host.functions) {
    if (!shown(page, f.stage)) continue;
    out.push_back({{"name", f.name},
                   {"file", f.file.empty() ? Json(nullptr) : Json(f.file)},
                   {"kind", f.kind},
                   {"stage", f.stage.empty() ? Json(nullptr) : Json(f.stage)},
                   {"calls", f.calls ? Json(*f.calls) : Json(nullptr)},
                   {"samples", f.samples},
                   {"self_ns", f.self_ns},
                   {"self_share", f.self_share},
                   {"total_ns", f.total_ns}});
  }
  return out;
}

}  // namespace llmprof::report

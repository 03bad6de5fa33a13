#include "report/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/tables.h"

namespace llmprof::report {
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

}  // namespace llmprof::report

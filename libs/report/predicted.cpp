// A predicted run has no program that ran, no recording and no losses: what is said of these in other runs is not said
// here, and what it stands on comes first.

#include <fmt/format.h>

#include "base/human.h"
#include "report/page.h"
#include "report/sections.h"

namespace llmprof::report {

bool is_predicted(const Page& page) { return page.info.source == "predict"; }

std::string prediction_lines(const Page& page) {
  if (!is_predicted(page)) return "";
  return wrapped("Predicted, not measured. " + page.info.prediction);
}

std::string predicted_section(const Page& page, const Style& style) {
  const analyze::Coverage& c = page.summary.coverage;
  std::int64_t steps = 0;
  for (const analyze::Stage& stage : page.summary.stages) steps += stage.steps;
  return style.heading("What was predicted") +
         wrapped(fmt::format("{} of {} in all, {} of {}.", counted(steps, "step"),
                             base::human_ns(static_cast<double>(c.wall_ns)), counted(c.kernels, "execution"),
                             base::human_ns(static_cast<double>(c.kernel_ns)))) +
         wrapped("Times of executions are predicted (~), one after the other on one device.");
}

}  // namespace llmprof::report

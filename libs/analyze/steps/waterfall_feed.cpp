#include "analyze/steps/waterfall_feed.h"

#include <fmt/format.h>

#include "analyze/questions.h"

namespace llmprof::analyze {

namespace {

Result<trace::Columns> read_slice(const trace::Run& run, std::string_view question, Window slice) {
  return run.columns(fmt::format("{} WHERE begin_ns >= {} AND begin_ns < {} ORDER BY begin_ns",
                                 sql_of(question), slice.begin_ns, slice.end_ns));
}

}  // namespace

StepTimes::Devices step_time_devices(const AnalysisContext& analysis) {
  StepTimes::Devices devices{.busiest_is_cpu = analysis.devices.empty() || analysis.devices.front().kind == "cpu"};
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    if (analysis.devices[i].kind == "cpu") {
      devices.cpus.push_back(analysis.device_ids[i]);
    } else if (analysis.devices[i].kernel_ns > 0) {
      devices.others_worked = true;
    }
  }
  return devices;
}

Result<CopiesAndWaits> read_copies_and_waits(const trace::Run& run, Window slice) {
  CopiesAndWaits read;
  LLMPROF_LET(read.copies, read_slice(run, "sql/pass_copies", slice));
  LLMPROF_LET(read.waits, read_slice(run, "sql/pass_waits", slice));
  return read;
}

void add_copies_and_waits(const CopiesAndWaits& read, StepTimes& times) {
  const auto& [copies, waits] = read;
  for (std::size_t i = 0; i < copies.rows(); ++i)
    times.add_copy(copies.values[2][i], {copies.values[0][i], copies.values[1][i]});
  for (std::size_t i = 0; i < waits.rows(); ++i)
    times.add_wait(waits.values[2][i], {waits.values[0][i], waits.values[1][i]});
}

}  // namespace llmprof::analyze

#pragma once
// The time that steps take on devices: how long each lasts there, and how much of it a device was busy.

#include "analyze/context.h"
#include "analyze/job/job.h"
#include "analyze/model/work_reader.h"
#include "analyze/passes/attribute.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/step_time.h"
#include "trace/run.h"

namespace llmprof::analyze {

// A device works on after the host has left a step: its window ends when the last of what was launched in it does.
// `steps` are those that `attribution` refers to, which keeps to the windows of the host: what is launched belongs
// there.
Result<void> extend_steps(const trace::Run& run, const std::vector<Window>& windows, const StepTimes::Devices& devices,
                          Attribution& attribution, std::vector<Step>& steps);

// Time with a kernel executing, per step. Where a GPU is the busiest device, CPUs do not count; of a rank's step only
// its own devices do.
class StepBusy {
 public:
  StepBusy(const std::vector<Step>& steps, StepTimes::Devices devices, const Job& job);
  void add(const WorkBlock& block, const SharesOfGraphs& shares);
  void finish();

  std::vector<std::int64_t> device_ns;  // per step
  std::vector<std::int64_t> stage_ns;   // per step, only where no earlier step of the stage is still running

 private:
  void add(std::int64_t device_id, Window window);

  StepTimes::Devices devices_;
  BusyTime busy_;
  std::vector<std::vector<std::size_t>> steps_;  // of each window of each lane
  std::size_t threads_ = 0;                      // lanes before this are threads, the others stages
};

StepTimes::Devices step_time_devices(const AnalysisContext& analysis);

void add_copies_and_waits(const CopiesAndWaits& read, StepTimes& times);

}  // namespace llmprof::analyze

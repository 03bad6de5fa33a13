#pragma once
// What another tool's totals say, held against the model: there is no timeline behind them.

#include <optional>
#include <string>

#include "analyze/basis.h"
#include "analyze/measured_findings.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct TotalsFacts {
  MeasuredFindings findings;
  double sync_calls = 0;  // of the call that waits for the device, the one called most
  std::string sync_name;
  double copy_wait_ns = 0;    // host time in aten::copy_, less the device's time for copies; 0 none or unknown
  double device_work_ns = 0;  // the device's time, copies left out
  double pageable_ns = 0;     // the device's time in copies of pageable memory
  double pageable_copies = 0;
};

// Of the table alone; `findings` is left to the caller.
TotalsFacts totals_facts(const MeasuredTable& table);

// Nothing if the run has no totals, or its model is unknown.
Result<std::optional<TotalsFacts>> totals_facts(const trace::Run& run, const Basis& basis, const Summary& summary);

}  // namespace llmprof::analyze

#pragma once
// What steps of recorded runs took: what predictions of steps are held against. As lines of JSON in a step back-test
// (docs/format/step-backtests.md).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/implementation/program.h"
#include "trace/run.h"

namespace llmprof::predict {

// Steps of one size.
struct MeasuredSteps {
  std::string stage;       // "prefill", "decode"
  std::int64_t batch = 1;  // sequences
  double tokens = 1;       // new ones of a sequence, on the mean
  double context = 1;      // that a sequence attends to, its new ones included: median over the steps
  bool graph = false;      // launched as CUDA graphs
  double ns = 0;           // median: of decode from the begin of a step to that of the next, else from begin to end
  double low_ns = 0, high_ns = 0;  // a tenth of the steps took less, a tenth more
  std::int64_t steps = 0;
  std::string from;  // name of the run

  StepSize size() const;  // of all sequences
};

// By stage, size and launch, the steady steps of a run; those of decode whose contexts grow past a power of two are
// several. Steps whose size is not known are left out. The run's derived tables must be in use.
Result<std::vector<MeasuredSteps>> measured_steps(const trace::Run& run);

std::string to_lines(const std::vector<MeasuredSteps>& steps);
// Errors name the line.
Result<std::vector<MeasuredSteps>> parse_measured_steps(std::string_view lines, const std::string& where);

}  // namespace llmprof::predict

#pragma once
// What was read of devices while a run was recorded, as if it were read now.

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/telemetry_lines.h"
#include "trace/run.h"

namespace llmprof::report {

// A line per reading of the power, which is read most often. `wall_s`: seconds since 1970, or of the run's clock where
// that is not known. False: no more lines are wanted.
using TelemetryLine = std::function<bool(const TelemetryNow& now, double wall_s)>;

struct ReplayPart {
  std::optional<std::uint32_t> device;           // as nvidia-smi counts them; none: all
  std::optional<std::int64_t> begin_ns, end_ns;  // on the clock of the run
};

// kNotFound if the run has no readings.
Result<void> replay_telemetry(const trace::Run& run, const ReplayPart& part, const TelemetryLine& line);

}  // namespace llmprof::report

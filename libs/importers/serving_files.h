#pragma once
// Files about servings that are read here, not imported: traces of requests and what a real engine made of them.

#include <string>
#include <vector>

#include "base/result.h"
#include "serving/metrics.h"
#include "serving/workload.h"

namespace llmprof::importers {

// The lines of a file, plain or compressed, as one text; at most 4 GiB. A file that is cut is an error: a part of a
// workload is another workload.
Result<std::string> read_text(const std::string& path);
Result<serving::Workload> read_trace(const std::string& path, const serving::TraceOptions& options = {});
Result<std::vector<serving::MeasuredRequest>> read_measured(const std::string& path);

}  // namespace llmprof::importers

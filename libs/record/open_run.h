#pragma once
// Opens a run as every verb does: a recording that was not ingested yet (its recorder was killed or interrupted, or
// had --no-ingest) is ingested first.

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::record {

Result<trace::Run> open_run(const std::string& path, const base::Progress& progress);

}  // namespace llmprof::record

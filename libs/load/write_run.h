#pragma once
// A load as rows of a run: request, request_token, and what the client was.

#include <string>
#include <vector>

#include "base/result.h"
#include "load/figures.h"
#include "load/load.h"

namespace llmprof::load {

struct RunFacts {
  std::vector<std::string> command;  // without secrets
  std::string environment = "{}";    // card of the machine, JSON
  std::vector<std::string> notes;
};

Result<void> write_run(const std::string& folder, const LoadResult& result, const Figures& figures, const RunFacts& facts);

}  // namespace llmprof::load

#pragma once
// Named baselines: digests of runs in the user's data folder, which outlive the runs.

#include <string>
#include <vector>

#include "analyze/diff/diff.h"

namespace llmprof::analyze {

// $XDG_DATA_HOME/llmprof/baselines, else ~/.local/share/llmprof/baselines.
Result<std::string> baseline_folder();

Result<std::string> save_baseline(const std::string& name, const std::vector<Digest>& runs);  // the file it wrote
Result<Side> load_baseline(const std::string& name);

struct BaselineEntry {
  std::string name, created;  // created: of its first run
  std::string model, device;
  std::vector<std::string> folders;
};
Result<std::vector<BaselineEntry>> list_baselines();

}  // namespace llmprof::analyze

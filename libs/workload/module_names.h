#pragma once
// The names under which a pass announces its parts: paths in the model, registered with the listening tool once.

#include <deque>
#include <string>

#include "llmprof/annotate.h"

namespace llmprof::workload {

// Owns the texts: a registered name refers to its text.
class ModuleNames {
 public:
  ModuleNames() = default;
  ModuleNames(const ModuleNames&) = delete;
  llmprof_name add(std::string path);

 private:
  std::deque<std::string> texts_;  // elements never move
};

}  // namespace llmprof::workload

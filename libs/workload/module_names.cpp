#include "workload/module_names.h"

#include <utility>

namespace llmprof::workload {

llmprof_name ModuleNames::add(std::string path) {
  texts_.push_back(std::move(path));
  return llmprof_register(texts_.back().c_str());
}

}  // namespace llmprof::workload

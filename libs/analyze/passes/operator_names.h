#pragma once
// The operator of a module (grammar.h), asked for every range and kernel: worked out once per module.

#include <vector>

#include "analyze/names/grammar.h"
#include "trace/strings.h"

namespace llmprof::analyze {

class OperatorNames {
 public:
  explicit OperatorNames(trace::Strings& strings) : strings_(strings) {}

  trace::Name of(trace::Name module) {
    if (module.id == 0) return {};
    if (module.id >= names_.size()) names_.resize(module.id + 1);
    if (names_[module.id].id == 0) names_[module.id] = strings_.intern(operator_of(strings_.text(module)));
    return names_[module.id];
  }

 private:
  trace::Strings& strings_;
  std::vector<trace::Name> names_;  // by id of the module's name; id 0: not asked yet
};

}  // namespace llmprof::analyze

// Every rule, in the order of docs/format/diagnosis.md. Adding one: a file, two lines here, a test with a run that
// triggers it and one that must not (docs/how-to-add/rule.md).

#include <array>

#include "analyze/rules/rule.h"

namespace llmprof::analyze {

// extern const Rule kWideWeights;

std::span<const Rule* const> rules() {
  static const std::vector<const Rule*> all = {
      // one line per rule: &kWideWeights,
  };
  return all;
}

const Rule* find_rule(std::string_view name) {
  for (const Rule* rule : rules()) {
    if (rule->name == name) return rule;
  }
  return nullptr;
}

}  // namespace llmprof::analyze

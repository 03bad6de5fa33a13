// Every verb, in the order --help lists them. Adding one: cmd_<verb>.cpp, docs/manual/<verb>.md, a line here, a test.

#include <array>

#include "verb.h"

namespace llmprof::app {

extern const Verb kDemo, kRecord, kReport, kQuery, kModel, kRoofline, kCheck, kDoctor, kDevices, kCompletion;

std::span<const Verb* const> verbs() {
  static constexpr std::array kVerbs{&kDemo,  &kRecord, &kReport,  &kQuery,     &kModel, &kRoofline,
                                     &kCheck, &kDoctor, &kDevices, &kCompletion};
  return kVerbs;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb* verb : verbs()) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

}  // namespace llmprof::app

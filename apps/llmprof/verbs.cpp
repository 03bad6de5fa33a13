// Every verb, in the order --help lists them. Adding one: cmd_<verb>.cpp, docs/manual/<verb>.md, a line here, a test.

#include <array>

#include "verb.h"

namespace llmprof::app {

extern const Verb kDemo, kRecord, kControl, kReport, kQuery, kModel, kRoofline, kBench, kCheck, kDoctor, kDevices,
    kCounters, kMonitor, kCompletion, kExport, kImport, kAdvise, kDiff, kPlot, kView, kRanges, kTop;

std::span<const Verb* const> verbs() {
  static constexpr std::array kVerbs{&kDemo,     &kRecord,   &kControl, &kReport,    &kRanges, &kView,
                                     &kPlot,     &kDiff,     &kQuery,   &kImport,    &kExport, &kAdvise,
                                     &kModel,    &kRoofline, &kBench,   &kCheck,     &kDoctor, &kDevices,
                                     &kCounters, &kMonitor,  &kTop,     &kCompletion};
  return kVerbs;
}

std::vector<Option> Verb::all_options() const {
  std::vector<Option> all(options.begin(), options.end());
  if (made_options == nullptr) return all;
  const std::span<const Option> more = made_options();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb* verb : verbs()) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

}  // namespace llmprof::app

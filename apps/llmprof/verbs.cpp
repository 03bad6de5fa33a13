// Every verb, in the order the overview lists them, with the options that its -h shows. Adding one: cmd_<verb>.cpp,
// docs/manual/<verb>.md, a line here, a test.

#include <algorithm>
#include <array>

#include "verb.h"

namespace llmprof::app {

extern const Verb kDemo, kRecord, kControl, kReport, kQuery, kModel, kRoofline, kBench, kCheck, kDoctor, kDevices,
    kCounters, kMonitor, kCompletion, kExport, kImport, kAdvise, kDiff, kPlan, kPlot, kPredict, kView, kRanges, kTop,
    kWhatif, kLoad, kMerge;

namespace {

struct Row {
  const Verb* verb;
  std::string_view common;  // options
};

struct Group {
  std::string_view title;
  std::vector<Row> rows;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups{
      {"Record, look, compare",
       {{&kRecord, "--output --force --model --steps --delay --duration --modules --counters --gpu --quiet"},
        {&kReport, "--full --stage --top --explain --html --model --json"},
        {&kDiff, "--gate --before --after --baseline --save-baseline --least --html --json"},
        {&kView, "--port --no-open --idle"},
        {&kPlot, "--output --stage --window --weight --dark"},
        {&kQuery, "--tables --file --csv --json --parquet --limit"},
        {&kRanges, "--rules --ranges --top"},
        {&kCheck, "--json"},
        {&kLoad, "--rate --arrivals --concurrency --requests --prompt --new --prompts --slo --find-rate --sweep --output"},
        {&kDemo, "--train --device --preset --output"}}},
      {"Model and hardware",
       {{&kModel, "--batch --prompt --context --dtype --device --tp --diff --sweep --list"},
        {&kPredict, "--serving --device --tables --workload --rate --prompt --new --tp --set --slo --measured"},
        {&kPlan, "--slo --rate --device --price --dtype --tp --prompt --new --max-devices --full --json"},
        {&kWhatif, "--set --sweep --output --serving --rate --device --batch --prompt --context --json"},
        {&kDevices, "--all --measure --json"},
        {&kRoofline, "--device --quick --stored --plot"},
        {&kBench, "--list --device --dtype --like --from --output --compare --plot"},
        {&kCounters, "--chip --method --raw --json"}}},
      {"Exchange and service",
       {{&kImport, "--output --force --as --model --formats"},
        {&kMerge, "--output --force --json"},
        {&kExport, "--type --output --stage --window --table --formats"},
        {&kAdvise, "--run --stage --output --json"},
        {&kMonitor, "--csv --json --output --interval --duration --device"},
        {&kTop, "--pid --interval --count --json"},
        {&kControl, "--json"},
        {&kDoctor, "--json"},
        {&kCompletion, "--values"}}},
  };
  return kGroups;
}

}  // namespace

const std::vector<VerbGroup>& verb_groups() {
  static const std::vector<VerbGroup> kGroups = [] {
    std::vector<VerbGroup> all;
    for (const Group& group : groups()) {
      all.push_back({group.title, {}});
      for (const Row& row : group.rows) all.back().verbs.push_back(row.verb);
    }
    return all;
  }();
  return kGroups;
}

std::span<const Verb* const> verbs() {
  static const std::vector<const Verb*> kVerbs = [] {
    std::vector<const Verb*> all;
    for (const VerbGroup& group : verb_groups()) all.insert(all.end(), group.verbs.begin(), group.verbs.end());
    return all;
  }();
  return kVerbs;
}

std::string_view common_options(const Verb& verb) {
  for (const Group& group : groups()) {
    for (const Row& row : group.rows) {
      if (row.verb == &verb) return row.common;
    }
  }
  return "";
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

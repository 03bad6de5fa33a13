#pragma once
// What the report says of a run's ranges: the tree they form, how each name was understood; and the rules of users.

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/names/grammar.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct RangeNode {   // all ranges of a name inside those of the node around it
  std::string name;  // numbers as '#'
  std::string kind, stage;
  int depth = 0;
  std::int64_t ranges = 0, total_ns = 0, self_ns = 0;  // host
  std::int64_t kernel_ns = 0;                          // what is inside included
  std::int64_t id = 0, parent_id = 0;
  std::string label;       // the name, indented by its depth
  std::string understood;  // kind and stage in words
};

struct NameMeaning {
  std::string name, domain, kind, stage, why;
  std::int64_t ranges = 0, total_ns = 0;
  std::string understood;  // kind and stage in words
};

// Depth first; of nodes beside each other the one with most GPU time first, then that with most host time.
Result<std::vector<RangeNode>> range_tree(const trace::Run& run);
Result<std::vector<NameMeaning>> name_meanings(const trace::Run& run);  // most time first

// Rules of users: [ranges] of a TOML file. `file` "": llmprof.toml of the current folder, if there is one.
struct RangeRules {
  std::vector<RangePattern> rules;
  std::string file;  // "" if there are none
};
Result<RangeRules> read_range_rules(const std::string& file);
Result<RangeRules> parse_range_rules(std::string_view toml, const std::string& file);
// A file to start from: how each name is understood, as rules.
std::string rules_text(const std::vector<NameMeaning>& meanings);

// What a recording keeps of them.
trace::NotedRules noted(const RangeRules& rules);
// What of it this version understands.
std::vector<RangePattern> rules_of(const trace::NotedRules& noted);

// The rules of users, then those that are built in. Where the reader has no rules, those that were in force when the
// run was recorded.
Result<std::vector<RangePattern>> range_patterns(const std::string& file, const trace::NotedRules& recorded = {});

}  // namespace llmprof::analyze

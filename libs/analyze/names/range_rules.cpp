#include <fmt/format.h>

#include <algorithm>

#include "analyze/names/ranges.h"
#include "base/file.h"
#include "base/toml.h"

namespace llmprof::analyze {
namespace {

constexpr std::uint64_t kMostRulesBytes = 1u << 20;
constexpr const char* kConfigFile = "llmprof.toml";

Error wrong(const std::string& file, std::string_view what, std::string_view hint) {
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}", file, what), std::string(hint)};
}

constexpr std::string_view kHint = R"({ name = "Train step *", is = "step", stage = "training" })";

Result<RangePattern> make_rule(const trace::NotedRules::Rule& from, const std::string& file, std::string source) {
  RangePattern rule{.pattern = from.name, .stage = from.stage, .source = std::move(source), .users = true};
  if (rule.pattern.empty()) return wrong(file, "a rule of [ranges] has no name", kHint);
  if (from.is == "step") {
    rule.kind = RangeKind::kStep;
  } else if (from.is == "container") {
    rule.kind = RangeKind::kStage, rule.container = true;
  } else if (from.is == "part") {
    rule.kind = RangeKind::kModule;
  } else if (from.is != "nothing") {
    return wrong(file, fmt::format("rule '{}': is = '{}' is not known", rule.pattern, from.is),
                 "one of step, container, part, nothing");
  }
  if (rule.kind == RangeKind::kStep && rule.stage.empty())
    return wrong(file, fmt::format("rule '{}': a step needs a stage", rule.pattern), kHint);
  return rule;
}

Result<RangePattern> parse_rule(const toml::node& node, const std::string& file) {
  const toml::table* row = node.as_table();
  if (row == nullptr) return wrong(file, "a rule of [ranges] is no table", kHint);
  const auto text = [&](std::string_view key) { return (*row)[key].value_or<std::string>(""); };
  for (const auto& [key, value] : *row) {
    if (key != "name" && key != "is" && key != "stage")
      return wrong(file, fmt::format("a rule of [ranges] has the unknown key '{}'", key.str()), kHint);
    if (!value.is_string()) return wrong(file, fmt::format("'{}' of a rule of [ranges] is no text", key.str()), kHint);
  }
  return make_rule({text("name"), text("is"), text("stage")}, file, "a rule of " + file);
}

}  // namespace

Result<RangeRules> parse_range_rules(std::string_view text, const std::string& file) {
  LLMPROF_LET(const toml::table parsed, base::parse_toml(text, file));
  RangeRules out{.rules = {}, .file = file};
  const toml::node_view section = parsed["ranges"];
  if (!section || (section.is_table() && !section["rules"])) return RangeRules{};  // options of the verb `ranges`
  const toml::array* rules = section["rules"].as_array();
  if (rules == nullptr) return wrong(file, "[ranges] has no array 'rules'", "llmprof ranges RUN --rules prints one");
  for (const toml::node& node : *rules) {
    LLMPROF_LET(RangePattern rule, parse_rule(node, file));
    out.rules.push_back(std::move(rule));
  }
  return out;
}

Result<RangeRules> read_range_rules(const std::string& file) {
  if (file.empty() && !base::is_file(kConfigFile)) return RangeRules{};
  const std::string path = file.empty() ? kConfigFile : file;
  LLMPROF_LET(const std::string text, base::read_file(path, kMostRulesBytes));
  return parse_range_rules(text, path);
}

trace::NotedRules noted(const RangeRules& rules) {
  trace::NotedRules out{.origin = rules.file, .rules = {}};
  for (const RangePattern& rule : rules.rules) {
    const std::string_view is = rule.container                    ? "container"
                                : rule.kind == RangeKind::kStep   ? "step"
                                : rule.kind == RangeKind::kModule ? "part"
                                                                  : "nothing";
    out.rules.push_back({rule.pattern, std::string(is), rule.stage});
  }
  return out;
}

std::vector<RangePattern> rules_of(const trace::NotedRules& noted) {
  std::vector<RangePattern> rules;
  for (const trace::NotedRules::Rule& each : noted.rules) {
    auto rule = make_rule(each, noted.origin, fmt::format("a rule of {} at the recording", noted.origin));
    if (rule) rules.push_back(std::move(*rule));
  }
  return rules;
}

Result<std::vector<RangePattern>> range_patterns(const std::string& file, const trace::NotedRules& recorded) {
  LLMPROF_LET(RangeRules own, read_range_rules(file));
  if (own.rules.empty()) own.rules = rules_of(recorded);
  LLMPROF_LET(const std::vector<RangePattern> built_in, built_in_patterns());
  own.rules.insert(own.rules.end(), built_in.begin(), built_in.end());
  return std::move(own.rules);
}

std::string rules_text(const std::vector<NameMeaning>& meanings) {
  std::string out =
      "# How llmprof understands the ranges of a program. Change what is wrong, and keep it as llmprof.toml where "
      "llmprof\n"
      "# is started, or name it with --ranges. name: the whole name, * stands for any text. is: step (with its stage, "
      "of\n"
      "# any name), container (of steps), part (of the model), nothing.\n[ranges]\nrules = [\n";
  const auto quoted = [](std::string_view text) {  // numbers, and what not every editor shows, as '*'
    std::string name;
    for (const char c : text) {
      const bool plain = c >= ' ' && c <= '~' && c != '#';
      if (c == '"' || c == '\\') name += '\\';
      if (plain || name.empty() || name.back() != '*') name += plain ? c : '*';
    }
    return '"' + name + '"';
  };
  for (const NameMeaning& meaning : meanings) {
    if (meaning.kind.empty() || meaning.domain == "llmprof") continue;
    const bool container = meaning.kind == "stage";
    const std::string_view is = container ? "container" : meaning.kind == "module" ? "part" : "step";
    out += fmt::format("  {{ name = {}, is = \"{}\"{} }},\n", quoted(meaning.name), is,
                       meaning.kind == "module" ? "" : fmt::format(", stage = {}", quoted(meaning.stage)));
  }
  return out + "]\n";
}

}  // namespace llmprof::analyze

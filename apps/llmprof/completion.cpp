// Completion scripts, made from the option tables, and the names they ask for.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analyze/diff/diff.h"
#include "analyze/measures/measures.h"
#include "base/strings.h"
#include "bench/operator.h"
#include "exporters/exporter.h"
#include "given_names.h"
#include "hw/catalog.h"
#include "hw/counters/catalog.h"
#include "importers/importer.h"
#include "model/zoo/zoo.h"
#include "pictures/plots.h"
#include "report/explain.h"
#include "report/page.h"
#include "verb.h"

namespace llmprof::app {
namespace {

using Names = std::vector<std::string>;

template <class Range, class Name>
Names names_of(const Range& range, const Name& name) {
  Names names;
  for (const auto& each : range) names.emplace_back(std::invoke(name, each));
  return names;
}

Names devices() {
  Names names{"cpu", "gpu"};
  for (const hw::DeviceSpec& spec : hw::catalog()) names.push_back(spec.short_names.front());
  return names;
}

// "decode.mbu": what --gate takes.
Names measures() {
  Names names;
  for (const std::string_view scope : analyze::gate_scopes()) {
    for (const analyze::MeasureKind& kind : analyze::measure_kinds())
      names.push_back(fmt::format("{}.{}", scope, kind.name));
  }
  return names;
}

Names counters() {
  Names names = names_of(hw::counters::sets(), &hw::counters::Set::name);
  for (const hw::counters::Counter& counter : hw::counters::catalog()) names.push_back(counter.name);
  return names;
}

Names baselines() {
  const auto entries = analyze::list_baselines();
  return entries ? names_of(*entries, &analyze::BaselineEntry::name) : Names{};
}

Names stages() {
  const auto scopes = analyze::gate_scopes();
  return {scopes.begin() + 1, scopes.end()};  // without "run"
}

struct Kind {
  std::string_view name;
  Names (*values)();
};
constexpr Kind kKinds[] = {
    {"runs", [] { return latest_runs(1000); }},
    {"models", [] { return names_of(model::zoo(), &model::ZooEntry::name); }},
    {"devices", devices},
    {"stages", stages},
    {"measures", measures},
    {"explained", report::explained_names},
    {"counters", counters},
    {"formats", [] { return names_of(exporters::exporters(), &exporters::Exporter::name); }},
    {"import-formats", [] { return names_of(importers::importers(), &importers::Importer::name); }},
    {"operators", [] { return names_of(bench::operators(), &bench::Operator::name); }},
    {"pictures", [] { return Names(pictures::kPictures.begin(), pictures::kPictures.end()); }},
    {"baselines", baselines},
    {"verbs", [] { return names_of(verbs(), &Verb::name); }},
};

// What an option or positional takes: a kind of names, "files", "commands", "words a b", or "" what nobody can list.
std::string kind_of(const Verb& verb, const Option& option) {
  const bool on_this_machine = verb.name == "bench" || verb.name == "roofline" || verb.name == "demo";
  if (option.flag == "--device" && on_this_machine) return "words cpu cuda";
  struct Row {
    std::string_view flag, kind;
  };
  constexpr Row kRows[] = {{"--model", "models files"}, {"--like", "models files"}, {"--diff", "models files"},
                           {"--for", "models files"},   {"--device", "devices"},    {"--diff-device", "devices"},
                           {"--chip", "devices"},       {"--stage", "stages"},      {"--explain", "explained"},
                           {"--gate", "measures"},      {"--type", "formats"},      {"--as", "import-formats"},
                           {"--baseline", "baselines"}, {"--counters", "counters"}, {"--save-baseline", "baselines"}};
  const auto* const row = std::ranges::find(kRows, option.flag, &Row::flag);
  if (row != std::end(kRows)) return std::string(row->kind);
  if (option.value.starts_with("RUN")) return "runs";
  if (option.value == "FILE" || option.value == "NAME|PATH") return "files";
  std::string words;
  for (const std::string_view word : base::split(option.value, '|')) {
    if (std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; })) words += fmt::format(" {}", word);
  }
  return words.empty() ? "" : "words" + words;
}

std::string kind_of(const Verb& verb, const Positional& positional) {
  if (verb.name == "devices") return "devices";
  if (verb.name == "counters") return "counters";
  if (positional.name.starts_with("RUN")) return "runs";
  if (positional.name == "PICTURE") return "pictures";
  if (positional.name == "PART") {
    std::string names;
    for (const report::ReportPart& part : report::report_parts()) names += " " + std::string(part.name);
    return "words" + names;
  }
  if (positional.name == "MODEL") return "models files";
  if (positional.name == "OPERATOR") return "operators";
  if (positional.name == "SHELL") return "words bash zsh fish";
  if (positional.name == "COMMAND") return "words start stop status dump";
  if (positional.name == "SQL" || positional.name == "URL") return "";
  return positional.name.find('|') == std::string_view::npos
             ? "files"
             : fmt::format("words {}", fmt::join(base::split(positional.name, '|'), " "));
}

std::string positional_kinds(const Verb& verb) {
  std::string kinds;
  for (const Positional& positional : verb.positionals) kinds += kind_of(verb, positional) + ";";
  return verb.takes_command ? kinds + "commands" : kinds;
}

std::string bash_cases() {
  std::string cases;
  for (const Verb* verb : verbs()) {
    std::string flags = "-h --help", values;
    for (const Option& option : verb->all_options()) {
      flags += fmt::format(" {}", option.flag);
      if (option.value.empty()) continue;
      const std::string also = option.short_flag.empty() ? "" : fmt::format("|{}", option.short_flag);
      values += fmt::format("      {}{}) kinds='{};' ;;\n", option.flag, also, kind_of(*verb, option));
    }
    cases += fmt::format("  {})\n    flags='{}'\n", verb->name, flags);
    if (!values.empty()) cases += fmt::format("    case \"$previous\" in\n{}    esac\n", values);
    cases += fmt::format("    [ -z \"$kinds\" ] && {{ positional=1; kinds='{}'; }} ;;\n", positional_kinds(*verb));
  }
  return cases;
}

// Words that hold blanks stay whole: lines are read one by one.
constexpr std::string_view kBash =
    R"sh(_llmprof_add() {{ local line; while IFS= read -r line; do COMPREPLY+=("$line"); done; }}
_llmprof_kind() {{
  local kind="$1" current="$2"
  case "$kind" in
    '') ;;
    'words '*) _llmprof_add < <(compgen -W "${{kind#words }}" -- "$current") ;;
    files) _llmprof_add < <(compgen -f -- "$current") ;;
    commands) _llmprof_add < <(compgen -c -- "$current"; compgen -f -- "$current") ;;
    runs)
      _llmprof_add < <(compgen -W "$("${{COMP_WORDS[0]}}" completion --values runs 2>/dev/null)" -- "$current")
      [ "${{#COMPREPLY[@]}}" -eq 0 ] && _llmprof_add < <(compgen -d -- "$current") ;;
    *' files') _llmprof_kind "${{kind% files}}" "$current"; _llmprof_kind files "$current" ;;
    *) _llmprof_add < <(compgen -W "$("${{COMP_WORDS[0]}}" completion --values "$kind" 2>/dev/null)" -- "$current") ;;
  esac
}}
_llmprof() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" flags="" kinds="" positional=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _llmprof_add < <(compgen -W "{} help --help --version" -- "$current")
    return
  fi
  if [ "$current" = "=" ]; then current=""; fi  # --model=NAME is three words
  if [ "$previous" = "=" ]; then previous="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
  case "${{COMP_WORDS[1]}}" in
{}  help) positional=1; kinds='verbs' ;;
  esac
  if [ -n "$positional" ] && [ "${{current#-}}" != "$current" ]; then
    _llmprof_add < <(compgen -W "$flags" -- "$current")
    return
  fi
  while [ -n "$kinds" ]; do
    _llmprof_kind "${{kinds%%;*}}" "$current"
    case "$kinds" in *';'*) kinds="${{kinds#*;}}" ;; *) kinds="" ;; esac
  done
}}
complete -o filenames -F _llmprof llmprof
)sh";

std::string fish_values(const std::string& kinds) {
  std::string text;
  for (const std::string_view kind : base::split(kinds, ';')) {
    if (kind.empty() || kind == "files" || kind == "commands") continue;
    const std::string name(kind.substr(0, kind.starts_with("words ") ? kind.size() : kind.find(' ')));
    text += name.starts_with("words ") ? fmt::format(" -a '{}'", name.substr(6))
                                       : fmt::format(" -a '(llmprof completion --values {} 2>/dev/null)'", name);
  }
  return text;
}

std::string fish_script() {
  std::string out;
  const auto quoted = [](std::string_view help) { return help.substr(0, help.find('\'')); };
  for (const Verb* verb : verbs()) {
    out += fmt::format("complete -c llmprof -n __fish_use_subcommand -f -a {} -d '{}'\n", verb->name,
                       quoted(verb->summary));
    const std::string when = fmt::format("complete -c llmprof -n '__fish_seen_subcommand_from {}'", verb->name);
    for (const Option& option : verb->all_options()) {
      const std::string kind = kind_of(*verb, option);
      const std::string takes = option.value.empty() ? "" : base::contains(kind, "files") ? " -r -F" : " -x";
      out += fmt::format("{} -l {}{}{} -d '{}'\n", when, option.flag.substr(2), takes, fish_values(kind),
                         quoted(option.help));
    }
    const std::string kinds = positional_kinds(*verb);
    if (const std::string values = fish_values(kinds); !values.empty())
      out += fmt::format("{}{}{}\n", when, base::contains(kinds, "files") ? "" : " -f", values);
  }
  return out;
}

}  // namespace

std::vector<std::string> completion_kinds() { return names_of(kKinds, &Kind::name); }

std::vector<std::string> completion_values(std::string_view kind) {
  const auto* const found = std::ranges::find(kKinds, kind, &Kind::name);
  return found == std::end(kKinds) ? Names{} : found->values();
}

std::string completion_script(std::string_view shell) {
  if (shell == "fish") return fish_script();
  const std::string zsh_head = shell == "zsh" ? "#compdef llmprof\nautoload -U bashcompinit && bashcompinit\n" : "";
  std::string names;
  for (const Verb* verb : verbs()) names += fmt::format("{}{}", names.empty() ? "" : " ", verb->name);
  return zsh_head + fmt::format(fmt::runtime(kBash), names, bash_cases());
}

}  // namespace llmprof::app

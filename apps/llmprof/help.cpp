// Help, options and completion: all made from the manual pages (docs/manual/*.md, embedded) and the option tables.

#include <fmt/format.h>

#include "base/asset.h"
#include "verb.h"

namespace llmprof::manual {
std::span<const base::Asset> assets();
}

namespace llmprof::app {
namespace {

constexpr std::string_view kOptionsBegin = "<!-- options: made from the option table by `make docs` -->\n";
constexpr std::string_view kOptionsEnd = "<!-- /options -->\n";

// A manual page as plain text: headings in capitals, code indented, the comment markers gone.
std::string plain(std::string_view markdown) {
  std::string out;
  bool code = false;
  for (std::size_t begin = 0; begin < markdown.size();) {
    const std::size_t newline = markdown.find('\n', begin);
    const std::size_t end = newline == std::string_view::npos ? markdown.size() : newline;
    std::string_view line = markdown.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("```")) {
      code = !code;
      continue;
    }
    if (!code && line.starts_with("<!--")) continue;
    if (!code && line.starts_with("#")) {
      line.remove_prefix(line.find_first_not_of("# "));
      for (const char c : line) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    } else {
      if (code) out += "  ";
      for (const char c : line) {
        if (code || c != '`') out += c;
      }
    }
    out += '\n';
  }
  return out;
}

std::string option_head(const Option& option) {
  std::string head = option.short_flag.empty() ? "" : std::string(option.short_flag) + ", ";
  head += option.flag;
  if (!option.value.empty()) head += " " + std::string(option.value);
  return head;
}

std::string usage(const Verb& verb) {
  std::string text = fmt::format("llmprof {}", verb.name);
  for (const Positional& positional : verb.positionals) {
    text += positional.required ? fmt::format(" {}", positional.name) : fmt::format(" [{}]", positional.name);
    if (positional.many) text += "…";
  }
  if (!verb.options.empty()) text += " [options]";
  if (verb.takes_command) text += " -- command args…";
  return text;
}

}  // namespace

std::string options_text(const Verb& verb) {
  std::string text = fmt::format("{}\nUsage: `{}`\n\n", kOptionsBegin, usage(verb));
  for (const Option& option : verb.all_options()) {
    text += fmt::format("- `{}`: {}{}", option_head(option), option.help, option.help.ends_with('.') ? "" : ".");
    if (!option.fallback.empty()) text += fmt::format(" Default: `{}`.", option.fallback);
    if (!option.variable.empty()) text += fmt::format(" Variable: `{}`.", option.variable);
    text += "\n";
  }
  return text + "- `-h, --help`: this page.\n\n" + std::string(kOptionsEnd);
}

std::string with_current_options(const Verb& verb, std::string page) {
  const std::size_t begin = page.find(kOptionsBegin);
  const std::size_t end = page.find(kOptionsEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end + kOptionsEnd.size() - begin, options_text(verb));
}

std::string help_text(const Verb& verb) {
  const std::string_view page = base::find_asset(manual::assets(), fmt::format("{}.md", verb.name));
  return plain(with_current_options(verb, std::string(page)));
}

std::string overview_text() {
  std::string text =
      "llmprof profiles large language models on the hardware they run on.\n\n"
      "  llmprof demo                                   profile the embedded model and show the report\n"
      "  llmprof record -o x -- python3 serve.py        profile a program\n"
      "  llmprof report x                               what it cost, and how far that is from the hardware's "
      "limits\n\n"
      "Verbs:\n";
  for (const Verb* verb : verbs()) text += fmt::format("  {:<12}{}\n", verb->name, verb->summary);
  return text + "\nllmprof VERB --help shows a verb's manual page; llmprof --version tells the build.\n";
}

std::string completion_script(std::string_view shell) {
  std::string names;
  std::string cases;
  for (const Verb* verb : verbs()) {
    names += fmt::format("{} ", verb->name);
    std::string flags = "--help";
    for (const Option& option : verb->all_options()) flags += fmt::format(" {}", option.flag);
    if (shell == "fish") {
      cases +=
          fmt::format("complete -c llmprof -n __fish_use_subcommand -f -a {} -d '{}'\n", verb->name, verb->summary);
      for (const Option& option : verb->all_options()) {
        cases += fmt::format("complete -c llmprof -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n", verb->name,
                             option.flag.substr(2), option.help.substr(0, option.help.find('\'')));
      }
    } else {
      cases += fmt::format("    {}) words=\"{}\" ;;\n", verb->name, flags);
    }
  }
  if (shell == "fish") return cases;
  const std::string zsh_head = shell == "zsh" ? "#compdef llmprof\nautoload -U bashcompinit && bashcompinit\n" : "";
  return zsh_head + fmt::format(R"(_llmprof() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}--help --version" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _llmprof llmprof
)",
                                names, cases);
}

}  // namespace llmprof::app

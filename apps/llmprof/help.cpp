// Help and options: all made from the manual pages (docs/manual/*.md, embedded) and the option tables.

#include <fmt/format.h>

#include <algorithm>

#include "base/asset.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "manual_page.h"
#include "report/layout.h"
#include "verb.h"

namespace llmprof::manual {
std::span<const base::Asset> assets();
}

namespace llmprof::app {
namespace {

constexpr std::string_view kOptionsBegin = "<!-- options: made from the option table by `make docs` -->\n";
constexpr std::string_view kOptionsEnd = "<!-- /options -->\n";
constexpr std::size_t kScreenWidth = 80;

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
  if (verb.takes_command) text += " [--] command args…";
  return text;
}

// What a verb does whose RUN was not given.
std::string left_out(const Verb& verb) {
  if (verb.name == "diff")
    return "Without runs: the last two of this folder. With one: that one and the latest. stderr says which.\n\n";
  const bool may_be = !verb.positionals.empty() && verb.positionals.front().name.starts_with("RUN") &&
                      !verb.positionals.front().required;
  return may_be ? "Without RUN: the latest run of this folder; stderr says which.\n\n" : "";
}

std::string_view page_of(std::string_view name) {
  return base::find_asset(manual::assets(), fmt::format("{}.md", name));
}

// The paragraph below the title, as plain text.
std::string first_paragraph(std::string_view page) {
  const std::size_t begin = std::min(page.find("\n\n"), page.size());
  std::string text(page.substr(begin, page.find("\n\n", begin + 2) - begin));
  std::ranges::replace(text, '\n', ' ');
  return plain_text(base::trimmed(text));
}

// The first lines of the first block of code that fit a screen.
std::vector<std::string_view> first_examples(std::string_view page) {
  constexpr std::size_t kMost = 5, kRoom = kScreenWidth - 2;
  std::vector<std::string_view> examples;
  const std::size_t begin = page.find("```\n");
  if (begin == std::string_view::npos) return examples;
  const std::string_view block = page.substr(begin + 4, page.find("\n```", begin + 4) - begin - 4);
  for (const std::string_view line : base::split(block, '\n')) {
    if (examples.size() < kMost && base::display_width(line) <= kRoom && line.starts_with("llmprof "))
      examples.push_back(line);
  }
  return examples;
}

// The first sentence, or as much of it as two lines hold.
std::string gist(std::string_view help, std::size_t room) {
  std::string text = plain_text(help);
  for (const std::string_view end : {". ", "; ", ": ", " (", ", "}) {
    text = text.substr(0, text.find(end));
    if (text.size() <= 2 * room - 12) break;  // wrapping loses some
  }
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string common_option_lines(const Verb& verb) {
  std::vector<Option> shown;
  std::size_t widest = 0;
  const std::vector<Option> options = verb.all_options();
  for (const std::string_view flag : base::split(common_options(verb), ' ')) {
    const auto option = std::ranges::find(options, flag, &Option::flag);
    if (option == options.end()) continue;
    shown.push_back(*option);
    widest = std::max(widest, base::display_width(option_head(*option)));
  }
  const std::size_t column = std::min<std::size_t>(widest, 24) + 4;
  std::string out;
  for (const Option& option : shown) {
    const std::string head = "  " + option_head(option);
    std::string lines = report::wrapped(gist(option.help, kScreenWidth - column), column, kScreenWidth);
    const bool beside = head.size() + 2 <= column;
    if (beside) lines.replace(0, head.size(), head);
    out += beside ? lines : head + "\n" + lines;
  }
  return out;
}

}  // namespace

std::string options_text(const Verb& verb) {
  std::string text = fmt::format("{}\nUsage: `{}`\n\n{}", kOptionsBegin, usage(verb), left_out(verb));
  for (const Option& option : verb.all_options()) {
    text += fmt::format("- `{}`: {}{}", option_head(option), option.help, option.help.ends_with('.') ? "" : ".");
    if (!option.fallback.empty()) text += fmt::format(" Default: `{}`.", option.fallback);
    if (!option.variable.empty()) text += fmt::format(" Variable: `{}`.", option.variable);
    text += "\n";
  }
  return text + "- `-h`: the most used options on one screen.\n- `--help`: this page.\n\n" + std::string(kOptionsEnd);
}

std::string with_current_options(const Verb& verb, std::string page) {
  const std::size_t begin = page.find(kOptionsBegin);
  const std::size_t end = page.find(kOptionsEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return page;
  return page.replace(begin, end + kOptionsEnd.size() - begin, options_text(verb));
}

std::string help_text(const Verb& verb, const PageStyle& style) {
  return rendered_page(with_current_options(verb, std::string(page_of(verb.name))), style);
}

std::string topic_text(std::string_view topic, const PageStyle& style) {
  return std::ranges::find(kTopics, topic) == kTopics.end() ? "" : rendered_page(page_of(topic), style);
}

std::string short_help(const Verb& verb) {
  const std::string_view page = page_of(verb.name);
  std::string text = fmt::format("Usage: {}\n\n", usage(verb));
  text += report::wrapped(first_paragraph(page), 0, kScreenWidth);
  text += "\nExamples:\n";
  for (const std::string_view example : first_examples(page)) text += fmt::format("  {}\n", example);
  const std::string options = common_option_lines(verb);
  if (!options.empty()) text += "\nOptions:\n" + options;
  return text + fmt::format("\nllmprof {} --help shows the manual and all options.\n", verb.name);
}

std::string overview_text() {
  std::string text =
      "llmprof profiles large language models on the hardware they run on.\n\n"
      "  llmprof demo                      profile the embedded model, show the report\n"
      "  llmprof record python3 serve.py   profile a program, show where its time went\n";
  for (const VerbGroup& group : verb_groups()) {
    text += fmt::format("\n{}:\n", group.title);
    for (const Verb* verb : group.verbs) text += fmt::format("  {:<12}{}\n", verb->name, verb->summary);
  }
  return text + fmt::format(
                    "\nllmprof VERB -h: examples, options. llmprof help VERB: the manual.\n"
                    "More pages: llmprof help {}.\n",
                    fmt::join(kTopics, ", "));
}

}  // namespace llmprof::app

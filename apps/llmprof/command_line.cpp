// From words to Arguments: a verb's option table handed to CLI11. The only file that includes it (9 s to compile).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/strings.h"
#include "verb.h"

namespace llmprof::app {
namespace {

std::string cli_name(const Option& option) {
  return option.short_flag.empty() ? std::string(option.flag) : fmt::format("{},{}", option.short_flag, option.flag);
}

Error usage_error(const Verb& verb, std::string message) {
  return {ErrorCode::kUsage, std::move(message), fmt::format("llmprof {} --help", verb.name)};
}

// "did you mean --heads? " for the first flag that the verb does not have.
std::string meant_flag(const std::vector<Option>& options, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    const auto is = [&](const Option& option) { return option.flag == flag; };
    if (!flag.starts_with("--") || flag.size() > 40 || std::any_of(options.begin(), options.end(), is)) continue;
    const auto apart = [&](const Option& option) { return base::edits(flag, option.flag); };
    const auto best = std::min_element(options.begin(), options.end(),
                                       [&](const Option& a, const Option& b) { return apart(a) < apart(b); });
    if (best != options.end() && apart(*best) <= 2) return fmt::format("did you mean {}? ", best->flag);
    return "";
  }
  return "";
}

std::string variable_value(const Option& option) {
  const char* value = option.variable.empty() ? nullptr : std::getenv(std::string(option.variable).c_str());
  return value != nullptr ? value : "";
}

// What a switch's variable means: set to anything but 0, no or false switches it on.
bool truthy(const std::string& value) { return !value.empty() && value != "0" && value != "no" && value != "false"; }

Result<void> check_positionals(const Verb& verb, const std::vector<std::string>& given) {
  std::size_t required = 0;
  bool many = false;
  for (const Positional& positional : verb.positionals) {
    required += positional.required ? 1 : 0;
    many = many || positional.many;
  }
  if (given.size() < required) {
    return usage_error(verb, fmt::format("{} needs {}", verb.name, verb.positionals[given.size()].name));
  }
  if (!many && given.size() > verb.positionals.size()) {
    return usage_error(verb, fmt::format("unexpected argument '{}'", given[verb.positionals.size()]));
  }
  return {};
}

}  // namespace

std::string Arguments::get(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "" : found->second;
}

bool Arguments::given(std::string_view flag) const {
  const auto found = given_.find(flag);
  return found != given_.end() && found->second;
}

std::vector<std::string> Arguments::all(std::string_view flag) const {
  const auto found = many_.find(flag);
  return found == many_.end() ? std::vector<std::string>() : found->second;
}

bool asks_for_help(const Verb& verb, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--" && verb.takes_command) return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

Result<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words) {
  Arguments arguments;
  auto end = words.end();
  if (verb.takes_command) {
    end = std::find(words.begin(), words.end(), "--");
    if (end != words.end()) arguments.command.assign(end + 1, words.end());
  }

  CLI::App app;
  app.set_help_flag();
  std::map<std::string_view, std::string> texts;
  std::map<std::string_view, CLI::Option*> handles;
  const std::vector<Option> options = verb.all_options();
  for (const Option& option : options) {
    CLI::Option* handle = nullptr;
    if (option.value.empty()) {
      handle = app.add_flag(cli_name(option));
    } else if (option.many) {
      handle = app.add_option(cli_name(option), arguments.many_[std::string(option.flag)]);
    } else {
      handle = app.add_option(cli_name(option), texts[option.flag]);
      handle->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    handles[option.flag] = handle;
  }
  app.add_option("positionals", arguments.positionals);
  try {
    std::vector<std::string> reversed(std::make_reverse_iterator(end), std::make_reverse_iterator(words.begin()));
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    Error wrong = usage_error(verb, error.what());
    wrong.hint = meant_flag(options, words) + wrong.hint;
    return wrong;
  }

  for (const Option& option : options) {
    const bool typed = handles[option.flag]->count() > 0;
    const std::string variable = variable_value(option);
    std::string value;
    if (option.value.empty()) {
      value = typed || truthy(variable) ? "1" : "0";
    } else {
      value = typed ? texts[option.flag] : !variable.empty() ? variable : std::string(option.fallback);
    }
    arguments.values_[std::string(option.flag)] = value;
    arguments.given_[std::string(option.flag)] = typed || !variable.empty();
  }
  LLMPROF_TRY(check_positionals(verb, arguments.positionals));
  return arguments;
}

}  // namespace llmprof::app

// From words to Arguments: a verb's option table handed to CLI11. The only file that includes it (9 s to compile).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/suggest.h"
#include "config_file.h"
#include "verb.h"

namespace llmprof::app {
namespace {

std::string cli_name(const Option& option) {
  return option.short_flag.empty() ? std::string(option.flag) : fmt::format("{},{}", option.short_flag, option.flag);
}

Error usage_error(const Verb& verb, std::string message) {
  return {ErrorCode::kUsage, std::move(message), fmt::format("llmprof {} -h", verb.name)};
}

const Option* find_option(const std::vector<Option>& options, std::string_view flag) {
  const auto is = [&](const Option& option) { return option.flag == flag || option.short_flag == flag; };
  const auto found = std::ranges::find_if(options, is);
  return found == options.end() || flag.empty() ? nullptr : &*found;
}

// The first flag that the verb does not have; nothing: the words are wrong in another way.
std::optional<Error> unknown_flag(const Verb& verb, const std::vector<Option>& options,
                                  const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--") || flag == "--" || find_option(options, flag) != nullptr) continue;
    std::vector<std::string_view> known;
    for (const Option& option : options) known.push_back(option.flag);
    Error error = usage_error(verb, fmt::format("{} has no option {}", verb.name, flag));
    error.hint = base::did_you_mean(flag, known) + error.hint;
    return error;
  }
  return std::nullopt;
}

// "-fo" is -f and -o: the last one may take the next word.
const Option* last_short(const std::vector<Option>& options, const std::string& word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const Option* option = find_option(options, std::string{'-', word[i]});
    if (option == nullptr) return nullptr;
    if (!option->value.empty()) return i + 1 == word.size() ? option : nullptr;  // else its value is in this word
  }
  return nullptr;
}

// How many words the option at `at` takes, its own included.
std::size_t words_of(const std::vector<Option>& options, const std::vector<std::string>& words, std::size_t at) {
  const std::string& word = words[at];
  const Option* option = word.starts_with("--") ? find_option(options, word) : last_short(options, word);
  if (option == nullptr || option->value.empty()) return 1;
  std::size_t end = at + 1;
  if (end < words.size() && words[end] != "--") ++end;
  if (!option->many) return end - at;
  // Further words are values only where "--" tells where they end: `--counters-range a b -- python3 x.py`.
  std::size_t values = end;
  while (values < words.size() && !words[values].starts_with('-')) ++values;
  return (values < words.size() && words[values] == "--" ? values : end) - at;
}

// Where the command begins: at "--", else at the first word that is neither an option nor a positional.
std::size_t command_at(const Verb& verb, const std::vector<std::string>& words) {
  if (!verb.takes_command) return words.size();
  const std::vector<Option> options = verb.all_options();
  std::size_t positionals = verb.positionals.size();
  for (std::size_t i = 0; i < words.size();) {
    const bool option = words[i].size() > 1 && words[i].starts_with('-');
    if (words[i] == "--" || (!option && positionals == 0)) return i;
    if (!option) --positionals;
    i += option ? words_of(options, words, i) : 1;
  }
  return words.size();
}

std::string variable_value(const Option& option) {
  const char* value = option.variable.empty() ? nullptr : std::getenv(std::string(option.variable).c_str());
  return value != nullptr ? value : "";
}

// What a switch's variable means: set to anything but 0, no or false switches it on.
bool truthy(const std::string& value) { return !value.empty() && value != "0" && value != "no" && value != "false"; }

struct Chosen {
  enum class From : std::uint8_t { kWords, kVariable, kFile, kDefault };
  std::string value;  // of a switch "1" or "0"
  From from = From::kDefault;
};

// What was typed, else the variable, else llmprof.toml, else the default.
Chosen choose(const Option& option, const CLI::Option& typed, const std::string& text,
              const ConfiguredOptions& configured) {
  using From = Chosen::From;
  const bool is_switch = option.value.empty();
  if (typed.count() > 0 && is_switch) return {typed.results().back() != "false" ? "1" : "0", From::kWords};
  if (typed.count() > 0) return {text, From::kWords};
  if (const std::string value = variable_value(option); !value.empty())
    return {is_switch ? (truthy(value) ? "1" : "0") : value, From::kVariable};
  const auto file = configured.find(option.flag);
  if (file != configured.end() && !file->second.empty()) return {file->second.front(), From::kFile};
  return {is_switch ? "0" : std::string(option.fallback), From::kDefault};
}

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

Help asks_for_help(const Verb& verb, const std::vector<std::string>& words) {
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(command_at(verb, words));
  if (std::find(words.begin(), end, "--help") != end) return Help::kManual;
  return std::find(words.begin(), end, "-h") != end ? Help::kShort : Help::kNone;
}

Result<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words) {
  Arguments arguments;
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(command_at(verb, words));
  if (end != words.end()) arguments.command.assign(*end == "--" ? end + 1 : end, words.end());

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
    return unknown_flag(verb, options, {words.begin(), end}).value_or(usage_error(verb, error.what()));
  }

  LLMPROF_LET(const ConfiguredOptions configured, configured_options(verb));
  for (const Option& option : options) {
    const std::string flag(option.flag);
    const Chosen chosen = choose(option, *handles[option.flag], texts[option.flag], configured);
    if (option.many && chosen.from == Chosen::From::kFile) arguments.many_[flag] = configured.find(flag)->second;
    if (chosen.from == Chosen::From::kWords) arguments.typed_.insert(flag);
    arguments.values_[flag] = chosen.value;
    arguments.given_[flag] = chosen.from != Chosen::From::kDefault;
  }
  LLMPROF_TRY(check_positionals(verb, arguments.positionals));
  return arguments;
}

}  // namespace llmprof::app

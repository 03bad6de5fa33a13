#include "config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/suggest.h"
#include "base/toml.h"

namespace llmprof::app {
namespace {

constexpr const char* kName = "llmprof.toml";
constexpr std::uint64_t kMostBytes = 1u << 20;

Error config_error(const std::string& file, std::string_view what, std::string hint) {
  return {ErrorCode::kCorruptInput, fmt::format("{}: {}", file, what),
          std::move(hint) + "llmprof help config explains the file"};
}

// A folder may come from somebody else: a clone, an archive, a shared disk. Its file may choose what is measured and
// shown. It may not choose what is written, replaced or removed, which files are read, what listens, or which
// protection is off.
bool only_for_users(const Option& option) {
  constexpr std::string_view kFlags[] = {"--output",       "--force",     "--dump",   "--resume",    "--save-baseline",
                                         "--i-understand", "--allow-sql", "--listen", "--no-sandbox", "--insecure",
                                         "--header"};
  return option.value == "FILE" || option.value == "SOCKET" ||
         std::ranges::find(kFlags, option.flag) != std::end(kFlags);
}

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return text;
  if (const auto number = node.value_exact<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  return std::nullopt;
}

// The values as they would be typed; nothing: they do not fit the option.
std::optional<std::vector<std::string>> values_of(const toml::node& node, const Option& option) {
  if (option.value.empty()) {
    const auto on = node.value_exact<bool>();
    return on ? std::optional(std::vector<std::string>{*on ? "1" : "0"}) : std::nullopt;
  }
  std::vector<std::string> values;
  const toml::array* list = option.many ? node.as_array() : nullptr;
  if (list == nullptr) {
    auto one = text_of(node);
    return one ? std::optional(std::vector{std::move(*one)}) : std::nullopt;
  }
  for (const toml::node& each : *list) {
    auto one = text_of(each);
    if (!one) return std::nullopt;
    values.push_back(std::move(*one));
  }
  return values;
}

class Reader {
 public:
  Reader(const std::string& file, Whose whose) : file_(file), whose_(whose) {}

  Result<ConfiguredOptions> read_table(const toml::table& table, const Verb& verb) const {
    ConfiguredOptions found;
    const std::vector<Option> options = verb.all_options();
    for (const auto& [key, node] : table) {
      if (verb.name == "ranges" && key == "rules") {  // rules for names of ranges: libs/analyze/names reads them
        if (whose_ == Whose::kFolder) continue;
        return wrong("rules for names of ranges are those of a folder, or of --ranges FILE", "");
      }
      const std::string flag = "--" + std::string(key.str());
      const auto option = std::ranges::find(options, flag, &Option::flag);
      if (option == options.end()) return unknown_key(verb, options, key.str());
      if (whose_ == Whose::kFolder && only_for_users(*option)) {
        return wrong(fmt::format("[{}] {} is not taken from the file of a folder", verb.name, key.str()),
                     fmt::format("type {}, or set it in your own file; ", flag));
      }
      auto values = values_of(node, *option);
      if (!values) {
        return wrong(fmt::format("[{}] {} has a value of the wrong kind", verb.name, key.str()),
                     option->value.empty() ? fmt::format("{} = true or false; ", key.str())
                                           : fmt::format("{} = \"{}\"; ", key.str(), option->value));
      }
      found[flag] = std::move(*values);
    }
    return found;
  }

  Error unknown_table(std::string_view name) const {
    std::vector<std::string_view> known;
    for (const Verb* verb : verbs()) known.push_back(verb->name);
    return wrong(fmt::format("[{}] is no verb of llmprof", name), base::did_you_mean(name, known));
  }

  Error wrong(std::string_view what, std::string hint) const { return config_error(file_, what, std::move(hint)); }

 private:
  Error unknown_key(const Verb& verb, const std::vector<Option>& options, std::string_view key) const {
    std::vector<std::string_view> known;
    for (const Option& option : options) known.push_back(option.flag.substr(2));
    return wrong(fmt::format("[{}] has no option {}", verb.name, key), base::did_you_mean(key, known));
  }

  const std::string& file_;
  Whose whose_;
};

std::string user_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return fmt::format("{}/llmprof/{}", config, kName);
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fmt::format("{}/.config/llmprof/{}", home, kName) : "";
}

Result<ConfiguredOptions> read_config(const std::string& file, Whose whose, const Verb& verb) {
  if (file.empty() || !base::is_file(file)) return ConfiguredOptions{};
  LLMPROF_LET(const std::string text, base::read_file(file, kMostBytes));
  return parse_config(text, file, whose, verb);
}

}  // namespace

Result<ConfiguredOptions> parse_config(std::string_view text, const std::string& file, Whose whose, const Verb& verb) {
  LLMPROF_LET(const toml::table parsed, base::parse_toml(text, file));
  const Reader reader(file, whose);
  ConfiguredOptions found;
  for (const auto& [name, node] : parsed) {
    const Verb* known = name == verb.name ? &verb : find_verb(name.str());
    if (known == nullptr) return reader.unknown_table(name.str());
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return reader.wrong(fmt::format("{} is no table", name.str()), fmt::format("[{}]; ", name.str()));
    LLMPROF_LET(ConfiguredOptions options, reader.read_table(*table, *known));
    if (known == &verb) found = std::move(options);
  }
  return found;
}

Result<ConfiguredOptions> configured_options(const Verb& verb) {
  LLMPROF_LET(ConfiguredOptions found, read_config(kName, Whose::kFolder, verb));
  LLMPROF_LET(const ConfiguredOptions users, read_config(user_file(), Whose::kUser, verb));
  found.insert(users.begin(), users.end());  // what the folder says stays
  return found;
}

}  // namespace llmprof::app

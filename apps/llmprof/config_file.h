#pragma once
// llmprof.toml: defaults of options, a table per verb (docs/manual/config.md). Two files: of the current folder, then
// of the user ($XDG_CONFIG_HOME/llmprof/llmprof.toml, else ~/.config/llmprof/llmprof.toml).

#include <map>
#include <string>
#include <vector>

#include "verb.h"

namespace llmprof::app {

// flag -> values; a switch is "1" or "0". Values are as a user would type them.
using ConfiguredOptions = std::map<std::string, std::vector<std::string>, std::less<>>;

// A table that names no verb, a key that names no option, or a value that does not fit is an error with a suggestion,
// wherever in the files it is: a default that silently does nothing is worse than none.
Result<ConfiguredOptions> configured_options(const Verb& verb);

// The tables of one file. Whose::kFolder refuses what the file of a folder, which may be a stranger's, must not decide.
enum class Whose : bool { kFolder, kUser };
Result<ConfiguredOptions> parse_config(std::string_view toml, const std::string& file, Whose whose, const Verb& verb);

}  // namespace llmprof::app

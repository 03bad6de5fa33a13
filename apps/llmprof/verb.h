#pragma once
// A verb of the command line. One file per verb (cmd_<verb>.cpp) defines one Verb; verbs.cpp lists them.
// A verb's options are rows of a table: the parser, the LLMPROF_* variable, the default, the manual page, --help and
// the shell completion all read the same row. Values come from the flag, then the variable, then the default.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"

namespace llmprof::app {

struct Option {
  std::string_view flag;        // "--output"
  std::string_view short_flag;  // "-o" or ""
  std::string_view variable;    // "LLMPROF_OUTPUT" or ""
  std::string_view value;       // "NAME"; "" makes it a switch
  std::string_view fallback;    // default as the user would type it; "" none
  std::string_view help;
  bool many = false;  // takes several words, and may be given again: Arguments::all
};

struct Positional {
  std::string_view name;  // "RUN"
  bool required = true;
  bool many = false;
};

class Arguments {
 public:
  bool on(std::string_view flag) const { return values_.contains(flag) && values_.find(flag)->second == "1"; }
  std::string get(std::string_view flag) const;               // "" if neither given nor defaulted
  bool given(std::string_view flag) const;                    // typed or set by its variable
  std::vector<std::string> all(std::string_view flag) const;  // of an option that takes many
  std::vector<std::string> positionals;
  std::vector<std::string> command;  // what follows "--"

 private:
  friend Result<Arguments> parse_arguments(const struct Verb&, const std::vector<std::string>&);
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, bool, std::less<>> given_;
  std::map<std::string, std::vector<std::string>, std::less<>> many_;
};

struct Verb {
  std::string_view name;
  std::string_view summary;
  std::span<const Option> options;
  std::span<const Positional> positionals;
  bool takes_command = false;                           // accepts "-- cmd args…"
  Result<int> (*run)(const Arguments&) = nullptr;       // the exit status; main() tells errors
  std::span<const Option> (*made_options)() = nullptr;  // further ones, made from other tables; nullptr: none

  std::vector<Option> all_options() const;
};

std::span<const Verb* const> verbs();
const Verb* find_verb(std::string_view name);

Result<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words);
bool asks_for_help(const Verb& verb, const std::vector<std::string>& words);  // -h or --help before "--"
std::string overview_text();                                                  // llmprof --help
std::string help_text(const Verb& verb);     // from docs/manual/<verb>.md, examples first
std::string options_text(const Verb& verb);  // the options as the manual lists them (Markdown)
std::string with_current_options(const Verb& verb, std::string page);  // a manual page, its options part renewed
std::string completion_script(std::string_view shell);                 // "bash", "zsh", "fish"

// ---- what verbs share ---------------------------------------------------------------------------------------

// Prints "llmprof: message" and "hint: …" to stderr; returns the exit status of the code.
int fail(const Error& error);
// A progress line on stderr, shown once work takes over a second and stderr is a terminal; false after Ctrl-C.
base::Progress progress_line();
// The head every JSON output has: schema, schema_version, llmprof_version.
base::Json json_head(std::string_view schema);
bool colour_wanted(int file = 1);   // stdout, or another, is a terminal, NO_COLOR unset, TERM not dumb
std::size_t terminal_width();       // COLUMNS, else of the terminal behind stdout or stderr, else 100
bool unicode_wanted();              // LC_ALL, LC_CTYPE, LANG: the first that is set says UTF-8, or none is set
void print(std::string_view text);  // stdout; a closed pipe ends the program quietly

}  // namespace llmprof::app

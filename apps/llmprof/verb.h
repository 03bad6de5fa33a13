#pragma once
// A verb of the command line. One file per verb (cmd_<verb>.cpp) defines one Verb; verbs.cpp lists them.
// A verb's options are rows of a table: the parser, the LLMPROF_* variable, the default, the manual page, --help and
// the shell completion all read the same row. Values come from the flag, then the variable, then llmprof.toml
// (config_file.h), then the default.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  std::string get(std::string_view flag) const;  // "" if neither given nor defaulted
  bool given(std::string_view flag) const;       // typed, or set by its variable or llmprof.toml
  bool typed(std::string_view flag) const { return typed_.contains(flag); }
  std::vector<std::string> all(std::string_view flag) const;  // of an option that takes many
  std::vector<std::string> positionals;
  std::vector<std::string> command;  // the program to run and its words

 private:
  friend Result<Arguments> parse_arguments(const struct Verb&, const std::vector<std::string>&);
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, bool, std::less<>> given_;
  std::set<std::string, std::less<>> typed_;
  std::map<std::string, std::vector<std::string>, std::less<>> many_;
};

struct Verb {
  std::string_view name;
  std::string_view summary;
  std::span<const Option> options;
  std::span<const Positional> positionals;
  bool takes_command = false;                           // what follows its options and positionals, or "--"
  Result<int> (*run)(const Arguments&) = nullptr;       // the exit status; main() tells errors
  std::span<const Option> (*made_options)() = nullptr;  // further ones, made from other tables; nullptr: none

  std::vector<Option> all_options() const;
};

struct VerbGroup {
  std::string_view title;  // "Record, look, compare"
  std::vector<const Verb*> verbs;
};
const std::vector<VerbGroup>& verb_groups();
std::span<const Verb* const> verbs();               // of all groups, in their order
std::string_view common_options(const Verb& verb);  // those that -h shows: "--output --force"
const Verb* find_verb(std::string_view name);

Result<Arguments> parse_arguments(const Verb& verb, const std::vector<std::string>& words);
enum class Help : std::uint8_t { kNone, kShort, kManual };
Help asks_for_help(const Verb& verb, const std::vector<std::string>& words);  // -h or --help before the command
std::string overview_text();                                                  // llmprof --help
std::string short_help(const Verb& verb);                                     // -h: one screen
struct PageStyle {
  std::size_t width = 80;
  bool bold = false;  // headings
};
std::string help_text(const Verb& verb, const PageStyle& style = {});  // --help: docs/manual/<verb>.md, examples first
// Pages of docs/manual that belong to no verb; "" if there is no such page.
inline constexpr std::array<std::string_view, 4> kTopics{"annotate", "config", "python", "workload"};
std::string topic_text(std::string_view topic, const PageStyle& style = {});
std::string options_text(const Verb& verb);  // the options as the manual lists them (Markdown)
std::string with_current_options(const Verb& verb, std::string page);  // a manual page, its options part renewed
std::string completion_script(std::string_view shell);                 // "bash", "zsh", "fish"
std::vector<std::string> completion_kinds();                           // what `completion --values` lists
std::vector<std::string> completion_values(std::string_view kind);     // empty if there is no such kind

// ---- what verbs share ---------------------------------------------------------------------------------------

// Prints "llmprof: message" and "hint: …" to stderr; returns the exit status of the code.
int fail(const Error& error);
// A progress line on stderr, shown once work takes over a second and stderr is a terminal; false after Ctrl-C.
base::Progress progress_line();
// The head every JSON output has: schema, schema_version, llmprof_version.
base::Json json_head(std::string_view schema);
// Text of several screens: through $PAGER (less) if stdout is a terminal.
void print_paged(const std::string& text);
// The same where stdout is a terminal; else this.
std::size_t output_width(std::size_t otherwise);
bool colour_wanted(int file = 1);   // stdout, or another, is a terminal, NO_COLOR unset, TERM not dumb
std::size_t terminal_width();       // COLUMNS, else of the terminal behind stdout or stderr, else 100
bool unicode_wanted();              // LC_ALL, LC_CTYPE, LANG: the first that is set says UTF-8, or none is set
void print(std::string_view text);  // stdout; a closed pipe ends the program quietly

}  // namespace llmprof::app

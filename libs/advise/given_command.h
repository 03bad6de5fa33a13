#pragma once
// A command line as the user gave it: perhaps already one of nsys or ncu, then split into its options and the program.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmprof::advise {

struct GivenCommand {
  std::string tool;                                          // "nsys" or "ncu" if the command begins with it
  std::vector<std::pair<std::string, std::string>> options;  // of that tool: name with its dashes, value
  std::vector<std::string> environment;                      // NAME=value in front, or after "env"
  std::vector<std::string> program;                          // what is profiled in the end

  // Value of the first option of these names; nullptr if none is there.
  const std::string* option(std::string_view name, std::string_view other = "") const;
  // Value of a variable given in front of the command, else of this process; "" if it is not set.
  std::string variable(const std::string& name) const;
  std::string script() const;  // "x.py" of a Python program, "" otherwise
};

GivenCommand read_command(const std::vector<std::string>& words);

}  // namespace llmprof::advise

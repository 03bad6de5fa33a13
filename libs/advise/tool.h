#pragma once
// A tool of somebody else on this machine: where it is, which version, which options it says it has.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::advise {

struct Places {
  std::string path;        // folders with ':' between, as $PATH
  std::string root = "/";  // below it the usual places are looked at; "" : none of them
};
Places places_here();

struct Tool {
  std::string path;     // "" if it is not here
  std::string version;  // "2025.3.1", "" if it does not say
  std::string help;     // of its options, "" if it does not say

  bool installed() const { return !path.empty(); }
  // Does it have this option? A tool that is not here, or says nothing, is taken for a recent one.
  bool has(std::string_view option) const;
  // The word to call it by: its name where $PATH finds it, else its path.
  std::string word;
};

// `places` are tried for "nsys" or "ncu"; the tool is asked for its version and help, 10 s each at most.
Tool find_tool(const std::string& name, const Places& places);

// What a program prints (both streams, 1 MiB at most), its group ended after `patience`. `words[0]` is a path.
Result<std::string> output_of(const std::vector<std::string>& words, std::chrono::milliseconds patience);

// The first number with dots in it: "2025.3.1" of "Version 2025.3.1.0 (build 36398880)" is "2025.3.1.0".
std::string version_in(std::string_view text);
// The executable file that `name` means; "" if there is none. A name with '/' is itself.
std::string find_on_path(const std::string& name, const std::string& path);

}  // namespace llmprof::advise

#pragma once
// A fuzz target is one file that defines kTarget, and one line in CMakeLists.txt. tools/fuzz.sh runs them all.

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::fuzz {

struct Target {
  // Must return, whatever the input. What may never happen is said with require().
  void (*run)(std::string_view input);
  // Good inputs: a fuzzer that starts from the structure of a format finds in a second what it would not guess in
  // hours.
  std::vector<std::string> (*seeds)();
  // Words of the format.
  std::vector<std::string> (*dictionary)();
};
extern const Target kTarget;

inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// For parsers that open a file: the path of one in memory that holds `bytes` until the next call.
std::string in_file(std::string_view bytes);
// The same as `name` in a folder; returns the folder.
std::string in_folder(const std::string& name, std::string_view bytes);

}  // namespace llmprof::fuzz

#include "host/stacks/testing/pythons.h"

#include <glob.h>
#include <stdio.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace llmprof::host::testing {
namespace {

// `minor` is a pattern: "1[12]".
std::vector<std::string> candidates(const std::string& minor) {
  std::vector<std::string> found;
  if (const char* named = std::getenv("LLMPROF_TEST_PYTHONS"); named != nullptr) {
    std::stringstream list(named);
    for (std::string path; std::getline(list, path, ':');) found.push_back(path);
    return found;
  }
  std::vector<std::string> patterns{"/usr/bin/python3.", "/usr/local/bin/python3.", "/opt/*/bin/python3."};
  if (const char* home = std::getenv("HOME"); home != nullptr)
    patterns.push_back(std::string(home) + "/.pyenv/versions/*/bin/python3.");
  for (const std::string& pattern : patterns) {
    glob_t matches{};
    if (::glob((pattern + minor).c_str(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) found.emplace_back(matches.gl_pathv[i]);
    }
    ::globfree(&matches);
  }
  return found;
}

// Debug builds have other structures. `versions` is a condition on v, major and minor.
bool is_supported(const std::string& path, const std::string& versions) {
  const std::string command = path + " -c \"import sys; v = sys.version_info[:2]; print((" + versions +
                              ") and not hasattr(sys, 'gettotalrefcount') and sys.implementation.name == 'cpython' and "
                              "getattr(sys, '_is_gil_enabled', lambda: True)())\" 2>/dev/null";
  FILE* output = ::popen(command.c_str(), "r");
  if (output == nullptr) return false;
  char answer[8] = "";
  const bool read = ::fgets(answer, sizeof answer, output) != nullptr;
  return ::pclose(output) == 0 && read && std::string(answer) == "True\n";
}

std::vector<std::string> find_pythons(const std::string& minor, const std::string& versions) {
  std::vector<std::string> pythons;
  std::set<std::string> seen;
  for (const std::string& path : candidates(minor)) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(path, error).string();
    if (!error && seen.insert(real).second && is_supported(real, versions)) pythons.push_back(real);
  }
  return pythons;
}

}  // namespace

std::vector<std::string> supported_pythons() { return find_pythons("1[12]", "v in ((3, 11), (3, 12))"); }

std::vector<std::string> launch_stack_pythons() { return find_pythons("1[1234]", "(3, 11) <= v <= (3, 14)"); }

std::vector<std::string> older_pythons() { return find_pythons("1[0]", "v < (3, 11)"); }

}  // namespace llmprof::host::testing

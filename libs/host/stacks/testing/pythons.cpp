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

std::vector<std::string> candidates() {
  std::vector<std::string> found;
  if (const char* named = std::getenv("LLMPROF_TEST_PYTHONS"); named != nullptr) {
    std::stringstream list(named);
    for (std::string path; std::getline(list, path, ':');) found.push_back(path);
    return found;
  }
  std::vector<std::string> patterns{"/usr/bin/python3.1[12]", "/usr/local/bin/python3.1[12]",
                                    "/opt/*/bin/python3.1[12]"};
  if (const char* home = std::getenv("HOME"); home != nullptr)
    patterns.push_back(std::string(home) + "/.pyenv/versions/*/bin/python3.1[12]");
  for (const std::string& pattern : patterns) {
    glob_t matches{};
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) found.emplace_back(matches.gl_pathv[i]);
    }
    ::globfree(&matches);
  }
  return found;
}

// Debug builds have other structures.
bool is_supported(const std::string& path) {
  const std::string command =
      path +
      " -c \"import sys; print(sys.version_info[:2] in ((3, 11), (3, 12)) and not "
      "hasattr(sys, 'gettotalrefcount') and sys.implementation.name == 'cpython')\" 2>/dev/null";
  FILE* output = ::popen(command.c_str(), "r");
  if (output == nullptr) return false;
  char answer[8] = "";
  const bool read = ::fgets(answer, sizeof answer, output) != nullptr;
  return ::pclose(output) == 0 && read && std::string(answer) == "True\n";
}

}  // namespace

std::vector<std::string> supported_pythons() {
  std::vector<std::string> pythons;
  std::set<std::string> seen;
  for (const std::string& path : candidates()) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(path, error).string();
    if (!error && seen.insert(real).second && is_supported(real)) pythons.push_back(real);
  }
  return pythons;
}

}  // namespace llmprof::host::testing

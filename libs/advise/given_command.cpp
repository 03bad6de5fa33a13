#include "advise/given_command.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/file.h"

namespace llmprof::advise {
namespace {

// Options of ncu without a value; all others have one. nsys's all have one.
constexpr std::array<std::string_view, 26> kNcuSwitches{"--help",
                                                        "-h",
                                                        "--version",
                                                        "-v",
                                                        "--nvtx",
                                                        "--csv",
                                                        "--quiet",
                                                        "--verbose",
                                                        "--force-overwrite",
                                                        "-f",
                                                        "--call-stack",
                                                        "--null-stdin",
                                                        "--list-sets",
                                                        "--list-sections",
                                                        "--list-rules",
                                                        "--list-metrics",
                                                        "--list-chips",
                                                        "--query-metrics",
                                                        "--disable-extra-suffixes",
                                                        "--disable-profiler-start-stop",
                                                        "--section-folder-restore",
                                                        "--support-32bit",
                                                        "--forward-signals",
                                                        "--print-fp",
                                                        "--print-kernel-base-demangled",
                                                        "--summary"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0)
    return false;
  return std::ranges::all_of(word.substr(0, equals), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool has_value(const std::string& tool, std::string_view name) {
  return tool == "nsys" || std::ranges::find(kNcuSwitches, name) == kNcuSwitches.end();
}

// The options of the tool from `at` on; returns where the program begins.
std::size_t read_options(const std::vector<std::string>& words, std::size_t at, GivenCommand& given) {
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    const std::string& word = words[at];
    if (word == "--") return at + 1;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      given.options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!is_long && word.size() > 2) {
      given.options.emplace_back(word.substr(0, 2), word.substr(2));
    } else if (has_value(given.tool, word) && at + 1 < words.size()) {
      given.options.emplace_back(word, words[++at]);
    } else {
      given.options.emplace_back(word, "");
    }
  }
  return at;
}

}  // namespace

const std::string* GivenCommand::option(std::string_view name, std::string_view other) const {
  for (const auto& [option, value] : options) {
    if (option == name || (!other.empty() && option == other)) return &value;
  }
  return nullptr;
}

std::string GivenCommand::variable(const std::string& name) const {
  for (const std::string& text : environment) {
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  }
  return base::env_or(name.c_str(), "");
}

std::string GivenCommand::script() const {
  for (const std::string& word : program) {
    if (word.ends_with(".py") && !word.starts_with('-')) return word;
  }
  return "";
}

GivenCommand read_command(const std::vector<std::string>& words) {
  GivenCommand given;
  std::size_t at = 0;
  while (at < words.size() && (assignment(words[at]) || (words[at] == "env" && given.program.empty()))) {
    if (words[at] != "env") given.environment.push_back(words[at]);
    ++at;
  }
  if (at < words.size() && (base_name(words[at]) == "nsys" || base_name(words[at]) == "ncu")) {
    given.tool = base_name(words[at++]);
    if (given.tool == "nsys" && at < words.size() && words[at] == "profile") ++at;
    at = read_options(words, at, given);
  }
  given.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return given;
}

}  // namespace llmprof::advise

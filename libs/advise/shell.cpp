#include "advise/shell.h"

#include <algorithm>
#include <cctype>

namespace llmprof::advise {
namespace {

bool plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./:=,@%+").find(c) != std::string::npos;
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string shell_pattern(std::string_view word) {
  std::string text;
  for (std::size_t at = 0; at <= word.size();) {
    const std::size_t star = std::min(word.find('*', at), word.size());
    if (star > at) text += shell_word(word.substr(at, star - at));
    if (star < word.size()) text += '*';
    at = star + 1;
  }
  return text;
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string shell_assignment(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) return shell_word(assignment);
  const std::string_view value = assignment.substr(equals + 1);
  return std::string(assignment.substr(0, equals + 1)) + (value.empty() ? "" : shell_word(value));
}

}  // namespace llmprof::advise

#include "record/kernel_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace llmprof::record {
namespace {

// An identifier as it stands in a mangled name: with its length in front, if it is whole.
struct Word {
  std::string_view text;
  bool whole = true;       // no wildcard touches it
  bool template_ = false;  // its arguments follow
};

bool is_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }
bool is_wild(char c) { return c == '*' || c == '?'; }
int bracket(char c) { return c == '(' || c == '{' || c == '[' ? 1 : c == ')' || c == '}' || c == ']' ? -1 : 0; }

// Words that are mangled to single letters, or to nothing.
bool is_builtin(std::string_view word) {
  constexpr std::array kBuiltin{std::string_view("void"),  std::string_view("bool"),     std::string_view("char"),
                                std::string_view("int"),   std::string_view("short"),    std::string_view("long"),
                                std::string_view("float"), std::string_view("double"),   std::string_view("signed"),
                                std::string_view("true"),  std::string_view("false"),    std::string_view("const"),
                                std::string_view("std"),   std::string_view("unsigned"), std::string_view("volatile"),
                                std::string_view("auto"),  std::string_view("decltype"), std::string_view("operator")};
  return std::find(kBuiltin.begin(), kBuiltin.end(), word) != kBuiltin.end();
}

// In the order of the text. What brackets hold (parameters of functions, lambdas, casts) is mangled otherwise, and much
// of `std` has abbreviations.
std::vector<Word> words_of(std::string_view name, bool wildcards) {
  std::vector<Word> words;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += bracket(name[i]);
    if (depth > 0 || !is_part(name[i])) continue;
    std::size_t end = i;
    while (end < name.size() && is_part(name[end])) ++end;
    const std::string_view text = name.substr(i, end - i);
    const bool number = std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    const bool touched = (i > 0 && is_wild(name[i - 1])) || (end < name.size() && is_wild(name[end]));
    const bool open = wildcards && touched;  // else it is the * of a pointer
    const bool of_std = name.substr(0, i).ends_with("std::");
    const bool again = std::any_of(words.begin(), words.end(), [&](const Word& word) { return word.text == text; });
    if (!of_std && !again && (open || !number) && !is_builtin(text)) {
      words.push_back({text, !open, end < name.size() && name[end] == '<'});
    }
    i = end - 1;
  }
  return words;
}

std::string mangled(const Word& word) {
  return word.whole ? fmt::format("{}{}{}", word.text.size(), word.text, word.template_ ? "I" : "")
                    : std::string(word.text);
}

}  // namespace

std::vector<std::string> mangled_patterns(std::string_view name, bool wildcards) {
  if (name.starts_with("_Z")) return {std::string(name)};
  const bool plain = name.find_first_of("<({ ") == std::string_view::npos && name.find("::") == std::string_view::npos;
  std::vector<std::string> patterns;
  if (plain) patterns.emplace_back(name);  // no C++: Triton's, extern "C"
  const std::vector<Word> words = words_of(name, wildcards);
  if (words.empty() || (plain && wildcards && is_wild(name.front()) && is_wild(name.back()))) {
    if (patterns.empty()) patterns.emplace_back("*");
    return patterns;
  }
  std::string rest;
  for (std::size_t i = 1; i < words.size(); ++i) rest += "*" + mangled(words[i]);
  // A name outside of namespaces stands at the begin, behind an L if it is of one file only.
  const bool at_begin = words[0].whole && name.find("::") >= name.find('<') && name.starts_with(words[0].text);
  if (!at_begin) {
    patterns.push_back(fmt::format("_Z*{}{}*", mangled(words[0]), rest));
  } else {
    patterns.push_back(fmt::format("_Z{}{}*", mangled(words[0]), rest));
    patterns.push_back(fmt::format("_ZL{}{}*", mangled(words[0]), rest));
  }
  return patterns;
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  int depth = 0;
  const auto take = [&] {
    const std::size_t begin = name.find_first_not_of(' '), end = name.find_last_not_of(' ');
    if (begin != std::string::npos) names.push_back(name.substr(begin, end - begin + 1));
    name.clear();
  };
  for (const char c : text) {
    depth += c == '<' ? 1 : c == '>' ? -1 : bracket(c);
    if (c == ',' && depth <= 0) {
      take();
    } else {
      name += c;
    }
  }
  take();
  return names;
}

}  // namespace llmprof::record

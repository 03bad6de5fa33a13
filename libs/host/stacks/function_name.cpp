#include "host/stacks/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

namespace llmprof::host {
namespace {

constexpr std::size_t kLongest = 200;
constexpr std::string_view kOperator = "operator", kAnonymous = "(anonymous namespace)";

// Length of "operator<<", "operator()" and alike at this place, whose brackets are not brackets; else 0.
std::size_t operator_at(std::string_view text) {
  if (!text.starts_with(kOperator)) return 0;
  for (const std::string_view sign : {"()", "[]", "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"}) {
    if (text.substr(kOperator.size()).starts_with(sign)) return kOperator.size() + sign.size();
  }
  return 0;
}

// The name with everything in <> and () left out; {} are kept, for lambdas. Nothing if brackets do not match.
std::optional<std::string> without_brackets(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const std::size_t length = operator_at(text.substr(i)); length > 0) {
      if (depth == 0) out += text.substr(i, length);
      i += length - 1;
    } else if (depth == 0 && text.substr(i).starts_with(kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (text[i] == '<' || text[i] == '(') {
      ++depth;
    } else if (text[i] == '>' || text[i] == ')') {
      --depth;
      if (depth < 0) return std::nullopt;
    } else if (depth == 0) {
      out += text[i];
    }
  }
  if (depth != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string shorten_function(const std::string& demangled) {
  const std::optional<std::string> short_name = without_brackets(demangled);
  if (!short_name) return demangled.substr(0, kLongest);
  std::string name = *short_name;
  while (name.ends_with(' ')) name.pop_back();
  for (const std::string_view tail : {" const", " volatile", " &&", " &"}) {
    if (name.size() > tail.size() && std::string_view(name).ends_with(tail)) name.resize(name.size() - tail.size());
  }
  // A template's name begins with its return type. Spaces also stand in "(anonymous namespace)" and "operator bool".
  const std::size_t stop = std::min(name.find(kOperator), name.find('{'));
  std::size_t from = std::string::npos;
  for (std::size_t i = 0; i < name.size() && i < stop; ++i) {
    if (std::string_view(name).substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (name[i] == ' ') {
      from = i;
    }
  }
  const std::size_t clone = demangled.find(" [clone ");
  if (from != std::string::npos && clone == std::string::npos) name = name.substr(from + 1);
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "…";
  return name;
}

std::string readable_function(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol.size() > kLongest ? symbol.substr(0, kLongest) + "…" : symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text != nullptr ? shorten_function(text.get()) : symbol.substr(0, kLongest);
}

}  // namespace llmprof::host

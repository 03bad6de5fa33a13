#include "base/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace llmprof::base {
namespace {

constexpr std::size_t kLongest = 4096;

int step(char c) { return c == '<' || c == '(' || c == '{' ? 1 : c == '>' || c == ')' || c == '}' ? -1 : 0; }

// Where the parameters begin: at the partner of the bracket that the text ends with.
std::size_t parameters(std::string_view text) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == '>' && i > 0 && text[i - 1] == '-') continue;  // "->"
    depth -= step(text[i]);
    if (depth == 0) return i;
  }
  return text.size();
}

// Where the name begins: behind the return type, which only templates have.
std::size_t name_begin(std::string_view text) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += step(text[i]);
    if (depth == 0 && text[i] == ' ') begin = i + 1;
  }
  return begin;
}

}  // namespace

std::string_view without_signature(std::string_view demangled) {
  if (!demangled.ends_with(')')) return demangled;
  demangled = demangled.substr(0, parameters(demangled));
  return demangled.substr(name_begin(demangled));
}

std::string kernel_name(std::string_view symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > kLongest) return std::string(symbol.substr(0, kLongest));
  const std::string copy(symbol);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(copy.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  if (status != 0 || text == nullptr) return copy;
  const std::string_view name = without_signature(text.get());
  return name.empty() ? copy : std::string(name.substr(0, kLongest));
}

}  // namespace llmprof::base

#include "base/kernel_name.h"

#include <cxxabi.h>

#include <cctype>
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

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Nsight Compute's way to write a namespace without a name looks like a template argument.
std::string without_unnamed(std::string_view name) {
  std::string plain(name);
  for (const std::string_view unnamed : {"<unnamed>::", "(anonymous namespace)::"}) {
    for (std::size_t at = plain.find(unnamed); at != std::string::npos; at = plain.find(unnamed))
      plain.erase(at, unnamed.size());
  }
  return plain;
}

// What a generic kernel is made for stands in its template arguments.
std::string_view functor_in(std::string_view arguments) {
  for (std::size_t begin = 0; begin < arguments.size();) {
    std::size_t end = begin;
    while (end < arguments.size() && is_word(arguments[end])) ++end;
    const std::string_view word = arguments.substr(begin, end - begin);
    const bool tells = word.find("unctor") != std::string_view::npos ||
                       word.find("_kernel_") != std::string_view::npos || word.ends_with("_kernel") ||
                       word.ends_with("Op") || word.ends_with("Ops");
    if (tells && word.size() > 4) return word;
    begin = end + 1;
  }
  return "";
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

std::string kernel_function(std::string_view demangled) {
  const std::string plain = without_unnamed(demangled);
  std::string_view name = without_signature(plain);
  if (name.starts_with("void ")) name.remove_prefix(5);
  name = name.substr(0, name.find('<'));
  if (const std::size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  return std::string(name.empty() ? demangled : name);
}

std::string short_kernel_name(std::string_view demangled) {
  const std::string function = kernel_function(demangled);
  const std::string plain = without_unnamed(demangled);
  const std::size_t bracket = plain.find('<');
  if (bracket == std::string::npos || function == demangled) return function;
  const std::string_view functor = functor_in(std::string_view(plain).substr(bracket));
  return functor.empty() || functor == function ? function : function + "<" + std::string(functor) + ">";
}

}  // namespace llmprof::base

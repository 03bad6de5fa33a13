#include "pictures/flame_wrappers.h"

#include <algorithm>

#include "base/strings.h"

namespace llmprof::pictures {
namespace {

bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.ends_with('*')) return text.starts_with(pattern.substr(0, pattern.size() - 1));
  return text == pattern;
}

template <std::size_t N>
bool any(const std::array<WrapperPattern, N>& patterns, std::string_view function, std::string_view file) {
  return std::ranges::any_of(patterns, [&](const WrapperPattern& pattern) {
    return matches(function, pattern.function) && file.find(pattern.file) != std::string_view::npos;
  });
}

}  // namespace

bool is_wrapper(const exporters::Frame& frame, bool innermost) {
  if (frame.kind == "python") {
    // "Module._call_impl.<locals>.inner": the class and the function around it do not matter.
    const std::string_view name = frame.name;
    return any(kPythonWrappers, name.substr(name.rfind('.') + 1), frame.file);
  }
  // Without names of functions: the interpreter, and what libc calls through (begin of threads and programs).
  if (const std::size_t address = frame.name.find("+0x"); address != std::string::npos) {
    const std::string_view library = base::base_name(std::string_view(frame.name).substr(0, address));
    return library.starts_with("python3") || library.starts_with("libpython3") ||
           (!innermost && library.starts_with("libc.so"));
  }
  return any(kNativeWrappers, frame.name, frame.file);
}

}  // namespace llmprof::pictures

#pragma once
// Names with wildcards in them.

#include <cstddef>

namespace llmprof::collect {

// Whether the first `length` bytes of `pattern` match all of `text`; '*' stands for any text, `any` for any byte.
inline bool matches(const char* pattern, std::size_t length, const char* text, char any = '\0') {
  const char* const end = pattern + length;
  const char* star = nullptr;  // the last one seen, and where the text behind it was tried from
  const char* tried = nullptr;
  while (*text != '\0') {
    if (pattern != end && *pattern == '*') {
      star = pattern++;
      tried = text;
    } else if (pattern != end && (*pattern == *text || *pattern == any)) {
      ++pattern;
      ++text;
    } else if (star != nullptr) {
      pattern = star + 1;
      text = ++tried;
    } else {
      return false;
    }
  }
  while (pattern != end && *pattern == '*') ++pattern;
  return pattern == end;
}

}  // namespace llmprof::collect

#pragma once
// Errors by kind, with a formatted message and no hint: return unsupported_error("{} has no kernel {}", gpu, kernel).

#include <fmt/format.h>

#include <utility>

#include "base/result.h"

namespace llmprof {

template <class... Values>
Error usage_error(fmt::format_string<Values...> text, Values&&... values) {
  return {ErrorCode::kUsage, fmt::format(text, std::forward<Values>(values)...), ""};
}

template <class... Values>
Error unsupported_error(fmt::format_string<Values...> text, Values&&... values) {
  return {ErrorCode::kUnsupported, fmt::format(text, std::forward<Values>(values)...), ""};
}

template <class... Values>
Error corrupt_error(fmt::format_string<Values...> text, Values&&... values) {
  return {ErrorCode::kCorruptInput, fmt::format(text, std::forward<Values>(values)...), ""};
}

}  // namespace llmprof

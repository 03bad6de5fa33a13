#pragma once
// JSON of small things (run.json, reports, configs). The only header that names the JSON library.
// Including it costs seconds of compile time: include it in .cpp files, and json_fwd.h in headers.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace llmprof::base {

// Parses text; `where` (a file name) stands in the error. Depth and size are bounded by the caller's input limits.
Result<Json> parse_json(std::string_view text, std::string_view where);

// Reads and parses a file of at most 64 MiB.
Result<Json> read_json(const std::string& path);

// Text of a value with two-space indentation and a final newline. Invalid UTF-8 becomes U+FFFD, never an exception.
std::string to_text(const Json& value);
// The same on one line, without the final newline.
std::string to_line(const Json& value);

// null where there is nothing to say.
template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace llmprof::base

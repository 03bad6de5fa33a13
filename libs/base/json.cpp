#include "base/json.h"

#include <fmt/format.h>

#include "base/file.h"

namespace llmprof::base {

Result<Json> parse_json(std::string_view text, std::string_view where) {
  constexpr int kMaxDepth = 256;  // configs are shallow; a deep file is an attack on the recursive destructor
  int depth = 0;
  const auto callback = [&](int level, Json::parse_event_t, Json&) {
    depth = std::max(depth, level);
    return level <= kMaxDepth;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), callback);
    if (depth > kMaxDepth) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}: JSON nested deeper than {}", where, kMaxDepth), ""};
    }
    return value;
  } catch (const Json::parse_error& error) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}:byte {}: not valid JSON", where, error.byte), ""};
  } catch (const Json::exception& error) {  // a number such as 1e999 is valid JSON that no double can hold
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}", where, error.what()), ""};
  }
}

Result<Json> read_json(const std::string& path) {
  LLMPROF_LET(const std::string text, read_file(path, 64u << 20));
  return parse_json(text, path);
}

std::string to_text(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }
std::string to_line(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace llmprof::base

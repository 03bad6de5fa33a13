#include "model/fields.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"

namespace llmprof::model {

bool Fields::has(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found != object_.end() && !found->is_null();
}

void Fields::reject(ErrorCode code, std::string message, std::string hint) {
  if (!error_) error_ = Error{code, fmt::format("{}: {}", where_, message), std::move(hint)};
}

void Fields::reject_value(std::string_view key, std::string_view expected) {
  const std::string value = base::shorten(base::printable(base::to_line(*object_.find(std::string(key)))), 40);
  reject(ErrorCode::kCorruptInput, fmt::format("{}: {} is not {}", key, value, expected));
}

std::int64_t Fields::count(std::string_view key, std::int64_t most) {
  if (!has(key)) {
    reject(ErrorCode::kCorruptInput, fmt::format("{} is missing", key), "is this the config.json of the model?");
    return 0;
  }
  const base::Json& value = *object_.find(std::string(key));
  // A number too large for 64 bits is unsigned or a double here: never compared as a wrapped one.
  const bool whole =
      value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
  const std::int64_t number = whole ? value.get<std::int64_t>() : 0;
  if (!whole || number < 1 || number > most) {
    reject_value(key, fmt::format("a whole number from 1 to {}", most));
    return 0;
  }
  return number;
}

std::int64_t Fields::count_or(std::string_view key, std::int64_t fallback) { return has(key) ? count(key) : fallback; }

bool Fields::flag_or(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  const base::Json& value = *object_.find(std::string(key));
  if (value.is_boolean()) return value.get<bool>();
  reject_value(key, "true or false");
  return fallback;
}

std::string Fields::text_or(std::string_view key, std::string_view fallback) {
  if (!has(key)) return std::string(fallback);
  const base::Json& value = *object_.find(std::string(key));
  if (value.is_string()) return value.get<std::string>();
  reject_value(key, "a string");
  return std::string(fallback);
}

void Fields::expect_off(std::string_view key) {
  if (flag_or(key, false)) reject(ErrorCode::kUnsupported, fmt::format("{}: true is not supported", key));
}

void Fields::expect_divisible(std::string_view key, std::int64_t value, std::string_view by_key, std::int64_t by) {
  if (by > 0 && value % by == 0) return;
  reject(ErrorCode::kCorruptInput, fmt::format("{}: {} is not divisible by {} = {}", key, value, by_key, by));
}

}  // namespace llmprof::model

#pragma once
// Checked access to the keys of a config.json. The first error is kept and everything read after it is 0, so a family
// reads its keys line by line and the caller asks once.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"

namespace llmprof::model {

inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxLayers = 100'000;  // each layer becomes a dozen rows: a bound on memory

class Fields {
 public:
  // `object` must be a JSON object and outlive this. `where` stands in front of every message.
  Fields(const base::Json& object, std::string_view where) : object_(object), where_(where) {}

  bool has(std::string_view key) const;                                     // there and not null
  std::int64_t count(std::string_view key, std::int64_t most = kMaxCount);  // a whole number, 1…most
  std::int64_t count_or(std::string_view key, std::int64_t fallback);
  bool flag_or(std::string_view key, bool fallback);
  std::string text_or(std::string_view key, std::string_view fallback);
  void expect_off(std::string_view key);  // a feature the formulas do not cover
  void expect_divisible(std::string_view key, std::int64_t value, std::string_view by_key, std::int64_t by);

  void reject(ErrorCode code, std::string message, std::string hint = "");
  const std::optional<Error>& error() const { return error_; }

 private:
  void reject_value(std::string_view key, std::string_view expected);

  const base::Json& object_;
  std::string where_;
  std::optional<Error> error_;
};

}  // namespace llmprof::model

#pragma once
// Checked access to the keys of a config.json. The first error is kept and everything read after it is 0, so a family
// reads its keys line by line and the caller asks once. What was read is remembered: the rest is not understood.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/config.h"

namespace llmprof::model {

inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxLayers = 100'000;  // each layer becomes a dozen rows: a bound on memory

std::int64_t most_of(std::string_view key);  // largest value that `key` may have

class Fields {
 public:
  // `object` must be a JSON object and outlive this. `where` stands in front of every message.
  Fields(const base::Json& object, std::string_view where) : object_(object), where_(where) {}
  // The language model of a larger config, under `key` of `outer`.
  Fields(const base::Json& object, const Fields& outer, std::string_view key);

  bool has(std::string_view key) const;      // there and not null
  bool is_null(std::string_view key) const;  // there and null
  bool nested() const { return !prefix_.empty(); }
  const base::Json* find(std::string_view key);  // nullptr if absent or null; counts as read
  const base::Json& object() const { return object_; }

  std::int64_t count(std::string_view key);  // a whole number, 1…most_of(key)
  std::int64_t count_or(std::string_view key, std::int64_t fallback);
  std::int64_t zero_or_more(std::string_view key, std::int64_t fallback);
  // A size that every config.json states. A nested config leaves out what is as its class says: then `usual`, unless 0.
  // Of several spellings the first that is there counts.
  std::int64_t size(std::initializer_list<std::string_view> keys, std::int64_t usual);
  bool flag_or(std::string_view key, bool fallback);
  std::string text_or(std::string_view key, std::string_view fallback);
  std::vector<std::int64_t> counts(std::string_view key);  // of whole numbers from 0; empty if absent
  std::vector<std::string> texts(std::string_view key);
  void ignore(std::initializer_list<std::string_view> keys);  // known, without influence on any cost

  void expect_divisible(std::string_view key, std::int64_t value, std::string_view by_key, std::int64_t by);
  void expect_length(std::string_view key, std::size_t length, std::int64_t layers);

  void reject(ErrorCode code, std::string message, std::string hint = "");
  const std::optional<Error>& error() const { return error_; }
  void caveat(std::string_view field, std::string meaning);
  void note(std::string_view field, std::string meaning);
  void add_unread_caveats();  // one for each key that nobody read and that is not known to be harmless
  std::vector<Caveat> caveats, notes;
  void adopt(Fields& part);  // its error, caveats and notes
  std::string path(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t least);
  void reject_value(std::string_view key, std::string_view expected);

  const base::Json& object_;
  std::string where_;
  std::string prefix_;  // "text_config."
  std::set<std::string, std::less<>> read_;
  std::optional<Error> error_;
};

}  // namespace llmprof::model

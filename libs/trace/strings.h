#pragma once
// The run's dictionary: every distinct string once. Not thread-safe.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/schema.h"

namespace llmprof::trace {

class Strings {
 public:
  Name intern(std::string_view text);      // the empty string is a name of its own
  std::string_view text(Name name) const;  // id 0 (NULL) is ""
  bool knows(std::string_view text) const { return ids_.contains(text); }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque: views into it stay valid as it grows
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

// The text with every byte that is no part of valid UTF-8, and every NUL, written as \xNN (four characters): Parquet
// strings are UTF-8, but names come from untrusted programs and may be any bytes.
std::string storable(std::string_view text);

}  // namespace llmprof::trace

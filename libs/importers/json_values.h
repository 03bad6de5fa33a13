#pragma once
// JSON of other tools: one document, documents one after the other (JSON Lines, results that were appended), or an
// array's elements, one at a time in bounded memory. Python's NaN and Infinity are read as texts. What cannot be read is
// counted; reading goes on behind it, at the latest at a line that begins with a brace where no value can begin.

#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers {

class JsonValues {
 public:
  static constexpr std::size_t kMaxValueBytes = 96u << 20;

  JsonValues(Input& input, Sink& sink) : input_(input), sink_(sink) {}

  // The next object (of the array, if the content is one); false: the end. What is no object is left out and counted.
  Result<bool> next(base::Json& value);
  std::uint64_t offset() const { return value_offset_; }  // of the value's first byte
  std::string where() const;                              // "byte 17"
  std::int64_t found() const { return found_; }           // objects so far
  // An error that says the file is not what it should be; the first damage is its place.
  Error refuse(std::string_view is_no, std::string_view hint) const;

 private:
  Result<bool> fill();
  Result<bool> cut();  // finds the end of the value that begins at begin_
  void damaged(std::string_view what);

  Input& input_;
  Sink& sink_;
  std::string buffer_;
  std::size_t at_ = 0, begin_ = 0, end_ = 0;
  std::uint64_t buffer_offset_ = 0, value_offset_ = 0;
  std::int64_t found_ = 0, bad_ = 0;
  std::optional<std::uint64_t> first_bad_;
  bool ended_ = false;
};

// The member of an object; nullptr: no object, no such member, or null.
const base::Json* member(const base::Json& object, std::string_view name);
// A member that is a finite number.
std::optional<double> number(const base::Json& object, std::string_view name);
std::optional<double> as_number(const base::Json& value);
// A member that is a whole number and fits.
std::optional<std::int64_t> whole(const base::Json& object, std::string_view name);
// A member that is text; "" if there is none. Valid as long as the object.
std::string_view text(const base::Json& object, std::string_view name);
// Its elements; an empty array if it is none.
const base::Json& array(const base::Json& object, std::string_view name);

// Seconds, milliseconds, … (`unit_ns` nanoseconds each) as nanoseconds; nullopt: they do not fit.
std::optional<std::int64_t> to_ns(double value, double unit_ns);

}  // namespace llmprof::importers

#pragma once
// Untrusted text: its encoding and its lines.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::importers {

// Untrusted text: whether it is UTF-8, and how to make it so.
bool is_utf8(std::string_view text);  // NUL is not: Parquet readers stumble over it
// Every byte that is no part of valid UTF-8 becomes U+FFFD.
std::string to_utf8(std::string_view text);
// Appends a code point; what is none, surrogates included, becomes U+FFFD.
void append_utf8(std::string& out, std::uint32_t code);

// A date and a time of day (HH:MM:SS, seconds since midnight) as logs write them; nullopt: there is none. Leap seconds
// are taken.
std::optional<std::chrono::year_month_day> date_of(std::string_view year, std::string_view month, std::string_view day);
std::optional<std::int64_t> second_of_day(std::string_view time);

// Untrusted text line by line, in bounded memory. Lines that are too long are skipped and counted. Not
// thread-safe.
class Input;
class Sink;

class Lines {
 public:
  static constexpr std::size_t kMaxLineBytes = 1 << 20;

  Lines(Input& input, Sink& sink, std::size_t max_line_bytes = kMaxLineBytes)
      : input_(input), sink_(sink), max_line_bytes_(max_line_bytes) {}

  // The next line without its end (\n or \r\n) and without ANSI escapes; valid until the next call. False: the end.
  Result<bool> next(std::string_view& line);
  // Calls take(line) for every line that is left.
  template <class Take>
  Result<void> each(const Take& take) {
    for (std::string_view line;;) {
      LLMPROF_LET(const bool more, next(line));
      if (!more) return {};
      take(line);
    }
  }
  std::uint64_t number() const { return number_; }  // of that line, from 1
  std::uint64_t offset() const { return offset_; }  // of its first byte
  std::string where() const;                        // "line 3"

 private:
  Result<bool> fill();
  Result<bool> skip_long_line();

  Input& input_;
  Sink& sink_;
  std::size_t max_line_bytes_;
  std::string buffer_, plain_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0, offset_ = 0, buffer_offset_ = 0;
  bool ended_ = false;
};

// Text without what colours a terminal (ESC [ … letter). `storage` holds the result where it differs.
std::string_view without_escapes(std::string_view line, std::string& storage);

}  // namespace llmprof::importers

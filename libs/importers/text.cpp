#include "importers/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/numbers.h"
#include "base/strings.h"
#include "importers/input.h"
#include "importers/sink.h"
#include "wire/primitives.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kChunkBytes = 256 << 10;

// Most names are ASCII: eight bytes at a time.
std::size_t plain_prefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    const std::uint64_t zero = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
    if (((word & 0x8080808080808080u) | zero) != 0) break;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) {
  text.remove_prefix(plain_prefix(text));
  while (!text.empty()) {
    const std::size_t bytes = base::utf8_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = base::utf8_bytes(text);
    out += bytes == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code >= 0x110000 || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
  char bytes[4];
  out.append(bytes, wire::put_utf8(bytes, code));
}

std::optional<std::chrono::year_month_day> date_of(std::string_view year, std::string_view month,
                                                   std::string_view day) {
  const auto y = base::parse_number<unsigned>(year), m = base::parse_number<unsigned>(month),
             d = base::parse_number<unsigned>(day);
  if (!y || !m || !d || *y < 1970 || *y > 2200 || *m < 1 || *m > 12 || *d < 1 || *d > 31) return std::nullopt;
  return std::chrono::year_month_day(std::chrono::year(static_cast<int>(*y)), std::chrono::month(*m),
                                     std::chrono::day(*d));
}

std::optional<std::int64_t> second_of_day(std::string_view time) {
  if (time.size() != 8 || time[2] != ':' || time[5] != ':') return std::nullopt;
  const auto hour = base::parse_number<unsigned>(time.substr(0, 2)),
             minute = base::parse_number<unsigned>(time.substr(3, 2)),
             second = base::parse_number<unsigned>(time.substr(6, 2));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return (*hour * 60 + *minute) * 60 + *second;
}

std::string_view without_escapes(std::string_view line, std::string& storage) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  storage.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      storage.push_back(line[i]);
      continue;
    }
    if (i + 1 >= line.size() || line[i + 1] != '[') continue;
    ++i;
    while (i + 1 < line.size() && (line[i + 1] < '@' || line[i + 1] > '~')) ++i;
    if (i + 1 < line.size()) ++i;  // the letter that ends it
  }
  return storage;
}

std::string Lines::where() const { return fmt::format("line {}", number_); }

// More bytes behind those that are left; false at the end.
Result<bool> Lines::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  buffer_offset_ += at_;
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunkBytes);
  LLMPROF_LET(const std::size_t got, input_.read(buffer_.data() + kept, kChunkBytes));
  buffer_.resize(kept + got);
  ended_ = got == 0;
  if (!sink_.progress(input_.stored_offset())) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  return !ended_;
}

Result<bool> Lines::skip_long_line() {
  sink_.lose(trace::Loss::kInputDamaged, 1, fmt::format("lines longer than {} KiB", max_line_bytes_ >> 10),
             fmt::format("byte {}", buffer_offset_ + at_));
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos) {
      at_ = end + 1;
      return true;
    }
    at_ = buffer_.size();
    LLMPROF_LET(const bool more, fill());
    if (!more) return false;
  }
}

Result<bool> Lines::next(std::string_view& line) {
  for (std::size_t searched = 0;;) {
    const std::size_t end = buffer_.find('\n', at_ + searched);
    const std::size_t size = (end == std::string::npos ? buffer_.size() : end) - at_;
    if (size > max_line_bytes_) {
      ++number_;
      LLMPROF_LET(const bool more, skip_long_line());
      if (!more) return false;
      searched = 0;
      continue;
    }
    if (end == std::string::npos) {
      searched = size;
      LLMPROF_LET(const bool more, fill());
      if (more) continue;
      if (buffer_.size() == at_) return false;
    }
    ++number_;
    offset_ = buffer_offset_ + at_;
    line = std::string_view(buffer_).substr(at_, size);
    at_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_escapes(line, plain_);
    return true;
  }
}

}  // namespace llmprof::importers

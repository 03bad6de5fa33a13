#include "importers/lines.h"

#include <fmt/format.h>

#include <cstring>

#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kChunkBytes = 256 << 10;

}  // namespace

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

#include "model/checkpoint/byte_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace llmprof::model {

constexpr std::uint64_t kBufferBytes = 256 << 10;

void ByteReader::reject(std::string_view rule, std::string hint) {
  if (error_) return;
  error_ =
      Error{ErrorCode::kCorruptInput, fmt::format("{}: byte {}: {}", file_.path(), position_, rule), std::move(hint)};
}

bool ByteReader::fill() {
  buffer_.resize(std::min(kBufferBytes, remaining()));
  buffer_begin_ = position_;
  Result<void> read = file_.read_at(position_, buffer_.data(), buffer_.size());
  if (!read && !error_) error_ = std::move(read.error());
  return ok();
}

bool ByteReader::take(void* out, std::uint64_t bytes) {
  if (!ok()) return false;
  if (bytes > remaining()) {
    reject(fmt::format("the file ends, {} bytes more are needed", bytes - remaining()));
    return false;
  }
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    if (position_ - buffer_begin_ >= buffer_.size() && !fill()) return false;
    const std::uint64_t at = position_ - buffer_begin_;
    const std::uint64_t count = std::min<std::uint64_t>(bytes, buffer_.size() - at);
    std::memcpy(to, buffer_.data() + at, count);
    to += count;
    position_ += count;
    bytes -= count;
  }
  return true;
}

template <class T>
T ByteReader::number() {
  T value = 0;  // little-endian, as this machine
  return take(&value, sizeof(value)) ? value : 0;
}
template std::uint8_t ByteReader::number();
template std::uint32_t ByteReader::number();
template std::uint64_t ByteReader::number();

std::uint64_t ByteReader::unsigned_of(unsigned bytes) {
  std::uint64_t value = 0;
  return take(&value, bytes) ? value : 0;
}

std::string ByteReader::text(std::uint64_t bytes) {
  if (bytes > remaining()) {
    reject(fmt::format("a text of {} bytes does not fit into the rest of the file", bytes));
    return "";
  }
  std::string text(bytes, '\0');
  return take(text.data(), bytes) ? text : "";
}

void ByteReader::skip(std::uint64_t bytes) {
  if (!ok()) return;
  if (bytes > remaining()) {
    reject(fmt::format("{} bytes are announced, the file ends after {}", bytes, remaining()));
    return;
  }
  position_ += bytes;
}

}  // namespace llmprof::model

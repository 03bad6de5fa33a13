#include "importers/memory_snapshot/byte_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace llmprof::importers {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;

}  // namespace

ByteReader::ByteReader(Input& input) : input_(input), buffer_(kBufferBytes) {}

bool ByteReader::possible(std::uint64_t count) const {
  return input_.compressed() || (offset() <= input_.file_bytes() && count <= input_.file_bytes() - offset());
}

// Moves what is not used yet to the front and reads behind it.
bool ByteReader::fill(std::size_t wanted) {
  std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
  begin_ += at_;
  filled_ -= at_;
  at_ = 0;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  while (filled_ < wanted) {
    auto got = input_.read(buffer_.data() + filled_, buffer_.size() - filled_);
    if (!got) {
      failed_ = std::move(got.error());
      return false;
    }
    if (*got == 0) return false;
    filled_ += *got;
  }
  return true;
}

const char* ByteReader::take_slowly(std::uint64_t count) {
  wanted_ = count;
  if (count > kMaxPiece || !possible(count) || !fill(static_cast<std::size_t>(count))) return nullptr;
  at_ = static_cast<std::size_t>(count);
  return buffer_.data();
}

bool ByteReader::line(std::string_view& text) {
  for (std::size_t looked = 0;;) {
    const char* begin = buffer_.data() + at_;
    if (const void* end = std::memchr(begin + looked, '\n', filled_ - at_ - looked)) {
      text = {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
      at_ += text.size() + 1;
      return true;
    }
    looked = filled_ - at_;
    wanted_ = looked + 1;
    if (wanted_ > kMaxPiece || !fill(looked + 1)) return false;
    looked = std::min(looked, filled_);
  }
}

Error ByteReader::error() const {
  if (!failed_) return failed_.error();
  if (wanted_ > kMaxPiece && possible(wanted_)) {
    return {ErrorCode::kUnsupported,
            fmt::format("byte {}: a value of {} bytes; {} are read at most", offset(), wanted_, kMaxPiece), ""};
  }
  const std::string claim = wanted_ > 1 ? fmt::format("{} more bytes are announced, but ", wanted_) : std::string();
  return {ErrorCode::kCorruptInput, fmt::format("byte {}: {}the file ends before the pickle does", offset(), claim),
          "the file was cut, or is no pickle; write the snapshot again"};
}

}  // namespace llmprof::importers

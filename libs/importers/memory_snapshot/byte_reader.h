#pragma once
// The bytes of an input one after another, buffered, with their place. Lengths that the input claims are held against
// what is left of it before anything is reserved for them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "importers/input.h"

namespace llmprof::importers {

class ByteReader {
 public:
  static constexpr std::size_t kMaxPiece = 64u << 20;  // one text or number

  explicit ByteReader(Input& input);

  // The next `count` bytes, valid until the next call; nullptr: see error().
  const char* take(std::uint64_t count) {
    if (count <= filled_ - at_) {
      const char* bytes = buffer_.data() + at_;
      at_ += static_cast<std::size_t>(count);
      return bytes;
    }
    return take_slowly(count);
  }
  // Up to the next newline, which is left out. False: see error().
  bool line(std::string_view& text);

  std::uint64_t offset() const { return begin_ + at_; }  // of the next byte
  std::uint64_t stored_offset() const { return input_.stored_offset(); }
  // Whether `count` more bytes can be there; a compressed input does not tell.
  bool possible(std::uint64_t count) const;
  Error error() const;

 private:
  const char* take_slowly(std::uint64_t count);
  bool fill(std::size_t wanted);

  Input& input_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t begin_ = 0;  // place of buffer_[0]
  std::uint64_t wanted_ = 0;
  Result<void> failed_;
};

}  // namespace llmprof::importers

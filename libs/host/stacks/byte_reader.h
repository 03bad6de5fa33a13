#pragma once
// Reads little-endian values from bytes nobody vouches for. A read past the end gives 0 and makes ok() false for good,
// so a parser may check once, at its end.

#include <cstdint>
#include <cstring>
#include <span>

namespace llmprof::host {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  template <class T>
  T fixed() {
    T value{};
    if (take(sizeof value)) std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }

  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;  // also after the end
    }
  }

  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  // The next `count` bytes; empty if there are not so many.
  std::span<const std::uint8_t> block(std::uint64_t count) {
    if (!take(count)) return {};
    return bytes_.subspan(at_ - count, count);
  }

  void seek(std::uint64_t at) {
    if (at > bytes_.size()) {
      fail();
    } else {
      at_ = at;
    }
  }

  void fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

 private:
  bool take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail();
      return false;
    }
    at_ += count;
    return true;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace llmprof::host

#pragma once
// Reads little-endian values from untrusted bytes. A read past the end gives 0 and makes ok() false for good, so that a
// parser may check once, at its end. Libc only: the collector uses it, too.

#include <cstddef>
#include <cstdint>
#include <span>

namespace llmprof::wire {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes.data()), size_(bytes.size()) {}

  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }
  std::size_t left() const { return size_ - at_; }

  template <class T>
  T fixed() {
    T value{};
    if (take(sizeof(T))) __builtin_memcpy(&value, bytes_ + at_ - sizeof(T), sizeof(T));
    return value;
  }

  std::uint64_t uleb() {
    unsigned shift = 0;
    return leb(&shift);
  }

  std::int64_t sleb() {
    unsigned shift = 0;
    std::uint64_t value = leb(&shift);
    const bool negative = ok_ && (bytes_[at_ - 1] & 0x40) != 0;
    if (negative && shift < 64) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }

  // The next `count` bytes; empty if there are not so many.
  std::span<const std::uint8_t> block(std::uint64_t count) {
    if (!take(count)) return {};
    return {bytes_ + at_ - count, static_cast<std::size_t>(count)};
  }

  void seek(std::uint64_t at) {
    if (at > size_) return fail();
    at_ = at;
  }

  void fail() {
    ok_ = false;
    at_ = size_;
  }

 private:
  std::uint64_t leb(unsigned* shift) {
    std::uint64_t value = 0;
    for (;; *shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (*shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << *shift;
      if ((byte & 0x80) == 0) break;  // also after the end
    }
    *shift += 7;
    return value;
  }
  bool take(std::uint64_t count) {
    if (count > size_ - at_) {
      fail();
      return false;
    }
    at_ += count;
    return true;
  }

  const std::uint8_t* bytes_;
  std::size_t size_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace llmprof::wire

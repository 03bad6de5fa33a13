#pragma once
// Protocol buffers, written field by field: what Perfetto and pprof files are made of. A message inside another is
// opened, filled and ended; its length is put before it then. No schema is checked here: tests decode with one.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace llmprof::exporters {

class ProtoWriter {
 public:
  std::string_view bytes() const { return {buffer_.data(), size_}; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

  // A number without a tag, as packed fields hold them. Negative numbers are written as their 64 bits.
  void varint(std::uint64_t value) {
    room(kMaxVarint);
    put(value);
  }
  void integer(std::uint32_t field, std::uint64_t value) {
    room(2 * kMaxVarint);
    put(field << 3);
    put(value);
  }
  void integer(std::uint32_t field, std::int64_t value) { integer(field, static_cast<std::uint64_t>(value)); }
  void integer(std::uint32_t field, int value) { integer(field, static_cast<std::uint64_t>(value)); }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    room(kMaxVarint + sizeof value);
    put(field << 3 | 1);
    std::memcpy(buffer_.data() + size_, &value, sizeof value);  // little-endian, as every machine this is built for
    size_ += sizeof value;
  }
  void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void text(std::uint32_t field, std::string_view value) {
    room(2 * kMaxVarint + value.size());
    put(field << 3 | 2);
    put(value.size());
    std::memcpy(buffer_.data() + size_, value.data(), value.size());
    size_ += value.size();
  }
  // Returns what end() wants.
  std::size_t begin(std::uint32_t field) {
    room(kMaxVarint + 1);
    put(field << 3 | 2);
    ++size_;  // one byte for the length: most messages are short
    return size_;
  }
  // A message inside this one, with what `fill` writes into it.
  template <class Fill>
  void message(std::uint32_t field, const Fill& fill) {
    const std::size_t body = begin(field);
    fill();
    end(body);
  }
  void end(std::size_t body) {
    const std::size_t length = size_ - body;
    if (length >= 128)
      make_room_for_length(body, length);
    else
      buffer_[body - 1] = static_cast<char>(length);
  }

 private:
  static constexpr std::size_t kMaxVarint = 10;

  void room(std::size_t bytes) {
    if (size_ + bytes > buffer_.size()) buffer_.resize(2 * (size_ + bytes));
  }
  void put(std::uint64_t value) {
    while (value >= 128) {
      buffer_[size_++] = static_cast<char>(value | 128);
      value >>= 7;
    }
    buffer_[size_++] = static_cast<char>(value);
  }
  void make_room_for_length(std::size_t body, std::size_t length) {
    const auto bytes = static_cast<std::size_t>((std::bit_width(length) + 6) / 7);
    room(bytes);
    std::memmove(buffer_.data() + body - 1 + bytes, buffer_.data() + body, length);
    size_ = body - 1;
    put(length);
    size_ += length;
  }

  std::string buffer_ = std::string(4096, '\0');
  std::size_t size_ = 0;
};

}  // namespace llmprof::exporters

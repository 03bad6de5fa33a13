#pragma once
// Little-endian values one after the other out of a file, through a buffer. The first failure is kept and everything
// read after it is 0 or empty, so a parser reads line by line and asks once. Nothing is allocated that the rest of the
// file could not fill.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/regular_file.h"

namespace llmprof::model {

class ByteReader {
 public:
  explicit ByteReader(const base::RegularFile& file) : file_(file) {}  // must outlive this

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::uint64_t unsigned_of(unsigned bytes);  // 1, 2, 4 or 8
  std::string text(std::uint64_t bytes);
  void skip(std::uint64_t bytes);

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return file_.bytes() - position_; }
  bool ok() const { return !error_; }
  // "PATH: byte 24: <rule>"
  void reject(std::string_view rule, std::string hint = "");
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T number();
  bool take(void* out, std::uint64_t bytes);
  bool fill();

  const base::RegularFile& file_;
  std::string buffer_;
  std::uint64_t buffer_begin_ = 0;  // of the buffer in the file
  std::uint64_t position_ = 0;
  std::optional<Error> error_;
};

}  // namespace llmprof::model

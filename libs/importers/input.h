#pragma once
// The plain bytes of a file that somebody else wrote; gzip (several members too) and zstd are undone on the way, in
// bounded memory. Reads forward only. Not thread-safe.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::importers {

class Input {
 public:
  // Content may grow to this by decompression, or to 200 times the file, whichever is more.
  static constexpr std::uint64_t kMaxPlainBytes = std::uint64_t{64} << 30;

  // A FIFO, a device, a directory is an error that says what it is.
  static Result<Input> open(const std::string& path, std::uint64_t max_plain_bytes = kMaxPlainBytes);
  static Input of_text(std::string name, std::string content);  // for tests and fuzzing
  Input(Input&&) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  const std::string& name() const;      // as the user wrote it
  std::uint64_t file_bytes() const;     // as stored
  std::uint64_t stored_offset() const;  // of the stored bytes, how many were used: progress
  bool compressed() const;

  // The first bytes of the content, at most 64 KiB; reading starts before them all the same.
  Result<std::string_view> head();
  // The next bytes: fills `out` unless the content ends. 0: the end. A damaged stream is an error after its good part.
  Result<std::size_t> read(char* out, std::size_t most);
  // All of it, when it is at most `most` bytes.
  Result<std::string> read_all(std::uint64_t most);
  // Content at an offset, for formats that jump (SQLite): a compressed file was expanded beforehand by expand().
  Result<std::size_t> read_at(std::uint64_t offset, char* out, std::size_t most);
  Result<std::uint64_t> plain_bytes();  // size of the content; expands a compressed file first
  // Undoes the compression into a nameless temporary file, so that read_at() works. Done before the sandbox closes.
  Result<void> expand();

 private:
  struct State;
  explicit Input(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace llmprof::importers

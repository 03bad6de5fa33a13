#pragma once
// A stranger's file, read at offsets: only regular files, never past the end. Owns the descriptor; moves, does not
// copy.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::base {

class RegularFile {
 public:
  // Opens without blocking: a FIFO, a device or a directory is an error that says what it is.
  static Result<RegularFile> open(const std::string& path);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // when it was opened
  int descriptor() const { return fd_; }          // stays this object's
  // Fills `out`. A file that ends before (it shrank) is an error.
  Result<void> read_at(std::uint64_t offset, void* out, std::uint64_t bytes) const;
  // The first bytes, at most `most` of them.
  Result<std::string> beginning(std::uint64_t most) const;

 private:
  RegularFile() = default;
  std::string path_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
};

// What a file is that begins with these bytes: "a zip archive", "a GGUF file", "a Git LFS pointer, …"; "" unknown.
// 16 bytes tell most of them apart, 64 all.
std::string_view recognise(std::string_view beginning);
// "PATH: this is a zip archive, expected a GGUF file", or "… is empty", or "… is not <expected>".
Error wrong_content(const std::string& path, std::string_view beginning, std::string_view expected);

}  // namespace llmprof::base

#pragma once
// A file that is written in large pieces beside its name and renamed at the end: readers see a whole file or none.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::exporters {

class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // an unfinished file is removed

  // Errors are kept for finish(): a full disk is found once, not in every line.
  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kBufferBytes) flush();
  }
  bool failed() const { return error_number_ != 0; }
  std::uint64_t bytes() const { return written_ + buffer_.size(); }
  Result<void> finish();

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  OutputFile() = default;
  void flush();
  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  int error_number_ = 0;
  std::uint64_t written_ = 0;
};

// What a user asked for is readable by whom the umask says, unlike a run.
Result<void> make_folder(const std::string& path);
void open_to_readers(const std::string& path);

}  // namespace llmprof::exporters

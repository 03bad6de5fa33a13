#pragma once
// A file that is written in large pieces beside its name and renamed at the end: readers see a whole file or none.
// One whose name ends in .gz is compressed.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::exporters {

class OutputFile {
 public:
  enum class Packing : std::uint8_t { kByName, kGzip };
  static Result<OutputFile> create(const std::string& path, Packing packing = Packing::kByName);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // an unfinished file is removed

  // Errors are kept for finish(): a full disk is found once, not in every line.
  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kBufferBytes) flush();
  }
  bool failed() const { return error_number_ != 0; }
  std::uint64_t bytes() const { return written_ + buffer_.size(); }  // before compression
  Result<void> finish();

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  OutputFile();
  void flush(bool last = false);
  void write_out(std::string_view bytes);
  struct Gzip;
  std::string path_, temporary_, buffer_;
  std::unique_ptr<Gzip> gzip_;  // nullptr: bytes are written as they are
  int fd_ = -1;
  int error_number_ = 0;
  std::uint64_t written_ = 0;
};

// What a user asked for is readable by whom the umask says, unlike a run.
Result<void> make_folder(const std::string& path);
void open_to_readers(const std::string& path);

}  // namespace llmprof::exporters

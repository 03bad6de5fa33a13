#pragma once
// SQLite's view of an Input: one read-only file in a world without other files. No journal or WAL is looked for, no
// lock is taken, nothing is opened; so it works in the sandbox, and for content that was compressed.

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "importers/input.h"

namespace llmprof::importers::nsys {

class InputVfs {
 public:
  static constexpr const char* kName = "llmprof-input";

  InputVfs(Input& input, std::uint64_t plain_bytes);  // registers itself under kName; one at a time
  ~InputVfs();
  InputVfs(const InputVfs&) = delete;
  InputVfs& operator=(const InputVfs&) = delete;

  std::uint64_t bytes_read() const { return bytes_read_; }
  const std::string& error() const { return error_; }  // what the input said when a read failed

  // SQLite refuses a file that is shorter than its header says; with this the header says what there is.
  void cut_to_pages(std::uint64_t pages) { pages_ = pages; }

  int read(char* out, std::size_t size, std::uint64_t offset);
  std::uint64_t size() const { return size_; }

 private:
  void patch_page_count(char* out, std::size_t size, std::uint64_t offset) const;
  bool fill(std::uint64_t offset, std::size_t wanted);

  Input& input_;
  std::uint64_t size_;
  std::uint64_t bytes_read_ = 0, pages_ = 0;
  std::string error_;
  // Tables lie in one piece each: what follows the last read is read ahead.
  std::string ahead_;
  std::uint64_t ahead_offset_ = 0, next_offset_ = 0;
  sqlite3_vfs vfs_{};
};

}  // namespace llmprof::importers::nsys

#pragma once
// Where the bytes of an executable come from: its file, or the memory of the process that runs it. Files are read, not
// mapped: a file that shrinks while we look at it would otherwise kill us.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llmprof::host {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // All of them or false.
  virtual bool read(std::uint64_t offset, void* out, std::size_t bytes) const = 0;
  virtual std::uint64_t size() const = 0;
};

// A regular file; `inode` 0 accepts any. nullptr if it is not there or is another file.
std::unique_ptr<ByteSource> open_file(const std::string& path, std::uint64_t inode);
std::unique_ptr<ByteSource> from_memory(std::vector<std::uint8_t> bytes);

}  // namespace llmprof::host

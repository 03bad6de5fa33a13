#include "host/stacks/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace llmprof::host {
namespace {

class FileBytes final : public ByteSource {
 public:
  FileBytes(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes() override { ::close(descriptor_); }

  bool read(std::uint64_t offset, void* out, std::size_t bytes) const override {
    if (offset > size_ || bytes > size_ - offset) return false;
    char* at = static_cast<char*>(out);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }
  std::uint64_t size() const override { return size_; }

 private:
  int descriptor_;
  std::uint64_t size_;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  bool read(std::uint64_t offset, void* out, std::size_t bytes) const override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) return false;
    if (bytes > 0) std::memcpy(out, bytes_.data() + offset, bytes);
    return true;
  }
  std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path, std::uint64_t inode) {
  // Not blocking: the path comes from outside and could be a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  const bool good = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
                    (inode == 0 || status.st_ino == inode);
  if (!good) {
    ::close(descriptor);
    return nullptr;
  }
  return std::make_unique<FileBytes>(descriptor, static_cast<std::uint64_t>(status.st_size));
}

std::unique_ptr<ByteSource> from_memory(std::vector<std::uint8_t> bytes) {
  return std::make_unique<MemoryBytes>(std::move(bytes));
}

}  // namespace llmprof::host

#include "trace/file_stamp.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "wire/primitives.h"

namespace llmprof::trace {

Result<FileStamp> stamp_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  void* bytes = regular && info.st_size > 0
                    ? ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0)
                    : MAP_FAILED;
  const int error = errno;
  ::close(fd);
  if (!regular) return Error{ErrorCode::kCorruptInput, path + ": not a regular file", ""};
  if (info.st_size == 0) return FileStamp{};
  if (bytes == MAP_FAILED) return base::errno_error(ErrorCode::kIo, path, error);
  const auto size = static_cast<std::size_t>(info.st_size);
  ::madvise(bytes, size, MADV_SEQUENTIAL);
  const FileStamp stamp{info.st_size, wire::crc32c(bytes, size)};
  ::munmap(bytes, size);
  return stamp;
}

}  // namespace llmprof::trace

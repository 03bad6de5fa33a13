#include "exporters/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace llmprof::exporters {

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.temporary_ = fmt::format("{}.{}.tmp", path, ::getpid());
  file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file.fd_ < 0) return base::errno_error(base::code_of_errno(errno), path, errno);
  file.buffer_.reserve(kBufferBytes + (64 << 10));
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)),
      fd_(std::exchange(other.fd_, -1)),
      error_number_(other.error_number_),
      written_(other.written_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::flush() {
  std::string_view left = buffer_;
  while (!left.empty() && error_number_ == 0) {
    const ssize_t done = ::write(fd_, left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      error_number_ = errno;
    } else {
      left.remove_prefix(static_cast<std::size_t>(done));
    }
  }
  written_ += buffer_.size();
  buffer_.clear();
}

Result<void> OutputFile::finish() {
  flush();
  if (::close(std::exchange(fd_, -1)) != 0 && error_number_ == 0) error_number_ = errno;
  if (error_number_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) == 0) return {};
  if (error_number_ == 0) error_number_ = errno;
  ::unlink(temporary_.c_str());
  return base::errno_error(ErrorCode::kIo, path_, error_number_);
}

Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::errno_error(ErrorCode::kIo, path, error.value());
  return {};
}

void open_to_readers(const std::string& path) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(path.c_str(), 0666 & ~mask);
}

}  // namespace llmprof::exporters

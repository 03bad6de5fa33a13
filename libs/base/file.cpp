#include "base/file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace llmprof::base {

namespace {

namespace fs = std::filesystem;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

ErrorCode code_of_errno(int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) return ErrorCode::kNotFound;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) return ErrorCode::kPermission;
  return ErrorCode::kIo;
}

Error errno_error(ErrorCode code, std::string_view what, int error_number) {
  return Error{code, fmt::format("{}: {}", what, std::strerror(error_number)), ""};
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return errno_error(code_of_errno(errno), path, errno);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return errno_error(ErrorCode::kIo, path, errno);
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kCorruptInput, path + ": not a regular file", ""};
  std::string bytes;
  char buffer[65536];
  while (true) {  // not by st_size: files of /proc and /sys say 0 or 4096
    const ssize_t count = ::read(file.fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(ErrorCode::kIo, path, errno);
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
    if (bytes.size() > max_bytes) {
      return Error{ErrorCode::kCorruptInput, fmt::format("{}: larger than {} bytes", path, max_bytes), ""};
    }
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes, Readers readers) {
  // A finished file takes its name. What the user names may be a link or a device (/dev/stdout), which must stay: these
  // are written to.
  std::error_code none;
  const fs::file_status there = fs::symlink_status(path, none);
  const bool in_place = readers != Readers::kOwner && fs::exists(there) && !fs::is_regular_file(there);
  const std::string beside = in_place ? path : fmt::format("{}.{}.tmp", path, ::getpid());
  const mode_t mode = readers == Readers::kOwner ? 0600 : 0666;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (in_place ? 0 : O_NOFOLLOW);
  const Descriptor file{::open(beside.c_str(), flags, mode)};
  if (file.fd < 0) return errno_error(code_of_errno(errno), beside, errno);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file.fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const Error error = errno_error(ErrorCode::kIo, beside, errno);
      if (!in_place) ::unlink(beside.c_str());
      return error;
    }
    done += static_cast<std::size_t>(count);
  }
  if (!in_place && ::rename(beside.c_str(), path.c_str()) != 0) return errno_error(ErrorCode::kIo, path, errno);
  return {};
}

Result<void> make_directories(const std::string& path) {
  std::error_code error;
  const bool existed = fs::exists(path, error);
  fs::create_directories(path, error);
  if (error) return errno_error(code_of_errno(error.value()), path, error.value());
  if (!existed) ::chmod(path.c_str(), 0700);
  return {};
}

std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

std::uint64_t file_bytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::string env_or(const char* name, std::string_view fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::string(fallback);
}

std::string cache_folder() {
  if (const std::string folder = env_or("LLMPROF_CACHE_DIR", ""); !folder.empty()) return folder;
  if (const std::string folder = env_or("XDG_CACHE_HOME", ""); folder.starts_with('/')) return folder + "/llmprof";
  if (const std::string home = env_or("HOME", ""); !home.empty()) return home + "/.cache/llmprof";
  return "";
}

}  // namespace llmprof::base

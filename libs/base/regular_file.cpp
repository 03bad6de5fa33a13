#include "base/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"

namespace llmprof::base {
namespace {

using namespace std::string_view_literals;

std::string_view type_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

struct Signature {
  std::string_view bytes;
  std::string_view name;
};

constexpr std::array kSignatures{
    Signature{"GGUF"sv, "a GGUF file"},
    Signature{"lmgg"sv, "a GGML file, the format before GGUF"},
    Signature{"fmgg"sv, "a GGML file, the format before GGUF"},
    Signature{"tjgg"sv, "a GGML file, the format before GGUF"},
    Signature{"PK\x03\x04"sv, "a zip archive"},  // torch.save writes these
    Signature{"PK\x05\x06"sv, "an empty zip archive"},
    Signature{"\x1f\x8b"sv, "gzip data"},
    Signature{"\x28\xb5\x2f\xfd"sv, "zstd data"},
    Signature{"\xfd"
              "7zXZ"sv,
              "xz data"},
    Signature{"BZh"sv, "bzip2 data"},
    Signature{"7z\xbc\xaf"sv, "a 7z archive"},
    Signature{"SQLite format 3"sv, "an SQLite database"},
    Signature{"\x7f"
              "ELF"sv,
              "an ELF program"},
    Signature{"\x89HDF"sv, "an HDF5 file"},
    Signature{"\x93NUMPY"sv, "a NumPy array"},
    Signature{"PAR1"sv, "a Parquet file"},
    Signature{"%PDF"sv, "a PDF"},
    Signature{"version https://git-lfs"sv, "a Git LFS pointer, its content was not downloaded"},
    Signature{"<!DOCTYPE"sv, "an HTML page"},
    Signature{"<!doctype"sv, "an HTML page"},
    Signature{"<html"sv, "an HTML page"},
    Signature{"{"sv, "JSON text"},
};

}  // namespace

Result<RegularFile> RegularFile::open(const std::string& path) {
  RegularFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block here
  if (file.fd_ < 0) return errno_error(code_of_errno(errno), path, errno);
  struct stat status {};
  if (::fstat(file.fd_, &status) != 0) return errno_error(ErrorCode::kIo, path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}, not a regular file", path, type_name(status.st_mode)),
                 ""};
  }
  file.bytes_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_) {}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> RegularFile::read_at(std::uint64_t offset, void* out, std::uint64_t bytes) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(ErrorCode::kIo, path_, errno);
    if (got == 0) return Error{ErrorCode::kCorruptInput, fmt::format("{}: ends at byte {}", path_, offset), ""};
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::string> RegularFile::beginning(std::uint64_t most) const {
  std::string bytes(std::min(most, bytes_), '\0');
  LLMPROF_TRY(read_at(0, bytes.data(), bytes.size()));
  return bytes;
}

std::string_view recognise(std::string_view beginning) {
  // Eight bytes of length, then a JSON object. First: the length may look like any of the others.
  if (beginning.size() > 8 && beginning[8] == '{' && beginning[6] == 0 && beginning[7] == 0)
    return "a safetensors file";
  for (const Signature& signature : kSignatures) {
    if (beginning.starts_with(signature.bytes)) return signature.name;
  }
  const bool pickle = beginning.size() > 2 && beginning[0] == '\x80' && beginning[1] >= 2 && beginning[1] <= 5;
  return pickle ? "a pickle, which is code and is not executed" : "";
}

Error wrong_content(const std::string& path, std::string_view beginning, std::string_view expected) {
  const std::string_view found = recognise(beginning);
  std::string message = beginning.empty() ? fmt::format("{}: empty, expected {}", path, expected)
                        : found.empty()   ? fmt::format("{}: not {}", path, expected)
                                          : fmt::format("{}: this is {}, expected {}", path, found, expected);
  return Error{ErrorCode::kCorruptInput, std::move(message), ""};
}

}  // namespace llmprof::base

#include "exporters/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"

namespace llmprof::exporters {

// Level 1 of ISA-L compresses about as fast as a disk writes; higher levels save little on traces.
struct OutputFile::Gzip {
  isal_zstream stream;
  std::vector<std::uint8_t> work = std::vector<std::uint8_t>(ISAL_DEF_LVL1_DEFAULT);
  std::string packed = std::string(256 << 10, '\0');

  Gzip() {
    isal_deflate_init(&stream);
    stream.level = 1;
    stream.level_buf = work.data();
    stream.level_buf_size = static_cast<std::uint32_t>(work.size());
    stream.gzip_flag = IGZIP_GZIP;
  }

  // False: the library refused, which it does only where the memory it was given is wrong.
  template <class Write>
  bool pack(std::string_view bytes, bool last, const Write& write) {
    stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<std::uint32_t>(bytes.size());
    stream.end_of_stream = last ? 1 : 0;
    do {
      stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
      stream.avail_out = static_cast<std::uint32_t>(packed.size());
      if (isal_deflate(&stream) != COMP_OK) return false;
      write(std::string_view(packed).substr(0, packed.size() - stream.avail_out));
    } while (stream.avail_out == 0);
    return true;
  }
};

OutputFile::OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path, Packing packing) {
  OutputFile file;
  if (packing == Packing::kGzip || path.ends_with(".gz")) file.gzip_ = std::make_unique<Gzip>();
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
      gzip_(std::move(other.gzip_)),
      fd_(std::exchange(other.fd_, -1)),
      error_number_(other.error_number_),
      written_(other.written_) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::write_out(std::string_view left) {
  while (!left.empty() && error_number_ == 0) {
    const ssize_t done = ::write(fd_, left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      error_number_ = errno;
    } else {
      left.remove_prefix(static_cast<std::size_t>(done));
    }
  }
}

void OutputFile::flush(bool last) {
  // Pieces of at most 1 GiB: the library counts in 32 bits, and a caller may hand over more at once.
  constexpr std::size_t kPiece = 1u << 30;
  std::string_view left = buffer_;
  do {
    const std::string_view piece = left.substr(0, kPiece);
    left.remove_prefix(piece.size());
    if (gzip_ == nullptr) {
      write_out(piece);
    } else if (!gzip_->pack(piece, last && left.empty(), [&](std::string_view bytes) { write_out(bytes); })) {
      error_number_ = EIO;
    }
  } while (!left.empty());
  written_ += buffer_.size();
  buffer_.clear();
}

Result<void> OutputFile::finish() {
  flush(true);
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

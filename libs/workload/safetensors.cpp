#include "workload/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace llmprof::workload {
namespace {

Result<void> read_at(int fd, std::uint64_t offset, void* out, std::uint64_t bytes, const std::string& path) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_error(ErrorCode::kIo, path, errno);
    if (got == 0) return Error{ErrorCode::kCorruptInput, fmt::format("{}: ends at byte {}", path, offset), ""};
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
  return {};
}

float widen_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// 1 sign, 5 exponent (bias 15), 10 mantissa bits.
float widen_f16(std::uint16_t bits) {
  const std::uint32_t exponent = bits >> 10 & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1.0p-24F;
  const std::uint32_t wide = (exponent == 0x1F ? 0xFFU : exponent + 112) << 23 | mantissa << 13;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return sign * value;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block here
  if (file.fd_ < 0) return base::errno_error(ErrorCode::kNotFound, path, errno);
  struct stat status {};
  if (::fstat(file.fd_, &status) != 0) return base::errno_error(ErrorCode::kIo, path, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kCorruptInput, path + ": not a regular file", ""};
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (file_bytes < 8) return Error{ErrorCode::kCorruptInput, path + ": shorter than the 8 bytes of header length", ""};
  std::uint64_t header_bytes = 0;  // little-endian, as this machine
  LLMPROF_TRY(read_at(file.fd_, 0, &header_bytes, sizeof(header_bytes), path));
  if (header_bytes < 2 || header_bytes > kMostHeaderBytes) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: header length {} is not between 2 and {}", path, header_bytes, kMostHeaderBytes),
                 "is this a safetensors file?"};
  }
  if (header_bytes > file_bytes - 8) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: header length {} exceeds the file", path, header_bytes),
                 ""};
  }
  std::string header(header_bytes, '\0');
  LLMPROF_TRY(read_at(file.fd_, 8, header.data(), header_bytes, path));
  file.data_offset_ = 8 + header_bytes;
  LLMPROF_LET(file.entries_, parse_safetensors_header(header, file_bytes - file.data_offset_, path));
  return file;
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_offset_(other.data_offset_),
      entries_(std::move(other.entries_)) {}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) ::close(fd_);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found != entries_.end() ? &*found : nullptr;
}

Result<void> SafetensorsFile::read(const SafetensorsEntry& entry, float* out) const {
  const std::uint64_t bytes = entry.end - entry.begin;
  if (entry.type == "F32") return read_at(fd_, data_offset_ + entry.begin, out, bytes, path_);
  const bool bf16 = entry.type == "BF16";
  if (!bf16 && entry.type != "F16") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: {}: type {} cannot be read as float", path_, entry.name, entry.type),
                 "F32, F16 and BF16 can"};
  }
  std::vector<std::uint16_t> half(bytes / 2);
  LLMPROF_TRY(read_at(fd_, data_offset_ + entry.begin, half.data(), bytes, path_));
  std::transform(half.begin(), half.end(), out, bf16 ? widen_bf16 : widen_f16);
  return {};
}

}  // namespace llmprof::workload

#include "host/host_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "wire/clock.h"

namespace llmprof::host {
namespace {

constexpr std::size_t kSectionRecords = 512;

bool write_all(int descriptor, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

HostLog::HostLog(int descriptor)
    : descriptor_(descriptor),
      memory_(sizeof(wire::BlockHeader) + wire::kMaxPayloadBytes),
      block_(memory_.data(), memory_.size()) {}

HostLog::HostLog(HostLog&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::move(other.memory_)),
      block_(other.block_),  // points into memory_, which moved as a whole
      pending_(std::move(other.pending_)),
      names_(std::move(other.names_)),
      sequence_(other.sequence_),
      bytes_(other.bytes_),
      failed_(other.failed_) {}

HostLog::~HostLog() {
  if (descriptor_ < 0) return;
  (void)flush();  // nobody is left to tell
  ::close(descriptor_);
}

Result<HostLog> HostLog::create(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return base::errno_error(ErrorCode::kIo, path, errno);
  HostLog log(descriptor);
  wire::FileHeader header{};
  header.pid = static_cast<std::uint64_t>(::getpid());
  header.raw_ns = wire::now_ns();
  header.wall_ns = wire::read_clock_ns(CLOCK_REALTIME);
  wire::seal_file_header(&header);
  if (!write_all(descriptor, &header, sizeof header)) return base::errno_error(ErrorCode::kIo, path, errno);
  log.bytes_ = sizeof header;
  return log;
}

wire::StringId HostLog::name(std::string_view text) {
  text = text.substr(0, wire::kMaxNameBytes);
  if (text.empty()) return 0;
  const auto found = names_.find(text);
  if (found != names_.end()) return found->second;
  const auto id = static_cast<wire::StringId>(names_.size() + 1);
  make_room(wire::string_bound(text.size()));
  block_.add_string(id, text.data(), text.size());
  names_.emplace(text, id);
  return id;
}

wire::Record& HostLog::add(wire::RecordKind kind) {
  if (!pending_.empty() && (pending_.front().kind != kind || pending_.size() == kSectionRecords)) add_pending();
  return pending_.emplace_back(wire::blank(kind));
}

void HostLog::add_pending() {
  if (pending_.empty()) return;
  const wire::RecordKind kind = pending_.front().kind;
  std::vector<const wire::Record*> pointers;
  pointers.reserve(pending_.size());
  for (const wire::Record& record : pending_) pointers.push_back(&record);
  make_room(wire::section_bound(kind, pointers.size()));
  block_.add_records(kind, 0, pointers.data(), pointers.size());
  pending_.clear();
}

// Names are defined as they are met and records wait in pending_, so a definition always stands before its use.
void HostLog::make_room(std::size_t bytes) {
  if (block_.room() >= bytes || block_.empty()) return;
  block_.finish(sequence_++);
  if (descriptor_ < 0) return block_.clear();
  if (!failed_ && write_all(descriptor_, block_.data(), block_.size())) {
    bytes_ += block_.size();
  } else {
    failed_ = true;
  }
  block_.clear();
}

Result<void> HostLog::flush() {
  add_pending();
  make_room(wire::kMaxPayloadBytes + 1);
  if (failed_) return Error{ErrorCode::kIo, "the recorder's log could not be written", "free disk space"};
  return {};
}

}  // namespace llmprof::host

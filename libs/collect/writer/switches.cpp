#include "collect/writer/switches.h"

#include <fcntl.h>
#include <unistd.h>

#include "collect/os.h"
#include "collect/state.h"

namespace llmprof::collect {
namespace {

constexpr char kFile[] = "/control";

// Times with the switch in their lowest bit; 0 is a slot that is being written.
constexpr std::uint32_t kSlots = 256;
constinit std::atomic<std::uint64_t> slots[kSlots]{};
constinit std::atomic<std::uint32_t> noted{0};
constinit std::uint32_t seen = 0;  // writer only; a forked child goes on from here

// Opened for each look: a program may close descriptors that are not its own.
std::uint64_t read_from(std::uint64_t offset, char* out, std::uint64_t capacity) {
  char path[kMaxFolderBytes + sizeof(kFile)];
  const std::size_t length = strlen(g.settings.folder);
  memcpy(path, g.settings.folder, length);
  memcpy(path + length, kFile, sizeof(kFile));
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return 0;
  const ssize_t count = pread(file, out, capacity, static_cast<off_t>(offset));
  close(file);
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

}  // namespace

void note_switch(bool on) {
  const std::uint64_t value = (now_ns() & ~1ull) | (on ? 1 : 0);
  slots[noted.fetch_add(1, std::memory_order_acq_rel) % kSlots].store(value, std::memory_order_release);
}

bool Switches::next_of_program(Switch* out) {
  if (seen == noted.load(std::memory_order_acquire)) return false;
  const std::uint64_t value = slots[seen % kSlots].exchange(0, std::memory_order_acq_rel);
  if (value == 0) return false;  // next time
  ++seen;
  *out = {value & ~1ull, (value & 1) != 0};
  return true;
}

void Switches::refill() {
  at_ = size_ = 0;
  if (g.settings.control != 0) size_ = read_from(offset_, buffer_, sizeof(buffer_));
}

bool Switches::next_of_file(Switch* out) {
  while (at_ < size_) {
    const void* end = memchr(buffer_ + at_, '\n', size_ - at_);
    if (end == nullptr) {
      if (size_ - at_ == sizeof(buffer_)) offset_ += sizeof(buffer_);  // no line is so long
      return false;
    }
    const std::uint64_t length = static_cast<std::uint64_t>(static_cast<const char*>(end) - (buffer_ + at_));
    const bool good = parse_switch(buffer_ + at_, length, out);
    at_ += length + 1;
    offset_ += length + 1;
    if (good) return true;
  }
  return false;
}

}  // namespace llmprof::collect

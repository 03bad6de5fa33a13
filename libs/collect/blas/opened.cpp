#include "collect/blas/opened.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/undisturbed.h"

namespace llmprof::collect::blas {

constinit std::atomic<std::uint32_t> opened_waiting{0};

namespace {

constexpr std::size_t kPathBytes = 512;  // longer ones are left out
constexpr std::size_t kSlots = 16;       // so are further ones
constexpr std::size_t kWeightSlots = 4;  // shards come in hundreds: they must not take the room of configs

enum State : std::uint32_t { kFree, kWriting, kReady, kHandedOver };

struct Slot {
  std::atomic<std::uint32_t> state{kFree};
  char path[kPathBytes] = {};
};
constinit Slot slots[kSlots];

bool ends_with(const char* path, std::size_t length, const char* tail) {
  const std::size_t size = strlen(tail);
  return length >= size && memcmp(path + length - size, tail, size) == 0;
}

// How many slots may be used for it; 0: not a file of a model. The last letter settles nearly every path.
std::size_t slots_for(const char* path, std::size_t length) {
  switch (path[length - 1]) {
    case 'n':
      return ends_with(path, length, "/config.json") || strcmp(path, "config.json") == 0 ||
                     ends_with(path, length, ".safetensors.index.json")
                 ? kSlots
                 : 0;
    case 'f':
      return ends_with(path, length, ".gguf") ? kSlots : 0;
    case 's':
      return ends_with(path, length, ".safetensors") ? kWeightSlots : 0;
    default:
      return 0;
  }
}

// The path as seen from the root folder. False: it does not fit.
bool put_absolute(const char* path, std::size_t length, char* out) {
  std::size_t used = 0;
  if (path[0] != '/') {
    const long size = syscall(SYS_getcwd, out, kPathBytes);  // with its final zero
    if (size <= 1 || out[0] != '/') return false;
    used = static_cast<std::size_t>(size) - 1;
    if (used > 1) out[used++] = '/';
  }
  if (used + length + 1 > kPathBytes) return false;
  memcpy(out + used, path, length + 1);
  return true;
}

bool is_known(const char* path) {
  for (const Slot& slot : slots) {
    if (slot.state.load(std::memory_order_acquire) >= kReady && strcmp(slot.path, path) == 0) return true;
  }
  return false;
}

// From any thread, from a signal handler, before the first constructor: no lock, no allocation, errno kept.
[[gnu::noinline]] void keep(const char* path, std::size_t length, std::size_t room) {
  const KeepErrno keep_errno;
  for (std::size_t i = 0; i < room; ++i) {
    std::uint32_t expected = kFree;
    if (!slots[i].state.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) continue;
    const bool fresh = put_absolute(path, length, slots[i].path) && !is_known(slots[i].path);
    slots[i].state.store(fresh ? kReady : kFree, std::memory_order_release);
    if (fresh) opened_waiting.fetch_add(1, std::memory_order_release);
    return;
  }
}

}  // namespace

void note_opened(const char* path);
void note_opened(const char* path) {
  const std::size_t length = strnlen(path, kPathBytes);
  if (length == 0 || length == kPathBytes) return;
  if (const std::size_t room = slots_for(path, length); room > 0) keep(path, length, room);
}

void hand_over_opened(const llmprof_collector_table* table) {
  opened_waiting.store(0, std::memory_order_relaxed);
  for (Slot& slot : slots) {
    std::uint32_t expected = kReady;
    if (slot.state.compare_exchange_strong(expected, kHandedOver, std::memory_order_acq_rel))
      table->note_library(slot.path, wire::kLibraryIsModelFile);
  }
}

}  // namespace llmprof::collect::blas

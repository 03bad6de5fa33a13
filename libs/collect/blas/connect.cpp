#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/blas/call.h"
#include "collect/images.h"
#include "collect/os.h"

namespace llmprof::collect::blas {

constinit Connection connection;

namespace {

constexpr char kCollectorFile[] = "libllmprof_inject.so";

bool put_collector_path(char* out, std::size_t capacity) {
  const char* self = own_path();
  const char* slash = self != nullptr ? strrchr(self, '/') : nullptr;
  if (slash == nullptr) return false;
  const auto folder = static_cast<std::size_t>(slash + 1 - self);
  if (folder + sizeof(kCollectorFile) > capacity) return false;
  memcpy(out, self, folder);
  memcpy(out + folder, kCollectorFile, sizeof(kCollectorFile));
  return true;
}

const llmprof_collector_table* load_collector() {
  if (secure_getenv("LLMPROF_CAPTURE_DIR") == nullptr) return nullptr;
  // Not on the stack: the first BLAS call may come from a thread with very little of it.
  char* path = static_cast<char*>(map_memory(PATH_MAX));
  if (path == nullptr) return nullptr;
  void* handle = put_collector_path(path, PATH_MAX) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  munmap(path, PATH_MAX);
  if (handle == nullptr) return nullptr;
  const auto entry = reinterpret_cast<decltype(&llmprof_collector_v1)>(dlsym(handle, "llmprof_collector_v1"));
  const llmprof_collector_table* table = entry != nullptr ? entry() : nullptr;
  const bool usable =
      table != nullptr && table->version == 1 && table->size >= offsetof(llmprof_collector_table, python_begin);
  return usable ? table : nullptr;
}

// A process that made no hooked call may still hold a BLAS that was called behind our back. Say so in a log; a process
// without any BLAS (nearly all) costs one walk over its libraries and leaves nothing.
// The collector, once started, makes the search itself before it ends.
[[gnu::destructor]] void at_exit() {
  if (connection.link.load(std::memory_order_acquire) != Link::kUndecided) return;
  if (secure_getenv("LLMPROF_CAPTURE_DIR") == nullptr) return;
  bool found = false;
  with_images([&](ImageList list) {
    find_unhooked_blas(list, [](const char*) { return false; });
    for (std::size_t i = 0; i < list.count; ++i) found = found || list.images[i].unhooked;
  });
  if (!found) return;
  const llmprof_collector_table* table = load_collector();
  if (table == nullptr) return;
  table->start();
  table->end();
}

Link finish_connecting() {
  const Undisturbed undisturbed;
  connection.table = load_collector();
  if (connection.table != nullptr) hand_over_opened(connection.table);
  const Link link = connection.table != nullptr ? Link::kOn : Link::kOff;
  connection.link.store(link, std::memory_order_release);
  futex_wake(connection.link);
  return link;
}

}  // namespace

Link connect() {
  const KeepErrno keep;
  Link expected = Link::kUndecided;
  if (connection.link.compare_exchange_strong(expected, Link::kConnecting, std::memory_order_acq_rel)) {
    connection.pid.store(getpid(), std::memory_order_release);
    return finish_connecting();
  }
  // Another thread is at it: it may hold the loader's lock, or wait for who holds it, so not for ever. And not again.
  constexpr std::uint64_t kLimitMs = 100;
  for (int i = 0; i < 20 && expected == Link::kConnecting; ++i) {
    std::int32_t pid = connection.pid.load(std::memory_order_acquire);
    const bool lost_in_fork = pid != 0 && pid != getpid();
    if (lost_in_fork && connection.pid.compare_exchange_strong(pid, getpid())) return finish_connecting();
    futex_wait(connection.link, Link::kConnecting, kLimitMs);
    expected = connection.link.load(std::memory_order_acquire);
  }
  if (expected == Link::kConnecting && connection.link.compare_exchange_strong(expected, Link::kOff)) return Link::kOff;
  return expected;
}

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

__thread std::uintptr_t outer_frame;

void name_site(const llmprof_collector_table* table, Site* site) {
  site->function_id.store(table->intern(name_of(site->function)), std::memory_order_relaxed);
  table->note_library(site->library, 1);
  site->library_id.store(table->intern(site->library), std::memory_order_release);
}

}  // namespace llmprof::collect::blas

#include "collect/blas/connect.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/blas/opened.h"
#include "collect/blas/resolve.h"
#include "collect/futex.h"
#include "collect/undisturbed.h"
#include "collect/unhooked.h"

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
  void* memory = mmap(nullptr, PATH_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* path = static_cast<char*>(memory);
  void* handle = put_collector_path(path, PATH_MAX) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  munmap(memory, PATH_MAX);
  if (handle == nullptr) return nullptr;
  const auto entry = reinterpret_cast<decltype(&llmprof_collector_v1)>(dlsym(handle, "llmprof_collector_v1"));
  const llmprof_collector_table* table = entry != nullptr ? entry() : nullptr;
  const bool usable =
      table != nullptr && table->version == 1 && table->size >= offsetof(llmprof_collector_table, python_begin);
  return usable ? table : nullptr;
}

// A process that made no hooked call may still hold a BLAS that was called behind our back. Say so in a log; a process
// without any BLAS (nearly all) costs one walk over its libraries and leaves nothing.
bool no_provider(void*, const char*) { return false; }

void note_any(void* context, const char*) { *static_cast<bool*>(context) = true; }

void search(void* context, ImageList list) { find_unhooked_blas(list, {no_provider, note_any, context}); }

// The collector, once started, makes the search itself before it ends.
[[gnu::destructor]] void at_exit() {
  if (connection.link.load(std::memory_order_acquire) != Link::kUndecided) return;
  if (secure_getenv("LLMPROF_CAPTURE_DIR") == nullptr) return;
  bool found = false;
  with_images(search, &found);
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

}  // namespace llmprof::collect::blas

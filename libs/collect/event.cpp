#include "collect/event.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/lifecycle.h"
#include "collect/list.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stress_point.h"
#include "collect/writer/output.h"

namespace llmprof::collect {
namespace {

// Reused elements first, so that memory which was never needed is never touched. -1: all are in use.
template <class Element>
std::int64_t take(std::atomic<std::uint64_t>& reused, std::atomic<std::uint32_t>& fresh, Element* array,
                  std::uint64_t limit) {
  const std::int64_t index = pop(reused, array);
  if (index >= 0) return index;
  if (fresh.load(std::memory_order_relaxed) >= limit) return -1;
  const std::uint32_t next = fresh.fetch_add(1, std::memory_order_relaxed);
  if (next < limit) return next;
  fresh.store(static_cast<std::uint32_t>(limit), std::memory_order_relaxed);  // a race went past the end
  return -1;
}

// Full chunks that wake the writer before its time: few enough that the buffers in use stay in the cache and fresh
// pages are seldom touched (1 MiB), and never so many that the pool could run dry.
std::uint32_t wake_at() {
  constexpr std::uint64_t kChunksInCache = 512;
  const std::uint64_t quarter = (g.settings.pool_chunks + 3) / 4;
  return static_cast<std::uint32_t>(quarter < kChunksInCache ? quarter : kChunksInCache);
}

void hand_over(Thread* thread) {
  if (thread->records == nullptr) return;
  Shared* shared = g.shared.load(std::memory_order_relaxed);
  const auto index = static_cast<std::uint32_t>(thread->chunk - shared->chunks);
  thread->current.store(0, std::memory_order_release);
  stress_point();
  thread->records = nullptr;
  thread->chunk = nullptr;
  push_full(g.lists.full_chunks, shared->chunks, index);
  const std::uint32_t waiting = g.lists.full_count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (waiting == wake_at()) wake_writer();
}

// The first record of a thread says which one it is. It is made with the first buffer, so that it is never among the
// dropped ones: what is counted as dropped are the program's own events.
void introduce(Thread* thread) {
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  thread->introduced = true;
  wire::Record* record = &thread->records[thread->used];
  record->kind = wire::RecordKind::kThread;
  record->thread = {now_ns(), thread->tid, intern(name), 0};
  commit(thread);
}

}  // namespace

bool next_chunk(Thread* thread) {
  const KeepErrno keep;
  hand_over(thread);
  Shared* shared = g.shared.load(std::memory_order_relaxed);
  const std::int64_t index = take(g.lists.free_chunks, g.lists.fresh_chunks, shared->chunks, g.settings.pool_chunks);
  if (index < 0) {
    ++thread->dropped;
    count_loss(wire::LossKind::kBufferFull);
    return false;
  }
  Chunk& chunk = shared->chunks[index];
  chunk.thread = thread->number;
  chunk.tid = thread->tid;
  chunk.slot = static_cast<std::uint32_t>(thread - shared->threads);
  thread->chunk = &chunk;
  thread->records = shared->records[index];
  thread->used = 0;
  thread->current.store(static_cast<std::uint32_t>(index) + 1, std::memory_order_release);
  if (!thread->introduced) introduce(thread);
  return true;
}

Thread* attach() {
  const KeepErrno keep;
  start_now();
  if (g.phase.load(std::memory_order_acquire) != Phase::kRunning) {
    count_dropped(1);
    return nullptr;
  }
  Shared* shared = g.shared.load(std::memory_order_relaxed);
  const std::int64_t index = take(g.lists.free_threads, g.lists.fresh_threads, shared->threads, kMaxThreads);
  if (index < 0) {
    count_loss(wire::LossKind::kThreadTableFull);
    return nullptr;
  }
  Thread* thread = &shared->threads[index];
  memset(thread->level, 0, sizeof(thread->level));
  thread->number = tl.is_ours ? 0 : g.lists.thread_numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  thread->tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  thread->ranges_started = 0;
  thread->dropped = 0;
  thread->introduced = tl.is_ours;
  thread->state.store(SlotState::kLive, std::memory_order_release);
  tl.thread = thread;
  tl.generation = g.generation.load(std::memory_order_relaxed);
  pthread_setspecific(g.key, thread);
  return thread;
}

void on_thread_exit(void*) {
  // The value may be from before a fork; the thread-local state knows.
  if (tl.thread == nullptr || tl.generation != g.generation.load(std::memory_order_relaxed)) return;
  Thread* thread = tl.thread;
  tl.thread = nullptr;
  tl.generation = 0;
  hand_over(thread);
  thread->state.store(SlotState::kExited, std::memory_order_release);
}

void free_thread(std::uint32_t index) {
  Shared* shared = g.shared.load(std::memory_order_relaxed);
  shared->threads[index].state.store(SlotState::kFree, std::memory_order_relaxed);
  push(g.lists.free_threads, shared->threads, index);
}

void wake_writer() {
  const KeepErrno keep;
  g.wake.store(1, std::memory_order_release);
  futex_wake(g.wake);
}

}  // namespace llmprof::collect

#include "collect/lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/event.h"
#include "collect/list.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stress_point.h"
#include "collect/writer/log_file.h"
#include "collect/writer/output.h"

namespace llmprof::collect {

constinit Collector g;
__thread ThreadLocal tl;

namespace {

constexpr std::uint64_t kExitLimitMs = 2000;
constexpr std::uint64_t kLeaveLimitMs = 500;
constexpr std::uint64_t kFlushLimitMs = 200;
constexpr std::uint64_t kStartLimitMs = 2000;  // a start takes a millisecond

// In the child only flags change: other threads of the parent may have been anywhere. The mapping, the log and the
// writer of the parent are abandoned; the child's first own event builds new ones.
void in_forked_child() {
  const Phase phase = g.phase.load(std::memory_order_relaxed);
  g.live.store(kNotLive, std::memory_order_relaxed);
  counters::disarm(counters::kAnything);
  g.shared_lock.store(0, std::memory_order_relaxed);
  g.pid.store(0, std::memory_order_relaxed);
  if (phase == Phase::kOff || phase == Phase::kUnread) return;
  g.forked = 1;
  g.drop_reason.store(0, std::memory_order_relaxed);
  g.phase.store(Phase::kCold, std::memory_order_relaxed);
  tl.inside = 0;  // fork() inside an event is possible in a signal handler only; the child starts clean
}

bool not_mapped(int error, const char* what) {
  note_off(error, what);
  return false;
}

bool map_shared() {
  void* memory = map_memory(sizeof(Shared));
  if (memory == nullptr) return not_mapped(errno, "memory");
  prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, sizeof(Shared), "llmprof");  // shown in /proc/self/maps; may fail
  // A child drops the buffers anyway: a fork need not copy them, nor slow down the threads that fill them.
  madvise(memory, offsetof(Shared, strings), MADV_WIPEONFORK);
  Shared* shared = static_cast<Shared*>(memory);
  if (shared->strings.intern("<other>", 7) != kOtherName) return false;
  if (const int error = pthread_atfork(nullptr, nullptr, in_forked_child); error != 0) {
    return not_mapped(error, "fork handler");
  }
  pthread_key_t key;
  if (const int error = pthread_key_create(&key, on_thread_exit); error != 0) return not_mapped(error, "thread key");
  g.key = key;
  g.shared.store(shared, std::memory_order_release);
  return true;
}

// What a forked child inherited: drop it without touching the parent's copy.
void abandon_inherited(Shared* shared) {
  madvise(shared, offsetof(Shared, strings), MADV_DONTNEED);
  close_inherited_log();
  for (auto& count : g.lost) count.store(0, std::memory_order_relaxed);
  __builtin_memset(static_cast<void*>(&g.lists), 0, sizeof(g.lists));
  g.stop.store(0, std::memory_order_relaxed);
  g.done.store(0, std::memory_order_relaxed);
  g.wake.store(0, std::memory_order_relaxed);
  g.flushes_made.store(g.flushes_wanted.load(std::memory_order_relaxed), std::memory_order_relaxed);
  g.forked = 0;
}

// The reason is in errno.
Phase off(const char* what) {
  note_off(errno, what);
  discard_log();
  return Phase::kOff;
}

// Runs on one thread, phase kStarting.
Phase start() {
  Shared* shared = shared_memory();
  if (shared == nullptr) return Phase::kOff;
  const bool child = g.forked != 0;
  if (child) abandon_inherited(shared);
  g.generation.fetch_add(1, std::memory_order_relaxed);
  if (!open_log()) return off("log");
  if (!start_writer()) return off("thread");
  if (child && g.cuda_seen.load(std::memory_order_relaxed) != 0) {
    g.drop_reason.store(static_cast<std::uint32_t>(wire::LossKind::kForkedAfterCuda), std::memory_order_relaxed);
    return Phase::kDropping;
  }
  g.live.store(g.generation.load(std::memory_order_relaxed), std::memory_order_release);
  return Phase::kRunning;
}

// Takes `word` over from a holder that is not of this process: it was lost in a fork.
bool take_over(std::atomic<std::int32_t>& word) {
  std::int32_t holder = word.load(std::memory_order_acquire);
  const std::int32_t self = getpid();
  return holder != 0 && holder != self && word.compare_exchange_strong(holder, self, std::memory_order_acq_rel);
}

// What two threads must not do at once while recording begins. The word is the pid of the holder. Waiters sleep:
// thousands of threads may begin together, and the one that holds the lock needs the processor.
class StartLock {
 public:
  StartLock() {
    const std::uint64_t give_up_ns = now_ns() + kStartLimitMs * 1000000;
    std::int32_t holder = 0;
    while (!g.shared_lock.compare_exchange_strong(holder, getpid(), std::memory_order_acquire)) {
      if (take_over(g.shared_lock)) break;
      if (now_ns() > give_up_ns) return;
      futex_wait(g.shared_lock, holder, kStartLimitMs);
      holder = 0;
    }
    held_ = true;
  }
  ~StartLock() {
    if (!held_) {
      give_up();
      return;
    }
    g.shared_lock.store(0, std::memory_order_release);
    futex_wake(g.shared_lock);
  }
  StartLock(const StartLock&) = delete;
  StartLock& operator=(const StartLock&) = delete;
  bool held() const { return held_; }

 private:
  // The program waits once, not at every event.
  static void give_up() {
    for (Phase phase : {Phase::kUnread, Phase::kCold}) {
      g.phase.compare_exchange_strong(phase, Phase::kOff, std::memory_order_acq_rel);
    }
  }
  bool held_ = false;
};

void finish_start() {
  g.phase.store(start(), std::memory_order_release);
  futex_wake(g.phase);
}

// Another thread is starting. Asleep and not polling: thousands of threads may begin at once.
void await_start() {
  const std::uint64_t give_up_ns = now_ns() + kStartLimitMs * 1000000;
  while (g.phase.load(std::memory_order_acquire) == Phase::kStarting && now_ns() < give_up_ns) {
    if (take_over(g.pid)) {  // forked before our fork handler was there
      g.forked = 1;
      return finish_start();
    }
    futex_wait(g.phase, Phase::kStarting, kStartLimitMs);
  }
  Phase starting = Phase::kStarting;  // one that is late will still begin; until then nobody waits again
  g.phase.compare_exchange_strong(starting, Phase::kOff, std::memory_order_acq_rel);
}

}  // namespace

bool enabled() {
  if (g.phase.load(std::memory_order_acquire) == Phase::kUnread) {
    const Undisturbed undisturbed;
    const StartLock lock;
    if (!lock.held()) return false;
    if (g.phase.load(std::memory_order_relaxed) == Phase::kUnread) {
      g.phase.store(read_settings(&g.settings) ? Phase::kCold : Phase::kOff, std::memory_order_release);
    }
  }
  return g.phase.load(std::memory_order_acquire) != Phase::kOff;
}

Shared* shared_memory() {
  Shared* shared = g.shared.load(std::memory_order_acquire);
  if (shared != nullptr || !enabled()) return shared;
  const Undisturbed undisturbed;
  const StartLock lock;
  if (lock.held() && g.shared.load(std::memory_order_relaxed) == nullptr && !map_shared()) g.phase.store(Phase::kOff);
  return g.shared.load(std::memory_order_acquire);
}

void start_now() {
  if (!enabled()) return;
  const Phase phase = g.phase.load(std::memory_order_acquire);
  if (phase != Phase::kCold && phase != Phase::kStarting) return;  // events that are dropped cost no system call
  const Undisturbed undisturbed;
  Phase expected = Phase::kCold;
  if (!g.phase.compare_exchange_strong(expected, Phase::kStarting, std::memory_order_acq_rel)) return await_start();
  g.pid.store(getpid(), std::memory_order_release);
  finish_start();
}

void stop_recording(wire::LossKind reason) {
  g.drop_reason.store(static_cast<std::uint32_t>(reason), std::memory_order_relaxed);
  g.live.store(kNotLive, std::memory_order_relaxed);
  Phase running = Phase::kRunning;
  g.phase.compare_exchange_strong(running, Phase::kDropping, std::memory_order_acq_rel);
}

namespace {

// The writer may live in a parent: of a child that was forked without handlers, or that still has its parent's memory.
bool is_recorded_here() {
  const Phase phase = g.phase.load(std::memory_order_acquire);
  return (phase == Phase::kRunning || phase == Phase::kDropping) && g.pid.load(std::memory_order_relaxed) == getpid();
}

void end_within(std::uint64_t limit_ms) {
  const KeepErrno keep;
  if (!is_recorded_here()) return;
  std::uint32_t none = 0;
  g.drop_reason.compare_exchange_strong(none, static_cast<std::uint32_t>(wire::LossKind::kAfterExit));
  g.live.store(kNotLive, std::memory_order_relaxed);
  g.phase.store(Phase::kEnded, std::memory_order_release);
  g.stop.store(1, std::memory_order_release);
  wake_writer();
  const std::uint64_t give_up_ns = now_ns() + limit_ms * 1000000 - g.exit_waited_ns.load(std::memory_order_relaxed);
  while (g.done.load(std::memory_order_acquire) == 0 && now_ns() < give_up_ns) futex_wait(g.done, 0, 50);
}

}  // namespace

void end_recording() { end_within(kExitLimitMs); }

void flush_recording() {
  const KeepErrno keep;
  if (!is_recorded_here()) return;
  const std::uint32_t wanted = g.flushes_wanted.fetch_add(1, std::memory_order_acq_rel) + 1;
  wake_writer();
  const std::uint64_t give_up_ns = now_ns() + kFlushLimitMs * 1000000;
  for (;;) {
    const std::uint32_t made = g.flushes_made.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(made - wanted) >= 0 || now_ns() >= give_up_ns) return;
    futex_wait(g.flushes_made, made, 10);
  }
}

void leave_recording() {
  if (g.cuda_seen.load(std::memory_order_relaxed) != 0) return flush_recording();
  end_within(kLeaveLimitMs);
}

namespace {

// Runs in exit() with the destructors of shared objects; _exit, signals and exec skip it, and nothing depends on it.
[[gnu::destructor]] void at_exit() { end_recording(); }

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

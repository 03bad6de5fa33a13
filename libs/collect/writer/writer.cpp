#include "collect/lifecycle.h"

#include <string.h>
#include <cstdint>

#include "collect/cuda/activity.h"
#include "collect/event.h"
#include "collect/images.h"
#include "collect/list.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/stress_point.h"
#include "collect/writer/log_file.h"
#include "collect/writer/output.h"

namespace llmprof::collect {

namespace {

constexpr std::size_t kStackBytes = 256u << 10;  // the C library puts the program's static thread-local data there too
constexpr std::uint64_t kClockSyncEveryNs = 1000000000;
constexpr std::uint32_t kReturnedTogether = 8;
constexpr std::uint64_t kFirstWaitMs = 1;  // then twice as long each time, up to the setting: workers may die young

// Drains every buffer. The order keeps the records of a thread in the order it made them: what each thread is filling
// is noted first, then the full chunks (which hold everything older) are encoded, then what was noted.
class Drain {
 public:
  Drain(Shared* shared, Output* output) : shared_(shared), output_(output) {}

  void run() {
    const std::uint32_t threads = used_slots();
    ++pass_;
    for (std::uint32_t i = 0; i < threads; ++i) note(shared_->threads[i]);
    stress_point();
    g.lists.full_count.store(0, std::memory_order_relaxed);
    std::uint32_t at = take_all(g.lists.full_chunks, shared_->chunks);
    output_->read_switches();
    if (output_->watches()) watch(at, threads);
    while (at != 0) {
      const std::uint32_t next = shared_->chunks[at - 1].next.load(std::memory_order_relaxed);
      encode(at - 1, shared_->chunks[at - 1].committed.load(std::memory_order_acquire));
      shared_->chunks[at - 1].watched = 0;
      give_back(at - 1);
      at = next;
    }
    flush_returned();
    stress_point();
    for (std::uint32_t i = 0; i < threads; ++i) finish(i);
    output_->drained(threads);
  }

 private:
  static std::uint32_t used_slots() {
    const std::uint32_t used = g.lists.fresh_threads.load(std::memory_order_acquire);
    return used < kMaxThreads ? used : kMaxThreads;
  }

  void note(Thread& thread) {
    thread.seen_state = thread.state.load(std::memory_order_acquire);
    thread.seen_chunk = thread.current.load(std::memory_order_acquire);
    thread.seen_records = 0;
    if (thread.seen_chunk == 0) return;
    thread.seen_records = shared_->chunks[thread.seen_chunk - 1].committed.load(std::memory_order_acquire);
  }

  // Shows what will be encoded now, in the same order. A chunk that turns out to be handed over in the meantime is
  // encoded next time, but not shown again.
  void watch(std::uint32_t full, std::uint32_t threads) {
    for (; full != 0; full = shared_->chunks[full - 1].next.load(std::memory_order_relaxed))
      watch_chunk(full - 1, shared_->chunks[full - 1].committed.load(std::memory_order_acquire));
    for (std::uint32_t i = 0; i < threads; ++i) {
      const Thread& thread = shared_->threads[i];
      if (thread.seen_chunk != 0) watch_chunk(thread.seen_chunk - 1, thread.seen_records);
    }
  }

  void watch_chunk(std::uint32_t index, std::uint32_t end) {
    Chunk& chunk = shared_->chunks[index];
    const std::uint32_t begin = chunk.watched > chunk.drained ? chunk.watched : chunk.drained;
    if (end <= begin) return;
    output_->watch(shared_->records[index] + begin, end - begin, source_of(chunk));
    chunk.watched = end;
  }

  static Source source_of(const Chunk& chunk) { return {chunk.slot, chunk.thread, chunk.tid}; }

  void finish(std::uint32_t slot) {
    Thread& thread = shared_->threads[slot];
    if (thread.seen_chunk != 0) encode_live(thread);
    if (thread.seen_state != SlotState::kExited) return;
    if (thread.number != 0) output_->thread_ended({slot, thread.number, thread.tid});
    free_thread(slot);
  }

  // The chunk may have been handed over since it was noted; then it was freed above, or it will be next time. It may
  // even have come back to the same thread: what was noted of it no longer holds then.
  void encode_live(const Thread& thread) {
    const std::uint32_t index = thread.seen_chunk - 1;
    if (thread.current.load(std::memory_order_acquire) != thread.seen_chunk) return;
    if (shared_->chunks[index].freed_in == pass_) return;
    encode(index, thread.seen_records);
  }

  // Some at a time: every return of a chunk takes the list's cache line away from the threads.
  void give_back(std::uint32_t index) {
    Chunk& chunk = shared_->chunks[index];
    chunk.freed_in = pass_;
    chunk.drained = 0;
    chunk.committed.store(0, std::memory_order_relaxed);
    if (returned_ == 0) last_returned_ = index;
    chunk.next.store(returned_ == 0 ? 0 : first_returned_ + 1, std::memory_order_relaxed);
    first_returned_ = index;
    if (++returned_ == kReturnedTogether) flush_returned();
  }
  void flush_returned() {
    if (returned_ != 0) push_chain(g.lists.free_chunks, shared_->chunks, first_returned_, last_returned_);
    returned_ = 0;
  }

  void encode(std::uint32_t index, std::uint32_t end) {
    Chunk& chunk = shared_->chunks[index];
    if (end <= chunk.drained) return;
    output_->records(shared_->records[index] + chunk.drained, end - chunk.drained, source_of(chunk));
    chunk.drained = end;
  }

  Shared* shared_;
  Output* output_;
  std::uint32_t pass_ = 0;
  std::uint32_t returned_ = 0, first_returned_ = 0, last_returned_ = 0;
};

bool is_provider(const char* path) {
  Shared* shared = g.shared.load(std::memory_order_acquire);
  for (const Library& library : shared->libraries) {
    const wire::StringId id = library.path.load(std::memory_order_acquire);
    if (id == 0) return false;
    if (library.hooked.load(std::memory_order_acquire) != 0 && strcmp(shared->strings.text(id), path) == 0) return true;
  }
  return false;
}

// The search for BLAS libraries that are not hooked: once a second when objects were loaded since, and at the end. A
// library must be found twice (or at the end), because a program may be about to load what uses it.
class BlasScan {
 public:
  void run(bool final) {
    const ObjectCounts counts = count_objects();
    const bool changed = counts.loaded + counts.unloaded != objects_;
    if (!changed && !look_again_ && !final) return;
    const bool report = final || (look_again_ && !changed);
    bool found = false;
    with_images([&](ImageList list) {
      find_unhooked_blas(list, is_provider);
      for (std::size_t i = 0; i < list.count; ++i) {
        if (!list.images[i].unhooked) continue;
        found = true;
        const char* path = list.images[i].path;
        if (report) define_library(intern(*path != '\0' ? path : "the program itself"), 0);
      }
    });
    objects_ = counts.loaded + counts.unloaded;
    look_again_ = found && !report;
  }

 private:
  std::uint64_t objects_ = 0;  // loaded and unloaded so far, at the last look
  bool look_again_ = false;
};

void* writer_main(void*) {
  name_own_thread("llmprof-writer");
  Shared* const shared = g.shared.load(std::memory_order_acquire);
  Output output(shared);
  Drain drain(shared, &output);
  GpuDrain gpu_drain(&output);
  BlasScan scan;
  output.process(false);
  output.flush(false);
  std::uint64_t next_sync_ns = 0;
  std::uint64_t wait_ms = kFirstWaitMs;
  std::uint32_t flushed = g.flushes_made.load(std::memory_order_relaxed);
  bool stopping = false;
  while (!stopping) {
    if (wait_ms > g.settings.flush_ms) wait_ms = g.settings.flush_ms;
    if (g.wake.exchange(0, std::memory_order_acquire) == 0) futex_wait(g.wake, 0, wait_ms);
    wait_ms *= 2;
    stopping = g.stop.load(std::memory_order_acquire) != 0;
    const std::uint32_t flush = g.flushes_wanted.load(std::memory_order_acquire);
    drain.run();
    gpu_drain.run();
    if (stopping || now_ns() >= next_sync_ns) {
      next_sync_ns = now_ns() + kClockSyncEveryNs;
      output.clock_sync();
      output.cost();
      scan.run(stopping);
    } else {
      output.cost_of_new();
    }
    output.rotate();
    output.flush(false);
    g.flushes_made.store(flush, std::memory_order_release);
    if (flush != flushed) futex_wake(g.flushes_made);
    flushed = flush;
  }
  output.finish();
  output.process(true);
  output.flush(true);
  close_log();
  g.done.store(1, std::memory_order_release);
  futex_wake(g.done);
  return nullptr;
}

}  // namespace

bool start_writer() { return start_own_thread(writer_main, kStackBytes); }

}  // namespace llmprof::collect

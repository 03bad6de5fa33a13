#pragma once
// The events of a thread: its slot, its buffers, and recording one event.

#include "collect/state.h"

namespace llmprof::collect {

// Recording one event, on the thread that raises it. No lock, no allocation, no system call but the first time:
//   if (Thread* thread = enter()) {
//     if (Record* record = reserve(thread)) { … fill …; commit(thread); }
//     leave();
//   }

// The slow paths.
Thread* attach();                 // first event of a thread, or after recording changed; null: drop, counted
bool next_chunk(Thread* thread);  // hands the full chunk over and takes another; false: none, counted
void wake_writer();

// Null: the event is not recorded (and is counted where that matters). Else leave() must follow.
inline Thread* enter() {
  if (tl.inside != 0) [[unlikely]] {  // a signal handler interrupted us on this thread
    count_loss(wire::LossKind::kReentered);
    return nullptr;
  }
  tl.inside = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (tl.generation == g.live.load(std::memory_order_relaxed)) [[likely]]
    return tl.thread;
  Thread* thread = attach();
  if (thread == nullptr) tl.inside = 0;
  return thread;
}

inline void leave() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  tl.inside = 0;
}

// The next record to fill, or null: no buffer is free and the record was counted as dropped.
inline wire::Record* reserve(Thread* thread) {
  if (thread->records == nullptr || thread->used == kChunkRecords) [[unlikely]] {
    if (!next_chunk(thread)) return nullptr;
  }
  return &thread->records[thread->used];
}

// The same, cleared: for records that do not set all their members, and are not the most frequent ones.
inline wire::Record* reserve(Thread* thread, wire::RecordKind kind) {
  wire::Record* record = reserve(thread);
  if (record != nullptr) clear(record, kind);
  return record;
}

inline void commit(Thread* thread) { thread->chunk->committed.store(++thread->used, std::memory_order_release); }

// One event as a whole: fill(record, thread) makes all of the record.
template <class Fill>
void record_event(Fill fill) {
  Thread* thread = enter();
  if (thread == nullptr) return;
  if (wire::Record* record = reserve(thread)) {
    fill(record, thread);
    commit(thread);
  }
  leave();
}
template <class Fill>
void record_event(wire::RecordKind kind, Fill fill) {
  record_event([&](wire::Record* record, Thread* thread) {
    clear(record, kind);
    fill(record, thread);
  });
}

// Slots of threads and the buffers they fill.

// Destructor of the thread-specific key: hands the last buffer over.
void on_thread_exit(void* thread);

// Gives back what the writer has finished with.
void free_thread(std::uint32_t index);

}  // namespace llmprof::collect

// Buffers of the fake CUPTI: one per thread that launches, asked for on that thread, given back full or by a flush.
#include "cupti_state.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <vector>

namespace fake {
namespace {

struct Buffer {
  std::uint8_t* memory = nullptr;
  std::size_t bytes = 0, used = 0;
  std::uint64_t done_ns = 0;  // when its last record is complete
  std::uint64_t records = 0;
  BufferCompleted completed = nullptr;  // of the client that lent it
  std::vector<std::size_t> offsets;
};

struct Late {
  std::uint64_t due_ns;
  Buffer buffer;
};

struct Buffers {
  std::set<std::uint8_t*> lent;
  std::vector<Buffer*> of_threads;  // being filled
  std::vector<Buffer> full;
  std::vector<Late> late;
  std::uint64_t completions = 0;
  bool has_worker = false;
  int worker_of = 0;  // pid
};

Buffers& buffers() {
  static auto* state = new Buffers;
  return *state;
}

thread_local Buffer* mine = nullptr;
alignas(8) std::uint8_t stray_memory[4096];
alignas(8) std::uint8_t thief_memory[1u << 16];

void thief_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = thief_memory;
  *bytes = sizeof(thief_memory);
  *max_records = 0;
}

void thief_completed(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {}

void shuffle(Buffer& buffer) {
  std::vector<std::uint8_t> copy(buffer.memory, buffer.memory + buffer.used);
  std::size_t at = 0, end = buffer.used;
  for (auto offset = buffer.offsets.rbegin(); offset != buffer.offsets.rend(); ++offset) {
    std::memcpy(buffer.memory + at, copy.data() + *offset, end - *offset);
    at += end - *offset;
    end = *offset;
  }
}

bool every(std::uint64_t n, std::uint64_t number) { return n != 0 && number % n == 0; }

// With the lock held.
void complete(Buffer& buffer) {
  Buffers& all = buffers();
  if (buffer.completed == thief_completed) {
    note(k_stolen_records, buffer.records);
    return;
  }
  const std::uint64_t number = ++all.completions;
  all.lent.erase(buffer.memory);
  note(k_buffers_returned);
  note(k_delivered_records, buffer.records);
  if (script().shuffle != 0) shuffle(buffer);
  const std::size_t valid = every(script().overlong, number) ? buffer.bytes + 4096 : buffer.used;
  if (valid > buffer.bytes) std::memset(buffer.memory + buffer.used, 0, buffer.bytes - buffer.used);
  buffer.completed(nullptr, 0, buffer.memory, buffer.bytes, valid);
  if (every(script().twice, number)) buffer.completed(nullptr, 0, buffer.memory, buffer.bytes, buffer.used);
  if (every(script().stray, number)) buffer.completed(nullptr, 0, stray_memory, sizeof(stray_memory), 512);
  if (every(script().empty, number)) buffer.completed(nullptr, 0, nullptr, 0, 0);
}

void give_back(Buffer& buffer) {
  if (script().late_ms != 0 && buffer.completed != thief_completed) {
    buffers().late.push_back({timestamp_ns() + script().late_ms * 1000000, buffer});
  } else {
    complete(buffer);
  }
}

void give_back_full(bool forced) {
  std::vector<Buffer> waiting;
  for (Buffer& buffer : buffers().full) {
    if (forced || (script().incomplete == 0 && buffer.done_ns <= timestamp_ns())) {
      give_back(buffer);
    } else {
      waiting.push_back(buffer);
    }
  }
  buffers().full.swap(waiting);
}

void* work(void*) {
  for (;;) {
    usleep(1000);
    const std::lock_guard hold(cupti().lock);
    if (script().keep == 0) give_back_full(false);
    std::vector<Late> waiting;
    waiting.swap(buffers().late);
    for (Late& late : waiting) {
      if (late.due_ns <= timestamp_ns()) {
        complete(late.buffer);
      } else {
        buffers().late.push_back(late);
      }
    }
  }
}

void start_worker() {
  if (buffers().has_worker && buffers().worker_of == getpid()) return;
  buffers().has_worker = true;
  buffers().worker_of = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, work, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void check_lent(const Buffer& buffer) {
  if (!buffers().lent.insert(buffer.memory).second) note(k_bad_buffer_twice);
  if (buffer.bytes < 1024 || reinterpret_cast<std::uintptr_t>(buffer.memory) % 8 != 0) note(k_bad_small_buffer);
  const std::size_t looked_at = buffer.bytes < 4096 ? buffer.bytes : 4096;
  for (std::size_t i = 0; i < looked_at; ++i) {
    if (buffer.memory[i] != 0) return note(k_bad_dirty_buffer);
  }
}

// Asks the client for a buffer. False: none, the record is lost.
bool ask(Buffer* buffer) {
  CuptiState& state = cupti();
  *buffer = Buffer{};
  if (state.requested == nullptr) return false;
  std::size_t max_records = 0;
  buffer->completed = state.completed;
  if (!state.with_thief) note(k_buffers_asked);
  state.requested(&buffer->memory, &buffer->bytes, &max_records);
  if (buffer->memory == nullptr || buffer->bytes == 0) {
    note(k_buffers_refused);
    if (script().version < 27) note(k_bad_null_buffer);  // the real one crashes
    buffer->memory = nullptr;
    return false;
  }
  if (!state.with_thief) check_lent(*buffer);
  start_worker();
  return true;
}

void move_to_full(Buffer* buffer) {
  if (buffer->memory != nullptr) buffers().full.push_back(*buffer);
  *buffer = Buffer{};
}

void let_thief_act() {
  CuptiState& state = cupti();
  if (script().thief_takes == 0 || state.stolen >= script().thief_takes) return;
  if (!state.with_thief && state.stolen == 0 && state.written >= script().thief_after) {
    flush(true);  // as a client does that registers its own
    state.requested = thief_requested;
    state.completed = thief_completed;
    state.with_thief = true;
    state.stolen = 1;
  } else if (state.with_thief && ++state.stolen == script().thief_takes) {
    for (const std::uint32_t kind : {kConcurrentKernel, kMemcpy, kMemset}) state.kinds[kind] = false;
  }
}

}  // namespace

void append(const void* record, std::size_t bytes, std::uint64_t done_ns) {
  CuptiState& state = cupti();
  const std::lock_guard hold(state.lock);
  let_thief_act();
  if (mine == nullptr) buffers().of_threads.push_back(mine = new Buffer);
  if (mine->memory != nullptr && mine->completed != state.completed) move_to_full(mine);
  if (mine->memory == nullptr || mine->used + bytes > mine->bytes) {
    move_to_full(mine);
    if (!ask(mine)) {
      ++state.dropped;
      return note(k_dropped_records);
    }
  }
  mine->offsets.push_back(mine->used);
  std::memcpy(mine->memory + mine->used, record, bytes);
  mine->used += bytes;
  mine->records += 1;
  if (done_ns > mine->done_ns) mine->done_ns = done_ns;
  ++state.written;
}

void flush(bool forced) {
  const std::lock_guard hold(cupti().lock);
  if (script().keep != 0) return;
  if (script().flush_ms != 0) usleep(static_cast<useconds_t>(script().flush_ms * 1000));
  for (Buffer* buffer : buffers().of_threads) {
    if (buffer->used == 0) continue;
    if (forced || (script().incomplete == 0 && buffer->done_ns <= timestamp_ns())) move_to_full(buffer);
  }
  give_back_full(forced);
}

[[gnu::destructor]] void give_back_at_the_end() {
  if (script().keep == 0) return;
  const std::lock_guard hold(cupti().lock);
  for (Buffer* buffer : buffers().of_threads) move_to_full(buffer);
  give_back_full(true);
}

}  // namespace fake

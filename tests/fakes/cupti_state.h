#pragma once
// The state of the fake CUPTI, which is never destroyed. Its one lock is held, as the real one's is, while it asks for
// a buffer or gives one back, and in every function but GetNextRecord: a client that holds a lock of its own when it
// calls CUPTI, and takes it in a callback, hangs here as it would there.

#include <atomic>
#include <mutex>

#include "cupti_script.h"
#include "link.h"

namespace fake {

struct CuptiState {
  std::recursive_mutex lock;
  const Driver* driver = nullptr;
  CallbackFunction callback = nullptr;
  void* user_data = nullptr;
  std::atomic<bool> enabled[kDomains][kCallbackIds];
  std::atomic<bool> kinds[kActivityKinds];
  std::atomic<bool> graph_trace_before{false};
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  bool with_thief = false;
  std::uint64_t stolen = 0, written = 0;
  std::atomic<TimestampFunction> timestamp{nullptr};
  std::uint64_t dropped = 0;  // since it was last asked
  std::atomic<std::uint64_t> calls{0}, calls_of_failing{0};
};

CuptiState& cupti();
void note(Counter counter, std::uint64_t amount = 1);  // in the ledger
std::uint64_t timestamp_ns();

// Counts a call of a function by name. Not kSuccess: the script wants it to fail so.
int begin_call(const char* function);

// ---- cupti_buffers.cpp ---------------------------------------------------------------------------------------------
// Appends a record to the calling thread's buffer, asking for one where needed. `done_ns`: when it is complete.
void append(const void* record, std::size_t bytes, std::uint64_t done_ns);
void flush(bool forced);
std::size_t record_bytes(std::uint32_t kind);  // as GetNextRecord walks; 0: unknown

// ---- cupti_records.cpp: what the driver tells ----------------------------------------------------------------------
extern const Tool kTool;

}  // namespace fake

#define FAKE_EXPORT extern "C" [[gnu::visibility("default")]]

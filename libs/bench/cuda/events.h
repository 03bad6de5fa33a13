#pragma once
// Pairs of CUDA events: when the device came to two points of a stream. What lies between them, gaps included.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class EventPairs {
 public:
  static Result<EventPairs> create(Context& context, std::size_t pairs);
  EventPairs() = default;
  EventPairs(EventPairs&&) = default;
  EventPairs& operator=(EventPairs&&) = default;
  ~EventPairs();

  std::size_t size() const { return (*events_).size() / 2; }
  Result<void> begin(std::size_t pair) { return record(2 * pair); }  // enqueued on the context's stream
  Result<void> end(std::size_t pair) { return record(2 * pair + 1); }
  Result<double> seconds(std::size_t pair) const;  // when the device passed both

 private:
  Result<void> record(std::size_t event);
  Context* context_ = nullptr;
  Handle<std::vector<void*>> events_;  // CUevent
};

// Host memory that the GPU reaches directly: copies from and to it run at the bus's full rate.

class PinnedBuffer {
 public:
  // While a Context is open. kUnsupported when the system does not give that much.
  static Result<PinnedBuffer> allocate(std::int64_t bytes);
  PinnedBuffer(PinnedBuffer&&) = default;
  ~PinnedBuffer();
  void* data() const { return data_; }

 private:
  explicit PinnedBuffer(void* data) : data_(data) {}
  Handle<void*> data_;
};

// Holds the stream back while the host queues work on it, so that the device then runs it without waiting for launches.
// The kernel that waits has a deadline of its own: a host that waits for the device meanwhile loses a quarter of a
// second, never more.

class LaunchGate {
 public:
  static Result<LaunchGate> create(Context& context);
  LaunchGate() = default;
  LaunchGate(LaunchGate&&) = default;
  LaunchGate& operator=(LaunchGate&&) = default;
  ~LaunchGate();

  Result<void> close();  // enqueued; the stream must be idle
  void open();           // also after an error: always, and at once
  bool gave_up() const;  // since close(), the deadline passed before open(); told when the stream is idle

 private:
  Handle<Context*> context_;
  Handle<volatile std::uint32_t*> flags_;  // go, gave up: in host memory that the device reads and writes
  Pointer device_flags_ = 0;
};

// Opens the gate at the end of a scope, however that is left.
class OpensGate {
 public:
  explicit OpensGate(LaunchGate& gate) : gate_(gate) {}
  ~OpensGate() { gate_.open(); }
  OpensGate(const OpensGate&) = delete;
  OpensGate& operator=(const OpensGate&) = delete;

 private:
  LaunchGate& gate_;
};

}  // namespace llmprof::bench::cuda

#pragma once
// Holds the stream back while the host queues work on it, so that the device then runs it without waiting for launches.
// The kernel that waits has a deadline of its own: a host that waits for the device meanwhile loses a quarter of a
// second, never more.

#include <cstdint>

#include "base/result.h"
#include "bench/cuda/context.h"

namespace llmprof::bench::cuda {

class LaunchGate {
 public:
  static Result<LaunchGate> create(Context& context);
  LaunchGate() = default;
  LaunchGate(LaunchGate&& other) noexcept;
  LaunchGate& operator=(LaunchGate&& other) noexcept;
  ~LaunchGate();

  Result<void> close();  // enqueued; the stream must be idle
  void open();           // also after an error: always, and at once
  bool gave_up() const;  // since close(), the deadline passed before open(); told when the stream is idle

 private:
  [[maybe_unused]] Context* context_ = nullptr;
  [[maybe_unused]] volatile std::uint32_t* flags_ =
      nullptr;  // go, gave up: in host memory that the device reads and writes
  [[maybe_unused]] Pointer device_flags_ = 0;
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

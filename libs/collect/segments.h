#pragma once
// Which logs of a process to delete when only the end of a recording is kept. Plain arithmetic; the writer asks.

#include <cstdint>

namespace llmprof::collect {

class Segments {
 public:
  // The log with this number was begun. Numbers follow each other.
  void begun(std::uint32_t number, std::uint64_t ts_ns) {
    Begun& log = logs_[number % kMost];
    log = {ts_ns, 0};
    last_ = number;
  }
  void closed(std::uint64_t bytes) { logs_[last_ % kMost].bytes = bytes; }

  // The number of a log to delete, oldest first; kNone: all others are needed. A log is needed as long as the one
  // behind it began less than `keep_ns` ago, unless there is too much of them.
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t expired(std::uint64_t now_ns, std::uint64_t keep_ns, std::uint64_t most_bytes) {
    if (first_ == last_) return kNone;
    const std::uint64_t next_begun_ns = logs_[(first_ + 1) % kMost].ts_ns;
    const bool old = now_ns > keep_ns && next_begun_ns < now_ns - keep_ns;
    const bool many = last_ - first_ + 1 >= kMost;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = first_; i != last_; ++i) bytes += logs_[i % kMost].bytes;
    if (!old && !many && bytes <= most_bytes) return kNone;
    return first_++;
  }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Begun {
    std::uint64_t ts_ns, bytes;
  };
  Begun logs_[kMost] = {};
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace llmprof::collect

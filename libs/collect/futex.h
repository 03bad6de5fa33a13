#pragma once
// Waiting and waking without a lock. Errors do not matter: every wait has a time limit.

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace llmprof::collect {

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t while_value, std::uint64_t limit_ms) {
  const timespec limit = {static_cast<time_t>(limit_ms / 1000), static_cast<long>(limit_ms % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, while_value, &limit, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

inline void sleep_us(long us) {
  const timespec time = {0, us * 1000};
  nanosleep(&time, nullptr);
}

// The program's errno is not ours to change.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

}  // namespace llmprof::collect

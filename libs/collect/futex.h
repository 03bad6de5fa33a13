#pragma once
// Waiting and waking without a lock. Errors do not matter: every wait has a time limit.

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace llmprof::collect {

template <class Word>
void futex_wait(std::atomic<Word>& word, std::type_identity_t<Word> while_value, std::uint64_t limit_ms) {
  static_assert(sizeof(word) == 4);
  const timespec limit = {static_cast<time_t>(limit_ms / 1000), static_cast<long>(limit_ms % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, while_value, &limit, nullptr, 0);
}

template <class Word>
void futex_wake(std::atomic<Word>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
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

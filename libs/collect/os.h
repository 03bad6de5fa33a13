#pragma once
// What the collector needs of the operating system: its clock, futexes, threads of its own, and what the kernel says
// about this process.

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/clock.h"

namespace llmprof::collect {

using wire::now_ns;
using wire::read_clock_ns;

// Waiting and waking without a lock. Errors do not matter: every wait has a time limit.

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

// Not nanosleep(), which would be a place where a cancelled thread ends.
inline void pause_ms(std::uint64_t ms) {
  std::atomic<std::uint32_t> never{0};
  futex_wait(never, 0, ms);
}

// Waits, looking once in `every_ms`, until done() or for `limit_ms`. Whether it is done.
template <class Done>
bool wait_until(std::uint64_t limit_ms, Done done, std::uint64_t every_ms = 1) {
  const std::uint64_t give_up_ns = now_ns() + limit_ms * 1000000;
  while (!done()) {
    if (now_ns() >= give_up_ns) return false;
    pause_ms(every_ms);
  }
  return true;
}

// Zeroed memory of our own, taken from the system as it is touched. Null: there is none, errno says why.
inline void* map_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}

// The program's errno is not ours to change.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

// For what we do on a thread of the program and must finish: no signal handler runs (it could jump out, or raise an
// event and wait for itself), a cancelled thread does not end here (open, write and close are places where it may), and
// errno stays as the program left it.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~Undisturbed() {
    pthread_setcancelstate(cancel_state_, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  KeepErrno keep_;
  sigset_t signals_{};
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

// Threads of the collector: detached, and deaf to signals, so that they never run the program's handlers.

// False: errno says why. `stack_bytes` is raised where the program's thread-local data alone is larger.
bool start_own_thread(void* (*main)(void*), std::size_t stack_bytes);
void name_own_thread(const char* name);  // the calling one

// What the kernel says about this process.

// Reads a file into `out`; the number of bytes, 0 if it cannot be read.
std::size_t read_file(const char* path, char* out, std::size_t capacity);

// Field 22 of /proc/self/stat: with the pid it names the process for this boot. 0: unknown.
std::uint64_t read_start_ticks();
std::uint64_t parse_start_ticks(const char* stat, std::size_t length);

// The host name with everything that does not belong into a file name replaced.
void read_host_name(char* out, std::size_t capacity);

// Value of the first of RANK, LOCAL_RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK that is set; null if none.
const char* rank_variable();

// "RANK=1 WORLD_SIZE=8": what launchers and engines tell a process of its job, in its environment. Numbers only: a
// value that is none is no size, and may be a secret. The length; 0: they say nothing.
std::size_t read_launcher_variables(char* out, std::size_t capacity);

}  // namespace llmprof::collect

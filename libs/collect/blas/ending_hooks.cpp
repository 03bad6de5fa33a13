// Ends of a process that skip its exit handlers: _exit(), as workers of Python's multiprocessing end, and signals that
// a process sends itself, as Python ends after Ctrl-C. What was recorded is written first, which takes a moment and
// never long; then the call is passed on.

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/blas/call.h"
#include "collect/os.h"

namespace llmprof::collect::blas {
void find_next_endings();
}

namespace {

using llmprof::collect::KeepErrno;
using llmprof::collect::blas::connection;
using llmprof::collect::blas::Link;

using Exit = void (*)(int status);
using Kill = int (*)(pid_t pid, int number);
using Raise = int (*)(int number);
constinit Exit next_exit = nullptr;
constinit Kill next_kill = nullptr;
constinit Raise next_raise = nullptr;

template <class Function>
void ask_for(const char* name, Function& next) {
  if (void* const found = dlsym(RTLD_NEXT, name))
    __atomic_store_n(&next, reinterpret_cast<Function>(found), __ATOMIC_RELAXED);
}

// Only where something was recorded: nobody connects in order to end.
const llmprof_collector_table* connected() {
  if (connection.link.load(std::memory_order_acquire) != Link::kOn) return nullptr;
  const llmprof_collector_table* table = connection.table;
  return table->size >= offsetof(llmprof_collector_table, leave) + sizeof(table->leave) ? table : nullptr;
}

// Whether the signal ends a process that does not handle it, and this one does not.
bool is_fatal(int number) {
  switch (number) {
    case 0:
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return false;
    case SIGKILL:
      return true;
    default:
      struct sigaction action {};
      return sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
             action.sa_handler == SIG_DFL;
  }
}

void flush_before(int number) {
  const KeepErrno keep;
  const llmprof_collector_table* table = connected();
  if (table != nullptr && is_fatal(number)) table->flush();
}

[[noreturn]] void leave(int status) {
  if (const llmprof_collector_table* table = connected()) table->leave();
  if (const Exit next = __atomic_load_n(&next_exit, __ATOMIC_RELAXED)) next(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

void llmprof::collect::blas::find_next_endings() {
  ask_for("_exit", next_exit);
  ask_for("kill", next_kill);
  ask_for("raise", next_raise);
}

#pragma GCC visibility push(default)
extern "C" {

void _exit(int status) { leave(status); }
void _Exit(int status) noexcept { leave(status); }

int kill(pid_t pid, int number) noexcept {
  if (pid == getpid() || pid == 0 || pid == -getpgrp()) flush_before(number);
  const Kill next = __atomic_load_n(&next_kill, __ATOMIC_RELAXED);
  return next != nullptr ? next(pid, number) : static_cast<int>(syscall(SYS_kill, pid, number));
}

int raise(int number) noexcept {
  flush_before(number);
  const Raise next = __atomic_load_n(&next_raise, __ATOMIC_RELAXED);
  return next != nullptr ? next(number) : static_cast<int>(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number));
}

}  // extern "C"
#pragma GCC visibility pop

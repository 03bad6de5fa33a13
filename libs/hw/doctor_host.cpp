// What sampling CPU stacks from outside needs: tried, not guessed, because sandboxes forbid it in many ways.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "hw/doctor_checks.h"

namespace llmprof::hw {
namespace {

// 0, or the errno of perf_event_open with what the recorder asks for.
int try_perf_events(bool with_kernel) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = 10'000'000;
  attr.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = 0xff01ff;
  attr.sample_stack_user = 8192;
  attr.disabled = attr.inherit = attr.exclude_hv = attr.use_clockid = 1;
  attr.exclude_kernel = with_kernel ? 0 : 1;
  attr.clockid = CLOCK_MONOTONIC_RAW;
  const long descriptor = ::syscall(SYS_perf_event_open, &attr, ::getpid(), 0, -1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) return errno;
  ::close(static_cast<int>(descriptor));
  return 0;
}

// 0, or the errno of reading a word of a child.
int try_child_memory() {
  static const std::uint64_t wanted = 0x6c6c6d70726f66;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    for (;;) ::pause();
  }
  std::uint64_t read = 0;
  iovec here{&read, sizeof read}, there{const_cast<std::uint64_t*>(&wanted), sizeof wanted};
  const bool good = ::process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof read && read == wanted;
  const int error = good ? 0 : errno;
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return error;
}

}  // namespace

Finding check_cpu_stacks() {
#if !defined(__x86_64__)
  return {"cpu stacks", Status::kAbsent, "sampled on x86-64 only", "nothing to do: recording does not need them"};
#endif
  if (try_perf_events(true) == 0) return {"cpu stacks", Status::kOk, "perf_event_open works", ""};
  const int error = try_perf_events(false);
  if (error == 0) return {"cpu stacks", Status::kOk, "perf_event_open works; time in system calls is not sampled", ""};
  return {"cpu stacks", Status::kWarn, fmt::format("perf_event_open: {}", std::strerror(error)),
          error == ENOSYS ? "none in this kernel or sandbox; there will be no function table"
                          : "sudo sysctl kernel.perf_event_paranoid=2; in a container --cap-add PERFMON, or a seccomp "
                            "profile that permits perf_event_open. Without it there is no function table"};
}

Finding check_python_frames() {
  const int error = try_child_memory();
  if (error == 0) return {"python frames", Status::kOk, "memory of children can be read (process_vm_readv)", ""};
  return {"python frames", Status::kWarn, fmt::format("process_vm_readv: {}", std::strerror(error)),
          "in a container: --cap-add SYS_PTRACE, or a seccomp profile that permits process_vm_readv; else sudo sysctl "
          "kernel.yama.ptrace_scope=1. Without it Python functions are not shown"};
}

}  // namespace llmprof::hw

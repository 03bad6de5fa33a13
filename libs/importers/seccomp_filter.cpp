#include "importers/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "base/file.h"

namespace llmprof::importers {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which AUDIT_ARCH is this?"
#endif

// What glibc 2.36 to 2.40 needs for threads, malloc, time and abort(), and what reading needs.
constexpr int kAllowed[] = {
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_lseek,
    SYS_fstat,
    SYS_close,
    SYS_fadvise64,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_gettid,
    SYS_getpid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_getrusage,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_time
    SYS_time,
#endif
};

constexpr int kFatal[] = {
    SYS_execve,         SYS_execveat, SYS_socket,           SYS_connect,           SYS_bind,       SYS_sendto,
    SYS_sendmsg,        SYS_ptrace,   SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount,      SYS_unshare,
    SYS_setns,          SYS_bpf,      SYS_perf_event_open,  SYS_init_module,       SYS_kexec_load, SYS_keyctl,
    SYS_userfaultfd,
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
#ifdef SYS_fork
    SYS_fork,           SYS_vfork,
#endif
};

constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;

// Programs of the kernel's filter machine: jumps count the instructions to skip.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump_unless_equal(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    // Numbers of the x32 interface are other calls under the same architecture.
    add(BPF_JMP | BPF_JGE | BPF_K, 0x4000'0000, 0, 1);
    answer(SECCOMP_RET_KILL_PROCESS);
#endif
  }
  void when_call(int number, std::uint32_t then) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1);
    answer(then);
  }
  // By the low half of an argument: what is tested has no bits above.
  void when_call_has_all(int number, int argument, std::uint32_t bits, std::uint32_t then, std::uint32_t otherwise) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 5);
    load(argument_offset(argument));
    add(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
    answer(then);
    answer(otherwise);
  }
  void when_call_equals(int number, int argument, std::uint32_t value, std::uint32_t then, std::uint32_t otherwise) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4);
    load(argument_offset(argument));
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(then);
    answer(otherwise);
  }
  void answer(std::uint32_t what) { add(BPF_RET | BPF_K, what, 0, 0); }

  Result<void> install() {
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return base::errno_error(ErrorCode::kIo, "no_new_privs", errno);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      return base::errno_error(ErrorCode::kIo, "seccomp", errno);
    return {};
  }

 private:
  static std::size_t argument_offset(int argument) {
    return offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(argument);  // both architectures: low half first
  }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0); }
  void jump_unless_equal(std::uint32_t value, std::uint32_t otherwise) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    answer(otherwise);
  }
  void add(int code, std::uint32_t value, int if_true, int if_false) {
    code_.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
                     static_cast<std::uint8_t>(if_false), value});
  }
  std::vector<sock_filter> code_;
};

}  // namespace

Result<void> allow_reading_only() {
  Filter filter;
  for (const int call : kAllowed) filter.when_call(call, SECCOMP_RET_ALLOW);
  // Memory, but no code. A thread, but no process. abort(), but no signal to others. fstat as newer C libraries do it.
  filter.when_call_has_all(SYS_mmap, 2, PROT_EXEC, kRefused, SECCOMP_RET_ALLOW);
  filter.when_call_has_all(SYS_mprotect, 2, PROT_EXEC, kRefused, SECCOMP_RET_ALLOW);
  filter.when_call_has_all(SYS_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
  filter.when_call_equals(SYS_tgkill, 0, static_cast<std::uint32_t>(::getpid()), SECCOMP_RET_ALLOW, kRefused);
  filter.when_call_equals(SYS_newfstatat, 3, 0x1000 /* AT_EMPTY_PATH */, SECCOMP_RET_ALLOW, kRefused);
#ifdef SYS_clone3
  filter.when_call(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // its flags are in memory; the C library then uses clone
#endif
  for (const int call : kFatal) filter.when_call(call, SECCOMP_RET_KILL_PROCESS);
  filter.answer(kRefused);
  return filter.install();
}

}  // namespace llmprof::importers

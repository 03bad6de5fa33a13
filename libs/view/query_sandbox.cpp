#include "view/query_sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "base/file.h"

namespace llmprof::view {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which AUDIT_ARCH is this?"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

constexpr int kRefusedCalls[] = {
    SYS_socket,         SYS_connect,  SYS_bind,      SYS_listen,    SYS_sendto,
    SYS_sendmsg,        SYS_execve,   SYS_execveat,  SYS_ptrace,    SYS_process_vm_readv,
    SYS_unlinkat,       SYS_mkdirat,  SYS_symlinkat, SYS_linkat,    SYS_renameat2,
    SYS_fchmodat,       SYS_fchownat, SYS_truncate,  SYS_ftruncate, SYS_process_vm_writev,
    SYS_mount,          SYS_unshare,  SYS_setns,     SYS_bpf,       SYS_perf_event_open,
    SYS_kill,           SYS_openat2,  SYS_mknodat,   SYS_utimensat, SYS_userfaultfd,
#ifdef SYS_open
    SYS_open,           SYS_creat,    SYS_unlink,    SYS_rename,    SYS_mkdir,
    SYS_rmdir,          SYS_symlink,  SYS_link,      SYS_chmod,     SYS_fork,
    SYS_vfork,          SYS_renameat,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
};

std::vector<sock_filter> filter() {
  constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  std::vector<sock_filter> code;
  const auto add = [&](int what, std::uint32_t value, int if_true = 0, int if_false = 0) {
    code.push_back({static_cast<std::uint16_t>(what), static_cast<std::uint8_t>(if_true),
                    static_cast<std::uint8_t>(if_false), value});
  };
  const auto load = [&](std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); };
  load(offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  add(BPF_JMP | BPF_JGE | BPF_K, 0x4000'0000, 0, 1);  // the x32 interface
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#endif
  for (const int call : kRefusedCalls) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(SYS_openat), 0, 3);
  load(offsetof(seccomp_data, args) + 16);  // flags, the low half
  add(BPF_JMP | BPF_JSET | BPF_K, kWriting, 0, 1);
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return code;
}

std::uint64_t address_space_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, std::uint64_t value) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlimit wanted{std::min<rlim_t>(value, now.rlim_max), std::min<rlim_t>(value, now.rlim_max)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

}  // namespace

Result<void> give_up_all_but_reading(std::uint64_t memory_bytes, std::uint64_t cpu_seconds) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  if (!kSanitized) limit(RLIMIT_AS, address_space_bytes() + memory_bytes);
  std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return base::errno_error(ErrorCode::kIo, "no_new_privs", errno);
  // With SECCOMP_FILTER_FLAG_TSYNC: the engine has threads already.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return base::errno_error(ErrorCode::kIo, "seccomp", errno);
  return {};
}

}  // namespace llmprof::view

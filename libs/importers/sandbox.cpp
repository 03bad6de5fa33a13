#include "importers/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/file.h"
#include "base/human.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LLMPROF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LLMPROF_SANITIZED 1
#endif
#endif

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
constexpr int kFiles[] = {SYS_read,     SYS_readv, SYS_pread64, SYS_write, SYS_writev,
                          SYS_pwrite64, SYS_lseek, SYS_fstat,   SYS_close, SYS_fadvise64};
constexpr int kMemory[] = {SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_getrandom};
constexpr int kThreads[] = {SYS_futex,     SYS_exit,   SYS_exit_group,  SYS_set_robust_list,   SYS_set_tid_address,
                            SYS_gettid,    SYS_getpid, SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu,
                            SYS_getrusage, SYS_rseq};
constexpr int kSignals[] = {SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_sigaltstack,
                            SYS_restart_syscall};
constexpr int kTimes[] = {SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday};

constexpr int kFatal[] = {
    SYS_execve,      SYS_execveat,      SYS_socket,           SYS_connect,           SYS_bind,       SYS_sendto,
    SYS_sendmsg,     SYS_ptrace,        SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount,      SYS_unshare,
    SYS_setns,       SYS_bpf,           SYS_perf_event_open,  SYS_init_module,       SYS_kexec_load, SYS_keyctl,
    SYS_userfaultfd, SYS_io_uring_setup};

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
  void when_call_has_none(int number, int argument, std::uint32_t bits, std::uint32_t then, std::uint32_t otherwise) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 5);
    load(argument_offset(argument));
    add(BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
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

// For this thread and all it will start; cannot be undone. Needs no privilege. What threads, memory, time and reading
// open files need is allowed. Calls that no honest reader makes (starting programs, sockets, tracing) end the process
// with SIGSYS. Everything else is refused with EPERM: the C library and others probe for things they can do without,
// and a refused call leaves an attacker with no more than a dead process would.
Result<void> allow_reading_only(bool may_open) {
  Filter filter;
  if (may_open) {  // what can be opened, Landlock decides
    filter.when_call_has_none(SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, SECCOMP_RET_ALLOW, kRefused);
    for (const int call : {SYS_newfstatat, SYS_faccessat, SYS_faccessat2}) filter.when_call(call, SECCOMP_RET_ALLOW);
#if defined(__x86_64__)
    for (const int call : {SYS_access, SYS_stat, SYS_lstat}) filter.when_call(call, SECCOMP_RET_ALLOW);
#endif
  }
  for (const std::span<const int> calls :
       {std::span<const int>(kFiles), std::span<const int>(kMemory), std::span<const int>(kThreads),
        std::span<const int>(kSignals), std::span<const int>(kTimes)}) {
    for (const int call : calls) filter.when_call(call, SECCOMP_RET_ALLOW);
  }
  // Memory, but no code. A thread, but no process. abort(), but no signal to others. fstat as newer C libraries do it.
  filter.when_call_has_all(SYS_mmap, 2, PROT_EXEC, kRefused, SECCOMP_RET_ALLOW);
  filter.when_call_has_all(SYS_mprotect, 2, PROT_EXEC, kRefused, SECCOMP_RET_ALLOW);
  filter.when_call_has_all(SYS_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
  filter.when_call_equals(SYS_tgkill, 0, static_cast<std::uint32_t>(::getpid()), SECCOMP_RET_ALLOW, kRefused);
  filter.when_call_equals(SYS_newfstatat, 3, 0x1000 /* AT_EMPTY_PATH */, SECCOMP_RET_ALLOW, kRefused);
  filter.when_call(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // its flags are in memory; the C library then uses clone
#if defined(__x86_64__)                                      // calls that newer architectures do not have
  filter.when_call(SYS_time, SECCOMP_RET_ALLOW);
  for (const int call : {SYS_fork, SYS_vfork}) filter.when_call(call, SECCOMP_RET_KILL_PROCESS);
#endif
  for (const int call : kFatal) filter.when_call(call, SECCOMP_RET_KILL_PROCESS);
  filter.answer(kRefused);
  return filter.install();
}

// Of all files, only this one can be opened from now on, and only for reading. Descriptors that are open stay so.
Result<void> open_nothing_but(const std::string& path) {
  constexpr std::uint64_t kAllOfVersion1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  const landlock_ruleset_attr attributes{.handled_access_fs = kAllOfVersion1};
  const auto rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (rules < 0) return base::errno_error(ErrorCode::kUnsupported, "landlock", errno);
  const int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (file < 0) return base::errno_error(base::code_of_errno(errno), path, errno);
  const landlock_path_beneath_attr rule{.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE, .parent_fd = file};
  const bool done = ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 &&
                    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  const int error = errno;
  ::close(file), ::close(rules);
  return done ? Result<void>() : base::errno_error(ErrorCode::kUnsupported, "landlock", error);
}

#ifdef LLMPROF_SANITIZED
constexpr bool kComplete = false;
#else
constexpr bool kComplete = true;
#endif

constexpr int kPipeBytes = 1 << 20;
constexpr std::uint64_t kOwnDescriptors = 64;   // numbers below it are free: others were closed
constexpr int kArenas = 4;                      // of malloc: each takes 64 MiB of address space, used or not
constexpr int kNoMemory = 42, kNoSandbox = 43;  // exit statuses of the child

std::uint64_t address_space_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlimit wanted{std::min<rlim_t>(soft, now.rlim_max), std::min<rlim_t>(hard, now.rlim_max)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

void set_limits(const ChildLimits& limits) {
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 2);
  limit(RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes);
  if (kComplete && limits.memory_bytes != 0) {
    const std::uint64_t bytes = address_space_bytes() + limits.memory_bytes;
    limit(RLIMIT_AS, bytes, bytes);
  }
  const std::uint64_t descriptors = limits.readable_file.empty() ? 0 : kOwnDescriptors;
  limit(RLIMIT_NOFILE, descriptors, descriptors);  // last: what is open stays so
}

void close_others(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned first = kComplete ? 0 : 3;  // sanitizers report on standard error
  for (const int descriptor : keep) {
    const auto kept = static_cast<unsigned>(descriptor);
    if (kept > first) ::syscall(SYS_close_range, first, kept - 1, 0);
    first = std::max(first, kept + 1);
  }
  ::syscall(SYS_close_range, first, ~0u, 0);
}

void no_memory() { ::_exit(kNoMemory); }

[[noreturn]] void be_child(const std::function<void(const Child::Ends&)>& work, const Child::Ends& ends,
                           std::span<const int> keep, const ChildLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);
  for (const int signal : {SIGTERM, SIGHUP, SIGPIPE, SIGXCPU, SIGXFSZ, SIGSYS}) ::signal(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);  // the parent hears them too, and ends us
  std::vector<int> open(keep.begin(), keep.end());
  open.insert(open.end(), {ends.output, ends.signal});
  close_others(std::move(open));
  std::set_new_handler(no_memory);
  ::mallopt(M_ARENA_MAX, kArenas);
  const bool may_open = !limits.readable_file.empty();
  set_limits(limits);  // before Landlock: it reads how much memory there is in use
  if (kComplete && may_open && !open_nothing_but(limits.readable_file)) ::_exit(kNoSandbox);
  if (kComplete && !allow_reading_only(may_open)) ::_exit(kNoSandbox);
  work(ends);
  ::_exit(0);  // nothing of the parent is ours to destroy
}

std::string words_of_signal(int signal, const rusage& used, const ChildLimits& limits) {
  const auto seconds = static_cast<std::uint64_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  if (signal == SIGXCPU || (signal == SIGKILL && seconds + 1 >= limits.cpu_seconds))
    return fmt::format("more than {} s of CPU time", limits.cpu_seconds);
  if (signal == SIGSYS) return "it made a system call that a reader of files has no use for";
  if (signal == SIGXFSZ)
    return fmt::format("it wrote more than {}", base::human_bytes(static_cast<double>(limits.file_bytes)));
  if (signal == SIGKILL) return "somebody killed it, perhaps the system for want of memory";
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

}  // namespace

bool sandbox_is_complete() { return kComplete; }

bool Child::Ends::wait_for_go() const {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(signal, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

Result<Child> Child::start(std::string name, const std::function<void(const Ends&)>& work, std::span<const int> keep,
                           const ChildLimits& limits) {
  int data[2], signals[2];
  if (::pipe2(data, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  if (::pipe2(signals, O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(data[0]), ::close(data[1]);
    return base::errno_error(ErrorCode::kIo, "pipe", error);
  }
  ::fcntl(data[1], F_SETPIPE_SZ, kPipeBytes);  // fewer switches; the usual size will do where it is refused
  const pid_t pid = ::fork();
  if (pid == 0) be_child(work, {data[1], signals[0]}, keep, limits);
  const int error = errno;
  ::close(data[1]), ::close(signals[0]);
  Child child;
  child.name_ = std::move(name);
  child.limits_ = limits;
  child.pid_ = pid;
  child.output_ = data[0];
  child.signal_ = signals[1];
  if (pid < 0) return base::errno_error(ErrorCode::kIo, "fork", error);
  ::fcntl(data[0], F_SETFL, O_NONBLOCK);
  return child;
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      limits_(other.limits_),
      pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      signal_(std::exchange(other.signal_, -1)) {}

Child::~Child() {
  if (output_ >= 0) ::close(output_);
  if (signal_ >= 0) ::close(signal_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::go() {
  // A child that is gone already must not end us by SIGPIPE; its end is told by wait().
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  (void)!::write(signal_, "g", 1);
  ::signal(SIGPIPE, before);
}

Result<void> Child::wait() {
  int status = 0;
  rusage used{};
  while (::wait4(pid_, &status, 0, &used) < 0) {
    if (errno != EINTR) return base::errno_error(ErrorCode::kIo, "wait", errno);
  }
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSandbox) {
    return Error{ErrorCode::kUnsupported, name_ + ": this system refuses the sandbox (seccomp) for reading it",
                 "allow seccomp filters, or import files that you trust with --no-sandbox"};
  }
  std::string why;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) {
    why = fmt::format("more than {} of memory", base::human_bytes(static_cast<double>(limits_.memory_bytes)));
  } else if (WIFEXITED(status)) {
    why = fmt::format("exit status {}", WEXITSTATUS(status));
  } else {
    why = words_of_signal(WTERMSIG(status), used, limits_);
  }
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: the reader of the file was stopped: {}", name_, why),
               "nothing was imported; if the file is a good one, this is a bug of llmprof"};
}

}  // namespace llmprof::importers

#include "importers/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "base/file.h"
#include "base/human.h"
#include "importers/seccomp_filter.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LLMPROF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LLMPROF_SANITIZED 1
#endif
#endif

namespace llmprof::importers {
namespace {

#ifdef LLMPROF_SANITIZED
constexpr bool kComplete = false;
#else
constexpr bool kComplete = true;
#endif

constexpr int kPipeBytes = 1 << 20;
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
  limit(RLIMIT_NOFILE, 0, 0);  // last: what is open stays so
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
  set_limits(limits);
  if (kComplete && !allow_reading_only()) ::_exit(kNoSandbox);
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

#include "host/thread_states.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "host/proc.h"
#include "host/stacks/remote_memory.h"
#include "wire/clock.h"

namespace llmprof::host {
namespace {

constexpr std::size_t kMostThreads = 1024;         // read at once; each takes two descriptors
constexpr std::int64_t kLateNs = 10'000'000;       // so late the kernel's count of CPU time may be
constexpr std::uint64_t kYoungNs = 1'000'000'000;  // a thread first seen at this age was seen from its begin

using ShortText = std::array<char, 512>;

std::string_view read_text(int descriptor, ShortText& text) {
  const ssize_t count = descriptor < 0 ? -1 : ::pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

int open_of(pid_t pid, pid_t tid, const char* name) {
  return ::open(fmt::format("/proc/{}/task/{}/{}", pid, tid, name).c_str(), O_RDONLY | O_CLOEXEC);
}

// Numbers behind each other, decimal, or with 0x hexadecimal.
template <std::size_t kCount>
std::size_t parse_numbers(std::string_view text, std::array<std::uint64_t, kCount>& out) {
  std::size_t found = 0;
  while (found < kCount && !text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    const bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out[found], hex ? 16 : 10);
    if (parsed.ec != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    ++found;
  }
  return found;
}

ThreadState state_of_descriptor(pid_t pid, std::uint64_t descriptor) {
  if (descriptor > 1u << 30) return ThreadState::kOther;
  return state_of_file(link_target(fmt::format("/proc/{}/fd/{}", pid, descriptor)));
}

// Waiting for events is mostly the network's; a driver's own file says more.
ThreadState state_of_poll(pid_t pid, std::uint64_t address, std::uint64_t count) {
  pollfd first{};
  if (count == 0) return ThreadState::kSleep;
  if (!RemoteMemory::read_directly(pid, address, &first, sizeof first) || first.fd < 0) return ThreadState::kNetwork;
  const ThreadState state = state_of_descriptor(pid, static_cast<std::uint64_t>(first.fd));
  return state == ThreadState::kGpu || state == ThreadState::kPipe ? state : ThreadState::kNetwork;
}

struct Call {
  std::uint64_t number;
  ThreadState state;
};
// What a thread in these calls waits for. Some have no name in older headers, some are not there on other processors.
constexpr Call kCalls[] = {
    {SYS_futex, ThreadState::kLock},
    {449, ThreadState::kLock},  // futex_waitv
    {SYS_flock, ThreadState::kLock},
    {SYS_semop, ThreadState::kLock},
    {SYS_semtimedop, ThreadState::kLock},
    {SYS_mmap, ThreadState::kLock},  // these wait for each other, inside the kernel
    {SYS_munmap, ThreadState::kLock},
    {SYS_mprotect, ThreadState::kLock},
    {SYS_madvise, ThreadState::kLock},
    {SYS_brk, ThreadState::kLock},
    {SYS_nanosleep, ThreadState::kSleep},
    {SYS_clock_nanosleep, ThreadState::kSleep},
    {SYS_rt_sigtimedwait, ThreadState::kSleep},
    {SYS_rt_sigsuspend, ThreadState::kSleep},
    {SYS_wait4, ThreadState::kChild},
    {SYS_waitid, ThreadState::kChild},
    {SYS_pselect6, ThreadState::kNetwork},
    {SYS_epoll_pwait, ThreadState::kNetwork},
    {441, ThreadState::kNetwork},  // epoll_pwait2
    {SYS_accept, ThreadState::kNetwork},
    {SYS_accept4, ThreadState::kNetwork},
    {SYS_connect, ThreadState::kNetwork},
    {SYS_recvfrom, ThreadState::kNetwork},
    {SYS_recvmsg, ThreadState::kNetwork},
    {SYS_recvmmsg, ThreadState::kNetwork},
    {SYS_sendto, ThreadState::kNetwork},
    {SYS_sendmsg, ThreadState::kNetwork},
    {SYS_sendmmsg, ThreadState::kNetwork},
    {SYS_pread64, ThreadState::kIo},
    {SYS_pwrite64, ThreadState::kIo},
    {SYS_preadv, ThreadState::kIo},
    {SYS_pwritev, ThreadState::kIo},
    {SYS_openat, ThreadState::kIo},
    {SYS_close, ThreadState::kIo},
    {SYS_newfstatat, ThreadState::kIo},
    {SYS_fstat, ThreadState::kIo},
    {SYS_statx, ThreadState::kIo},
    {SYS_getdents64, ThreadState::kIo},
    {SYS_unlinkat, ThreadState::kIo},
    {SYS_fsync, ThreadState::kIo},
    {SYS_fdatasync, ThreadState::kIo},
    {SYS_sync_file_range, ThreadState::kIo},
    {SYS_msync, ThreadState::kIo},
    {SYS_fallocate, ThreadState::kIo},
    {SYS_ftruncate, ThreadState::kIo},
    {SYS_io_getevents, ThreadState::kIo},
    {SYS_copy_file_range, ThreadState::kIo},
    {SYS_execve, ThreadState::kIo},
    {426, ThreadState::kIo},  // io_uring_enter
#ifdef SYS_poll
    {SYS_pause, ThreadState::kSleep},
    {SYS_select, ThreadState::kNetwork},
    {SYS_epoll_wait, ThreadState::kNetwork},
    {SYS_open, ThreadState::kIo},
    {SYS_stat, ThreadState::kIo},
    {SYS_lstat, ThreadState::kIo},
    {SYS_unlink, ThreadState::kIo},
    {SYS_rename, ThreadState::kIo},
#endif
};

ThreadState state_of_call(std::uint64_t number, const std::array<std::uint64_t, 4>& words, pid_t pid) {
  switch (number) {
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
      return state_of_poll(pid, words[1], words[2]);
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_ioctl:
    case SYS_splice:
    case SYS_sendfile:
      return state_of_descriptor(pid, words[1]);
    default:
      break;
  }
  const auto found = std::ranges::find(kCalls, number, &Call::number);
  return found == std::end(kCalls) ? ThreadState::kOther : found->state;
}

}  // namespace

ThreadState state_of_file(std::string_view target) {
  struct Kind {
    std::string_view begin;
    ThreadState state;
  };
  static constexpr Kind kKinds[] = {{"socket:", ThreadState::kNetwork},
                                    {"pipe:", ThreadState::kPipe},
                                    {"/dev/nvidia", ThreadState::kGpu},
                                    {"/dev/dri", ThreadState::kGpu},
                                    {"/dev/kfd", ThreadState::kGpu},
                                    {"/dev/pts", ThreadState::kPipe},
                                    {"/dev/tty", ThreadState::kPipe},
                                    {"/dev/console", ThreadState::kPipe},
                                    {"anon_inode:[eventfd]", ThreadState::kLock},
                                    {"anon_inode:[timerfd]", ThreadState::kSleep},
                                    {"anon_inode:", ThreadState::kNetwork},
                                    {"/", ThreadState::kIo}};
  for (const Kind& kind : kKinds) {
    if (target.starts_with(kind.begin)) return kind.state;
  }
  return ThreadState::kOther;
}

ThreadState state_of_syscall(std::string_view text, pid_t pid) {
  if (text.starts_with("running")) return ThreadState::kUnseen;
  if (text.starts_with("-1")) return ThreadState::kIo;  // blocked outside of a call: a page has to be read
  std::array<std::uint64_t, 4> words{};                 // the number, three arguments
  return parse_numbers(text, words) == words.size() ? state_of_call(words[0], words, pid) : ThreadState::kOther;
}

ThreadState state_of_wchan(std::string_view function) {
  struct Part {
    std::string_view text;
    ThreadState state;
  };
  static constexpr Part kParts[] = {{"futex", ThreadState::kLock},
                                    {"rwsem", ThreadState::kLock},
                                    {"mutex", ThreadState::kLock},
                                    {"flock", ThreadState::kLock},
                                    {"nanosleep", ThreadState::kSleep},
                                    {"sigtimedwait", ThreadState::kSleep},
                                    {"sigsuspend", ThreadState::kSleep},
                                    {"do_wait", ThreadState::kChild},
                                    {"pipe_", ThreadState::kPipe},
                                    {"n_tty", ThreadState::kPipe},
                                    {"wait_woken", ThreadState::kPipe},
                                    {"nvidia", ThreadState::kGpu},
                                    {"uvm_", ThreadState::kGpu},
                                    {"ep_poll", ThreadState::kNetwork},
                                    {"poll_schedule", ThreadState::kNetwork},
                                    {"do_select", ThreadState::kNetwork},
                                    {"sk_", ThreadState::kNetwork},
                                    {"skb", ThreadState::kNetwork},
                                    {"inet_", ThreadState::kNetwork},
                                    {"unix_stream", ThreadState::kNetwork},
                                    {"io_schedule", ThreadState::kIo},
                                    {"folio_wait", ThreadState::kIo},
                                    {"wait_on_page", ThreadState::kIo},
                                    {"jbd2", ThreadState::kIo},
                                    {"io_uring", ThreadState::kIo},
                                    {"blk_", ThreadState::kIo}};
  if (function.empty() || function == "0") return ThreadState::kOther;
  for (const Part& part : kParts) {
    if (function.find(part.text) != std::string_view::npos) return part.state;
  }
  return ThreadState::kOther;
}

ThreadStates::~ThreadStates() {
  for (auto& [pid, process] : processes_) {
    for (auto& [tid, thread] : process.threads) close(thread);
  }
}

void ThreadStates::close(Thread& thread) {
  if (thread.schedstat >= 0) --open_threads_;
  for (int* descriptor : {&thread.schedstat, &thread.syscall}) {
    if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
  }
}

void ThreadStates::end(Thread& thread) {
  divide(thread);
  close(thread);
  gone_.push_back(std::move(thread.times));
}

void ThreadStates::ended(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  for (auto& [tid, thread] : found->second.threads) end(thread);
  processes_.erase(found);
}

void ThreadStates::read() {
  const pid_t newest = newest_id();
  const bool fresh = newest != newest_ || newest == 0;  // else nobody made a thread
  newest_ = newest;
  for (auto& [pid, process] : processes_) {
    auto& threads = process.threads;
    if (fresh || threads.empty()) list(pid, process);
    for (auto at = threads.begin(); at != threads.end();) {
      if (read(at->second)) {
        ++at;
        continue;
      }
      end(at->second);
      at = threads.erase(at);
    }
  }
}

void ThreadStates::list(pid_t pid, Process& process) {
  const std::uint64_t now = wire::now_ns();
  for (const pid_t tid : host::threads(pid)) {
    if (process.threads.contains(tid)) continue;
    if (open_threads_ >= kMostThreads) {
      ++left_out_;
      continue;
    }
    Thread thread;
    thread.times.pid = pid;
    thread.times.tid = tid;
    thread.times.first = true;
    open(thread, now, process.from_now);
    if (thread.schedstat >= 0) process.threads.emplace(tid, std::move(thread));
  }
  process.from_now = false;
}

// A thread that is young was seen from its begin: what it used until now counts.
void ThreadStates::open(Thread& thread, std::uint64_t now_ns, bool from_now) {
  const pid_t pid = thread.times.pid, tid = thread.times.tid;
  thread.schedstat = open_of(pid, tid, "schedstat");
  if (thread.schedstat < 0) return;
  ++open_threads_;
  thread.syscall = open_of(pid, tid, "syscall");
  if (auto name = base::read_file(fmt::format("/proc/{}/task/{}/comm", pid, tid), 64))
    thread.times.name = name->substr(0, name->find('\n'));
  const auto stat = read_stat(pid, tid);
  const std::uint64_t age = stat && !from_now ? age_ns(*stat) : kYoungNs;
  thread.read_ns = age < kYoungNs ? now_ns - std::min(age, now_ns) : now_ns;
  if (age < kYoungNs || !stat) return;
  thread.counted_user_ns = stat->user_ns;
  thread.counted_system_ns = stat->system_ns;
  ShortText text;
  std::array<std::uint64_t, 2> used{};
  parse_numbers(read_text(thread.schedstat, text), used);
  thread.cpu_ns = used[0];
  thread.queue_ns = used[1];
}

// False: the thread is no more.
bool ThreadStates::read(Thread& thread) {
  ShortText text;
  std::array<std::uint64_t, 2> used{};
  if (parse_numbers(read_text(thread.schedstat, text), used) < used.size()) return false;
  const std::uint64_t now = wire::now_ns();
  const std::uint64_t cpu = used[0] - std::min(used[0], thread.cpu_ns);
  const std::uint64_t queued = used[1] - std::min(used[1], thread.queue_ns);
  thread.pending_ns += static_cast<std::int64_t>(now - thread.read_ns) - static_cast<std::int64_t>(cpu + queued);
  thread.read_ns = now;
  thread.cpu_ns = used[0];
  thread.queue_ns = used[1];
  thread.on_cpu_ns += cpu;
  thread.times.ns[static_cast<std::size_t>(ThreadState::kRunQueue)] += queued;
  const ThreadState state = look(thread);
  if (state != ThreadState::kUnseen && thread.pending_ns > 0)
    thread.times.ns[static_cast<std::size_t>(state)] += static_cast<std::uint64_t>(std::exchange(thread.pending_ns, 0));
  return true;
}

ThreadState ThreadStates::look(Thread& thread) {
  ShortText text;
  errno = 0;
  if (const std::string_view call = read_text(thread.syscall, text); !call.empty())
    return state_of_syscall(call, thread.times.pid);
  // Not permitted, or not in this kernel: the function that it waits in tells nearly as much.
  const pid_t pid = thread.times.pid, tid = thread.times.tid;
  const int error = thread.syscall < 0 ? EACCES : errno;
  if (problem_.empty() && error != ESRCH)
    problem_ = fmt::format("/proc/PID/task/TID/syscall: {}", error != 0 ? std::strerror(error) : "empty");
  const auto stat = read_stat(pid, tid);
  if (!stat || stat->state == 'R' || stat->ended()) return ThreadState::kUnseen;
  const auto wchan = base::read_file(fmt::format("/proc/{}/task/{}/wchan", pid, tid), 128);
  const ThreadState state = wchan ? state_of_wchan(*wchan) : ThreadState::kOther;
  return state == ThreadState::kOther && stat->state == 'D' ? ThreadState::kIo : state;
}

// CPU time into user and system, as the kernel's ticks are divided; and what nobody saw the cause of.
void ThreadStates::divide(Thread& thread) {
  if (const auto stat = read_stat(thread.times.pid, thread.times.tid)) {
    const std::uint64_t user = stat->user_ns - std::min(stat->user_ns, thread.counted_user_ns);
    const std::uint64_t system = stat->system_ns - std::min(stat->system_ns, thread.counted_system_ns);
    if (user + system > 0) thread.system_share = static_cast<double>(system) / static_cast<double>(user + system);
    thread.counted_user_ns = stat->user_ns;
    thread.counted_system_ns = stat->system_ns;
  }
  auto& ns = thread.times.ns;
  const auto system = static_cast<std::uint64_t>(thread.system_share * static_cast<double>(thread.on_cpu_ns));
  ns[static_cast<std::size_t>(ThreadState::kSystem)] += system;
  ns[static_cast<std::size_t>(ThreadState::kUser)] += std::exchange(thread.on_cpu_ns, 0) - system;
  if (thread.pending_ns <= kLateNs) return;
  ns[static_cast<std::size_t>(ThreadState::kUnseen)] += static_cast<std::uint64_t>(std::exchange(thread.pending_ns, 0));
}

std::vector<ThreadTimes> ThreadStates::take() {
  std::vector<ThreadTimes> out = std::exchange(gone_, {});
  for (auto& [pid, process] : processes_) {
    for (auto& [tid, thread] : process.threads) {
      divide(thread);
      out.push_back(thread.times);
      thread.times.ns = {};
      thread.times.first = false;
    }
  }
  return out;
}

CpuGroup parse_cpu_stat(std::string_view text) {
  CpuGroup group;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    std::array<std::uint64_t, 1> value{};
    parse_numbers(line.substr(blank), value);
    const std::string_view key = line.substr(0, blank);
    if (key == "nr_periods") group.periods = value[0];
    if (key == "nr_throttled") group.throttled = value[0];
    if (key == "throttled_usec") group.throttled_ns = value[0] * 1000;
    if (key == "throttled_time") group.throttled_ns = value[0];
  }
  return group;
}

// "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/12" (version 1). In a container the path may be that of the
// host: then the group is the one at the top.
CpuGroupFile::CpuGroupFile(pid_t pid) {
  const auto text = base::read_file(fmt::format("/proc/{}/cgroup", pid), 1 << 16);
  if (!text) return;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto parts = base::split(line, ':');
    if (parts.size() < 3) continue;
    const auto controllers = base::split(parts[1], ',');
    if (!parts[1].empty() && std::ranges::find(controllers, "cpu") == controllers.end()) continue;
    const std::string top = parts[1].empty() ? "" : fmt::format("/{}", parts[1]);
    const std::string path(line.substr(line.find(parts[2], parts[0].size() + parts[1].size() + 2)));
    for (const std::string& folder : {"/sys/fs/cgroup" + top + path, "/sys/fs/cgroup" + top}) {
      if (base::is_file(folder + "/cpu.stat")) {
        folder_ = folder;
        return;
      }
    }
  }
}

CpuGroup CpuGroupFile::read() const {
  const auto text = [&](const char* name) {
    auto read = base::read_file(folder_ + name, 1 << 16);
    return read ? *read : std::string();
  };
  CpuGroup group = parse_cpu_stat(text("/cpu.stat"));
  std::array<std::uint64_t, 2> limit{};
  if (parse_numbers(text("/cpu.max"), limit) == limit.size()) {  // "max 100000" has no number in front
    group.quota_us = limit[0];
    group.period_us = limit[1];
  } else {
    std::array<std::uint64_t, 1> quota{}, period{};
    if (parse_numbers(text("/cpu.cfs_quota_us"), quota) == 1 &&
        parse_numbers(text("/cpu.cfs_period_us"), period) == 1) {
      group.quota_us = quota[0];
      group.period_us = period[0];
    }
  }
  return group;
}

}  // namespace llmprof::host

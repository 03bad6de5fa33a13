#pragma once
// Where the time of threads goes, seen from outside: on a CPU, waiting for one, or blocked, and what by. From
// /proc/PID/task/TID/{schedstat,stat,syscall,wchan}: reading them stops nobody. Times on a CPU and in the run queue are
// the kernel's own; blocked time counts for what the thread was seen to wait for at the next reading that finds it
// blocked.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/format.h"

namespace llmprof::host {

using wire::ThreadState;
// As the table thread_time says it.
inline constexpr const char* kThreadStateNames[] = {"user",  "system", "run queue", "lock", "I/O",   "network",
                                                    "sleep", "child",  "GPU",       "pipe", "other", "unseen"};
inline constexpr std::size_t kThreadStates = static_cast<std::size_t>(ThreadState::kUnseen) + 1;

// What a blocked thread waits for, by the text of /proc/PID/task/TID/syscall. kUnseen: it is not blocked. `pid`: whose
// descriptors the arguments of the call name.
ThreadState state_of_syscall(std::string_view text, pid_t pid);
// The same by /proc/PID/task/TID/wchan, which more users may read: a function of the kernel.
ThreadState state_of_wchan(std::string_view function);
// What a descriptor is for, by the target of its link: "socket:[12]", "/dev/nvidia0", "/data/weights".
ThreadState state_of_file(std::string_view target);

struct ThreadTimes {  // of one thread since they were taken last
  pid_t pid = 0, tid = 0;
  std::string name;
  bool first = false;  // never taken before
  std::array<std::uint64_t, kThreadStates> ns{};

  std::uint64_t at(ThreadState state) const { return ns[static_cast<std::size_t>(state)]; }
};

class ThreadStates {
 public:
  ThreadStates() = default;
  ThreadStates(const ThreadStates&) = delete;
  ThreadStates& operator=(const ThreadStates&) = delete;
  ~ThreadStates();

  // `from_now`: what its threads did before does not count, however young they are.
  void follow(pid_t pid, bool from_now = false) { processes_[pid].from_now = from_now; }
  void ended(pid_t pid);
  void read();                      // all threads, once
  std::vector<ThreadTimes> take();  // what gathered; threads that ended come a last time

  std::uint64_t left_out() const { return left_out_; }     // threads beyond those that are read
  const std::string& problem() const { return problem_; }  // why causes are unknown; "" they are known

 private:
  struct Thread {
    ThreadTimes times;
    int schedstat = -1, syscall = -1;  // descriptors
    std::uint64_t read_ns = 0, cpu_ns = 0, queue_ns = 0;
    std::int64_t pending_ns = 0;  // blocked, cause not seen yet; below 0: the kernel's count was late
    std::uint64_t on_cpu_ns = 0;  // not divided into user and system yet
    std::uint64_t counted_user_ns = 0, counted_system_ns = 0;
    double system_share = 0;  // of CPU time, when last divided
    bool over = false;
  };
  struct Process {
    std::map<pid_t, Thread> threads;
    bool from_now = false;
  };
  void list(pid_t pid, Process& process);
  void open(Thread& thread, std::uint64_t now_ns, bool from_now);
  bool read(Thread& thread);
  ThreadState look(Thread& thread);
  void divide(Thread& thread);
  void close(Thread& thread);
  void end(Thread& thread);

  std::map<pid_t, Process> processes_;
  std::vector<ThreadTimes> gone_;
  std::size_t open_threads_ = 0;
  pid_t newest_ = 0;
  std::uint64_t left_out_ = 0;
  std::string problem_;
};

// CPU time that the limit of a control group took away (cpu.stat, cpu.max; version 1: cpu.cfs_quota_us).
struct CpuGroup {
  std::uint64_t periods = 0, throttled = 0, throttled_ns = 0;  // since the group was made
  std::uint64_t quota_us = 0, period_us = 0;                   // 0: no limit
};
CpuGroup parse_cpu_stat(std::string_view text);  // both versions

// The group of a process, found once.
class CpuGroupFile {
 public:
  CpuGroupFile() = default;
  explicit CpuGroupFile(pid_t pid);
  bool found() const { return !folder_.empty(); }
  CpuGroup read() const;

 private:
  std::string folder_;
};

}  // namespace llmprof::host

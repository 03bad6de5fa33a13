#pragma once
// Follows processes and writes what they use into the recorder's log. One thread at a time.

#include <sys/resource.h>
#include <sys/types.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/host_log.h"
#include "host/model_files.h"
#include "host/proc.h"
#include "wire/clock.h"

namespace llmprof::host {

using wire::now_ns;

// When a process was made, by its age: the kernel keeps that in ticks of a hundredth of a second since the boot.
inline std::uint64_t made_ns(const ProcStat& stat, std::uint64_t seen_ns) {
  const std::uint64_t age = age_ns(stat);
  constexpr std::uint64_t kOldest = 1'000'000'000;  // looks come far more often: else it is some other clock's time
  return age < kOldest && age < seen_ns ? seen_ns - age : seen_ns;
}

inline std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class Usage {
 public:
  // A process that was just forked mostly becomes another program at once. Until then it looks like its parent, and the
  // memory that both share would count twice: it is not read before `exec_soon_ns` have passed.
  explicit Usage(HostLog& log, std::uint64_t exec_soon_ns = 100'000'000) : log_(log), exec_soon_ns_(exec_soon_ns) {}

  void follow(pid_t pid) {
    Process process;
    process.pid = pid;
    process.stat = StatFile(pid);
    if (!process.stat.is_open()) {
      if (process.stat.error() != ENOENT && process.stat.error() != ESRCH) ++unreadable_;  // else it is gone already
      return;
    }
    const auto stat = process.stat.read();
    if (!stat || stat->pid != pid) return;
    process.last = *stat;
    look_at_image(process);
    process.begin_ns = made_ns(*stat, process.image_ns);
    process.image = stat->image;
    if (const Process* parent = find(stat->parent)) process.forked = parent->image == stat->image;
    read_more(process);
    process.followed_ns = now_ns();
    process.waited_before_ns = read_core_wait_ns(pid).value_or(0);
    followed_.push_back(std::move(process));
  }

  // One reading of every process: memory, CPU time, faults, threads. Returns those that ended since the last.
  std::vector<pid_t> read() {
    std::vector<pid_t> gone;
    std::erase_if(followed_, [&](Process& process) {
      if (read(process)) return false;
      finish(process);
      ended_cpu_ns_ += process.last.user_ns + process.last.system_ns;
      gone.push_back(process.pid);
      return true;
    });
    return gone;
  }

  // One reading of what costs more: I/O, context switches, memory peak.
  void read_more() {
    for (Process& process : followed_) {
      if (process.over) continue;
      read_more(process);
      add_more(process);
      look_at_wait(process);
    }
    machine_ = read_machine_time();
  }

  // For the files of models that processes have mapped or open.
  void look_at_files() {
    for (const Process& process : followed_) {
      if (!process.over) model_files_.look_at_files(process.pid);
    }
  }

  // The last numbers of a process that ended and was not collected yet.
  void last_reading(pid_t pid) {
    Process* process = find(pid);
    if (process == nullptr) return;
    if (const auto io = read_io(pid)) {
      process->more.read_bytes = io->read_bytes;
      process->more.written_bytes = io->written_bytes;
    }
    (void)read(*process);
  }

  // What its collector got. The kernel keeps some numbers only there: switches of threads that are gone, and the memory
  // peak to its end. Both are mixed with those of its children if it had any; then they are left out. `peak_before` is
  // its peak before it became the program: the kernel's peak covers that time too.
  void collected(pid_t pid, const rusage& used, std::uint64_t peak_before) {
    Process* process = find(pid);
    if (process == nullptr || process->last.children_minor_faults != 0) return;
    wire::IoRecord& more = process->more;
    more.ts_ns = now_ns();
    more.voluntary_switches = static_cast<std::uint64_t>(used.ru_nvcsw);
    more.involuntary_switches = static_cast<std::uint64_t>(used.ru_nivcsw);
    const auto peak = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    constexpr std::uint64_t kUntilExec = 1 << 20;  // what it may have touched between our look and its exec
    if (peak > peak_before + kUntilExec) more.peak_rss_bytes = std::max(more.peak_rss_bytes, peak);
    add_more(*process);
  }

  // up to the last reading
  Contention contention() const {
    Contention out = worst_;
    if (!machine_ || !machine_before_ || machine_->all() <= machine_before_->all()) return out;
    const auto all = static_cast<double>(machine_->all() - machine_before_->all());
    const auto busy = static_cast<double>(machine_->busy - machine_before_->busy);
    const double tick_ns = 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    double own_ns = static_cast<double>(ended_cpu_ns_);
    for (const Process& process : followed_)
      own_ns += static_cast<double>(process.last.user_ns + process.last.system_ns);
    own_ns += static_cast<double>(wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    out.others = std::max(0.0, busy - own_ns / tick_ns) / all;
    out.stolen = static_cast<double>(machine_->stolen - machine_before_->stolen) / all;
    return out;
  }

  std::size_t processes() const { return followed_.size(); }
  std::uint64_t unreadable() const { return unreadable_; }
  const std::vector<ModelFile>& model_files() const { return model_files_.found(); }

 private:
  struct Switches {
    std::uint64_t voluntary = 0, involuntary = 0;
  };
  struct Process {
    pid_t pid = 0;
    StatFile stat;
    ProcStat last;
    std::uint64_t image = 0;
    std::uint64_t image_ns = 0;  // when the image was first seen
    std::uint64_t begin_ns = 0;  // when it began: of the first one when the process was made
    std::string executable, arguments;
    bool forked = false;     // it is still the image of its parent, whose memory it shares
    bool announced = false;  // the image is in the log
    bool over = false;       // it ended; its numbers are final
    wire::IoRecord more{};
    std::uint64_t followed_ns = 0;       // since when
    std::uint64_t waited_before_ns = 0;  // for a core, before that
    std::map<pid_t, Switches> threads;   // at their last reading
    Switches gone;                       // of threads that ended
  };

  // False: the process is no more.
  bool read(Process& process) {
    const auto stat = process.stat.read();
    if (!stat) return false;
    if (process.over) return true;
    process.last = *stat;
    if (stat->image != 0 && stat->image != process.image) {
      process.image = stat->image;
      look_at_image(process);
      if (process.announced) process.begin_ns = process.image_ns;  // else nobody saw the image before it
      process.announced = process.forked = false;
    } else if (!process.announced) {
      if (may_still_exec(process)) return true;
      announce(process);
    }
    log_.add(wire::RecordKind::kUsage).usage = {.ts_ns = now_ns(),
                                                .rss_bytes = stat->rss_bytes,
                                                .user_ns = stat->user_ns,
                                                .system_ns = stat->system_ns,
                                                .minor_faults = stat->minor_faults,
                                                .major_faults = stat->major_faults,
                                                .pid = static_cast<std::uint32_t>(process.pid),
                                                .threads = stat->threads};
    if (stat->ended()) finish(process);
    return true;
  }

  void look_at_image(Process& process) {
    process.image_ns = now_ns();
    process.executable = executable(process.pid);
    process.arguments = arguments(process.pid);
    // Not those of ourselves, before the program takes our child's place.
    static const std::string own = executable(::getpid());
    if (process.executable != own) model_files_.look_at_arguments(process.pid, process.arguments);
  }

  void announce(Process& process) {
    log_.add(wire::RecordKind::kProcess).process = {.ts_ns = process.begin_ns,
                                                    .pid = static_cast<std::uint64_t>(process.pid),
                                                    .parent_pid = static_cast<std::uint64_t>(process.last.parent),
                                                    .start_ticks = process.last.start_ticks,
                                                    .executable = log_.name(process.executable),
                                                    .arguments = log_.name(process.arguments),
                                                    .host = log_.name(host_name())};
    process.announced = true;
  }

  void finish(Process& process) {
    if (std::exchange(process.over, true)) return;
    if (!process.announced) announce(process);
    add_more(process);
    log_.add(wire::RecordKind::kProcess).process = {.ts_ns = now_ns(),
                                                    .pid = static_cast<std::uint64_t>(process.pid),
                                                    .start_ticks = process.last.start_ticks,
                                                    .ended = 1};
  }

  void read_more(Process& process) {
    wire::IoRecord& more = process.more;
    more.ts_ns = now_ns();
    more.pid = static_cast<std::uint32_t>(process.pid);
    const auto io = read_io(process.pid);
    more.read_bytes = io ? io->read_bytes : kUnreadable;
    more.written_bytes = io ? io->written_bytes : kUnreadable;
    std::map<pid_t, Switches> now;
    for (const pid_t thread : threads(process.pid)) {
      const auto status = read_status(process.pid, thread);
      if (!status) continue;
      now[thread] = {status->voluntary_switches, status->involuntary_switches};
      if (thread == process.pid) more.peak_rss_bytes = std::max(more.peak_rss_bytes, status->peak_rss_bytes);
    }
    if (now.empty()) return;  // it ended: what was read last stands
    for (const auto& [thread, switches] : process.threads) {
      if (now.contains(thread)) continue;
      process.gone.voluntary += switches.voluntary;
      process.gone.involuntary += switches.involuntary;
    }
    process.threads = std::move(now);
    more.voluntary_switches = process.gone.voluntary;
    more.involuntary_switches = process.gone.involuntary;
    for (const auto& [thread, switches] : process.threads) {
      more.voluntary_switches += switches.voluntary;
      more.involuntary_switches += switches.involuntary;
    }
  }

  void add_more(const Process& process) { log_.add(wire::RecordKind::kIo).io = process.more; }
  void look_at_wait(Process& process) {
    const auto waited = read_core_wait_ns(process.pid);
    if (!waited || *waited < process.waited_before_ns || *waited - process.waited_before_ns <= worst_.waited_ns) return;
    worst_.waited_ns = *waited - process.waited_before_ns;
    worst_.lived_ns = now_ns() - process.followed_ns;
  }

  bool may_still_exec(const Process& process) const {
    return process.forked && !process.last.ended() && now_ns() - process.image_ns < exec_soon_ns_;
  }

  Process* find(pid_t pid) {
    const auto found = std::find_if(followed_.begin(), followed_.end(), [&](const Process& p) { return p.pid == pid; });
    return found == followed_.end() ? nullptr : &*found;
  }

  HostLog& log_;
  std::uint64_t exec_soon_ns_;
  std::vector<Process> followed_;
  ModelFiles model_files_;
  std::uint64_t unreadable_ = 0;
  std::optional<MachineTime> machine_before_ = read_machine_time(), machine_;
  std::uint64_t ended_cpu_ns_ = 0;  // of followed processes that ended
  Contention worst_;
};

}  // namespace llmprof::host

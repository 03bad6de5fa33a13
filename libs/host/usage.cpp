#include "host/usage.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace llmprof::host {
namespace {

// When a process was made, by its age: the kernel keeps that in ticks of a hundredth of a second since the boot.
std::uint64_t made_ns(const ProcStat& stat, std::uint64_t seen_ns) {
  const auto ticks_per_s = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  const std::uint64_t made = stat.start_ticks * (1'000'000'000u / ticks_per_s),
                      now = wire::read_clock_ns(CLOCK_BOOTTIME);
  const std::uint64_t age = made < now ? now - made : 0;
  constexpr std::uint64_t kOldest = 1'000'000'000;  // looks come far more often: else it is some other clock's time
  return age < kOldest && age < seen_ns ? seen_ns - age : seen_ns;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

void Usage::follow(pid_t pid) {
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

std::vector<pid_t> Usage::read() {
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

// False: the process is no more.
bool Usage::read(Process& process) {
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
  wire::Record record = HostLog::make(wire::RecordKind::kUsage);
  record.usage = {.ts_ns = now_ns(),
                  .rss_bytes = stat->rss_bytes,
                  .user_ns = stat->user_ns,
                  .system_ns = stat->system_ns,
                  .minor_faults = stat->minor_faults,
                  .major_faults = stat->major_faults,
                  .pid = static_cast<std::uint32_t>(process.pid),
                  .threads = stat->threads};
  log_.add(record);
  if (stat->ended()) finish(process);
  return true;
}

bool Usage::may_still_exec(const Process& process) const {
  return process.forked && !process.last.ended() && now_ns() - process.image_ns < exec_soon_ns_;
}

void Usage::look_at_image(Process& process) {
  process.image_ns = now_ns();
  process.executable = executable(process.pid);
  process.arguments = arguments(process.pid);
  // Not those of ourselves, before the program takes our child's place.
  static const std::string own = executable(::getpid());
  if (process.executable != own) model_files_.look_at_arguments(process.pid, process.arguments);
}

void Usage::announce(Process& process) {
  wire::Record record = HostLog::make(wire::RecordKind::kProcess);
  record.process = {.ts_ns = process.begin_ns,
                    .pid = static_cast<std::uint64_t>(process.pid),
                    .parent_pid = static_cast<std::uint64_t>(process.last.parent),
                    .start_ticks = process.last.start_ticks,
                    .executable = log_.name(process.executable),
                    .arguments = log_.name(process.arguments),
                    .host = log_.name(host_name())};
  log_.add(record);
  process.announced = true;
}

void Usage::finish(Process& process) {
  if (std::exchange(process.over, true)) return;
  if (!process.announced) announce(process);
  wire::Record record = HostLog::make(wire::RecordKind::kProcess);
  record.process = {.ts_ns = now_ns(),
                    .pid = static_cast<std::uint64_t>(process.pid),
                    .start_ticks = process.last.start_ticks,
                    .ended = 1};
  add_more(process);
  log_.add(record);
}

void Usage::read_more() {
  for (Process& process : followed_) {
    if (process.over) continue;
    read_more(process);
    add_more(process);
    look_at_wait(process);
  }
  machine_ = read_machine_time();
}

void Usage::look_at_wait(Process& process) {
  const auto waited = read_core_wait_ns(process.pid);
  if (!waited || *waited < process.waited_before_ns || *waited - process.waited_before_ns <= worst_.waited_ns) return;
  worst_.waited_ns = *waited - process.waited_before_ns;
  worst_.lived_ns = now_ns() - process.followed_ns;
}

Contention Usage::contention() const {
  Contention out = worst_;
  if (!machine_ || !machine_before_ || machine_->all() <= machine_before_->all()) return out;
  const auto all = static_cast<double>(machine_->all() - machine_before_->all());
  const auto busy = static_cast<double>(machine_->busy - machine_before_->busy);
  const double tick_ns = 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  double own_ns = static_cast<double>(ended_cpu_ns_);
  for (const Process& process : followed_) own_ns += static_cast<double>(process.last.user_ns + process.last.system_ns);
  own_ns += static_cast<double>(wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
  out.others = std::max(0.0, busy - own_ns / tick_ns) / all;
  out.stolen = static_cast<double>(machine_->stolen - machine_before_->stolen) / all;
  return out;
}

void Usage::look_at_files() {
  for (const Process& process : followed_) {
    if (!process.over) model_files_.look_at_files(process.pid);
  }
}

void Usage::read_more(Process& process) {
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

void Usage::add_more(const Process& process) {
  wire::Record record = HostLog::make(wire::RecordKind::kIo);
  record.io = process.more;
  log_.add(record);
}

Usage::Process* Usage::find(pid_t pid) {
  const auto found = std::find_if(followed_.begin(), followed_.end(), [&](const Process& p) { return p.pid == pid; });
  return found == followed_.end() ? nullptr : &*found;
}

void Usage::last_reading(pid_t pid) {
  Process* process = find(pid);
  if (process == nullptr) return;
  if (const auto io = read_io(pid)) {
    process->more.read_bytes = io->read_bytes;
    process->more.written_bytes = io->written_bytes;
  }
  (void)read(*process);
}

void Usage::collected(pid_t pid, const rusage& used, std::uint64_t peak_before) {
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

}  // namespace llmprof::host

#pragma once
// What /proc says: of one process, of the machine, and which processes descend from one.

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::host {

// What /proc says of one process. Reading it stops nobody and needs no rights beyond those of the same user.

// /proc/PID/stat: numbers of the whole process, all threads, also of those that ended.
struct ProcStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  std::uint64_t minor_faults = 0, major_faults = 0;
  std::uint64_t children_minor_faults = 0;  // of children that ended and were waited for
  std::uint64_t user_ns = 0, system_ns = 0;
  std::uint32_t threads = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t image = 0;  // changes when the process executes another program; 0: it is ending

  // Z: ended, not yet waited for. A process whose first thread ended alone looks the same, but has other threads.
  bool ended() const { return (state == 'Z' && threads <= 1) || state == 'X'; }
};
std::optional<ProcStat> parse_stat(std::string_view text);
std::optional<std::uint64_t> parse_statm(std::string_view text);  // resident bytes

// An open /proc/PID/stat, and statm: newer kernels count resident memory exactly only there. It names one process for
// ever: when the pid is used again, it reads nothing.
class StatFile {
 public:
  StatFile() = default;
  explicit StatFile(pid_t pid);
  StatFile(StatFile&& other) noexcept;
  StatFile& operator=(StatFile&& other) noexcept;
  ~StatFile();

  bool is_open() const { return descriptor_ >= 0; }
  int error() const { return error_; }  // errno of the open
  std::optional<ProcStat> read() const;

 private:
  int descriptor_ = -1;
  int memory_ = -1;
  int error_ = 0;
};
std::optional<ProcStat> read_stat(pid_t pid);                // once, stat alone
std::optional<ProcStat> read_stat(pid_t pid, pid_t thread);  // CPU times of the one thread
std::uint64_t age_ns(
    const ProcStat& stat);  // by the kernel's ticks of a hundredth of a second; 0: it was made just now

struct ProcStatus {
  pid_t process = 0;                 // id of the process; differs from the id asked for when that is a thread's
  std::uint64_t peak_rss_bytes = 0;  // of this image; 0: ended
  std::uint64_t voluntary_switches = 0, involuntary_switches = 0;  // of the one thread
};
ProcStatus parse_status(std::string_view text);
std::optional<ProcStatus> read_status(pid_t pid);
std::optional<ProcStatus> read_status(pid_t pid, pid_t thread);
pid_t innermost_pid(pid_t pid);  // as the process itself counts, in its container; `pid` if that is not known

struct ProcIo {
  std::uint64_t read_bytes = 0, written_bytes = 0;  // from and to storage
};
std::optional<ProcIo> parse_io(std::string_view text);
std::optional<ProcIo> read_io(pid_t pid);

// How long the main thread of a process waited for a core although it could have run, since it began; nullopt: the
// kernel does not say.
std::optional<std::uint64_t> parse_schedstat(std::string_view text);
std::optional<std::uint64_t> read_core_wait_ns(pid_t pid);

struct MachineTime {  // CPU time of the whole machine, all cores added up, in ticks
  std::uint64_t busy = 0, idle = 0, stolen = 0;
  std::uint64_t all() const { return busy + idle + stolen; }
};
std::optional<MachineTime> parse_machine_time(std::string_view text);  // of /proc/stat
std::optional<MachineTime> read_machine_time();

std::vector<pid_t> processes();         // all that can be seen
std::vector<pid_t> threads(pid_t pid);  // of one process
// The id that was given out last: while it stays the same, no process and no thread was made. 0: unknown.
pid_t newest_id();

std::string link_target(const std::string& path);        // "" if it cannot be read
std::string executable(pid_t pid);                       // "" if it cannot be read
std::string arguments(pid_t pid);                        // joined by '\0', the first 4 KiB
bool has_variable(pid_t pid, std::string_view setting);  // whether it was started with "NAME=value" in its environment
std::string variable(pid_t pid, std::string_view name);  // of the environment it was started with; "" if not set
std::string maps(pid_t pid, std::size_t limit);          // the text of /proc/PID/maps, so much of it

// Finds the processes that descend from one. Looking is cheap while nobody makes processes or threads: one read.
class ProcessTree {
 public:
  // `setting`, "NAME=value", stands in the environment of the root: it tells a process whose parents ended before it
  // was seen. "": those are missed.
  ProcessTree(pid_t root, std::string setting);

  // Processes of the tree that were not there at the last call; the root at the first.
  std::vector<pid_t> look();
  void ended(pid_t pid) { members_.erase(pid); }

 private:
  struct Candidate {
    pid_t pid = 0, parent = 0;
  };
  std::vector<Candidate> newly_made(pid_t newest);
  std::vector<Candidate> not_yet_seen();
  bool belongs(const Candidate& candidate) const;

  std::string setting_;
  std::uint64_t root_start_ticks_ = 0;
  std::set<pid_t> members_;
  std::set<pid_t> adopters_;   // who may become the parent of an orphan: our own ancestors and we
  std::set<pid_t> foreign_;    // alive at the last full look, not of the tree
  pid_t newest_ = 0;           // id given out last, at the last look
  std::vector<pid_t> unborn_;  // given out, but not there at the last look
  std::vector<pid_t> found_;
};

// Whether the machine had cores for the program.
struct Contention {
  std::uint64_t waited_ns = 0,
                lived_ns = 0;     // of the main thread that waited longest for a core, while it was followed
  double others = 0, stolen = 0;  // of the machine's CPU time: other programs, and its hypervisor
};

}  // namespace llmprof::host

#pragma once
// Follows processes and writes what they use into the recorder's log. One thread at a time.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/host_log.h"
#include "host/model_files.h"
#include "host/proc.h"
#include "wire/clock.h"

namespace llmprof::host {

using wire::now_ns;

// Whether the machine had cores for the program.
struct Contention {
  std::uint64_t waited_ns = 0,
                lived_ns = 0;     // of the main thread that waited longest for a core, while it was followed
  double others = 0, stolen = 0;  // of the machine's CPU time: other programs, and its hypervisor
};

class Usage {
 public:
  // A process that was just forked mostly becomes another program at once. Until then it looks like its parent, and the
  // memory that both share would count twice: it is not read before `exec_soon_ns` have passed.
  explicit Usage(HostLog& log, std::uint64_t exec_soon_ns = 100'000'000) : log_(log), exec_soon_ns_(exec_soon_ns) {}

  void follow(pid_t pid);
  // One reading of every process: memory, CPU time, faults, threads. Returns those that ended since the last.
  std::vector<pid_t> read();
  // One reading of what costs more: I/O, context switches, memory peak.
  void read_more();
  // For the files of models that processes have mapped or open.
  void look_at_files();

  // The last numbers of a process that ended and was not collected yet.
  void last_reading(pid_t pid);
  // What its collector got. The kernel keeps some numbers only there: switches of threads that are gone, and the memory
  // peak to its end. Both are mixed with those of its children if it had any; then they are left out. `peak_before` is
  // its peak before it became the program: the kernel's peak covers that time too.
  void collected(pid_t pid, const rusage& used, std::uint64_t peak_before);

  Contention contention() const;  // up to the last reading
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

  bool read(Process& process);
  void look_at_image(Process& process);
  void announce(Process& process);
  void finish(Process& process);
  void read_more(Process& process);
  void add_more(const Process& process);
  void look_at_wait(Process& process);
  bool may_still_exec(const Process& process) const;
  Process* find(pid_t pid);

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

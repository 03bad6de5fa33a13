#pragma once
// Processes and threads. Nsight numbers them over all machines of a report; a number is made of (from the highest bit)
// 8 bits of hardware, 8 bits of virtual machine, 24 bits of process id and 24 bits of thread id, 0 for "the process".
// Correlation ids are counted per process, so joins are made per process.

#include <map>
#include <unordered_map>
#include <vector>

#include "importers/nsys_sqlite/strings.h"

namespace llmprof::importers::nsys {

inline constexpr std::int64_t kTimeLimitNs = std::int64_t{1} << 61;  // about 73 years either way
inline bool is_time(std::int64_t ns) { return ns > -kTimeLimitNs && ns < kTimeLimitNs; }

class Actors {
 public:
  using Index = std::uint16_t;  // 0: unknown

  Actors(Database& database, Strings& strings) : database_(database), strings_(strings) {}

  // The process of a process's or thread's number. Without a number: the first process that was seen.
  Index process(std::optional<std::int64_t> global);
  // `begin_ns` and `end_ns`: it did something then.
  Index thread(std::int64_t global, std::int64_t begin_ns, std::int64_t end_ns);
  trace::Id process_id(Index process) const { return processes_[process].id; }
  trace::Id thread_id(Index thread) const { return threads_[thread].id; }
  Index process_of(Index thread) const { return threads_[thread].process; }
  std::int64_t pid(Index process) const { return processes_[process].pid; }
  void saw(Index process, std::int64_t begin_ns, std::int64_t end_ns);
  std::int64_t last_ns(Index process) const { return processes_[process].last_ns; }

  struct Host {
    std::string name;
    trace::OptionalInt rank;
    std::string arguments;  // of the process that was launched
  };
  // The rows of all that were seen, with the names that PROCESSES and ThreadNames give.
  Result<void> write(const Host& host);

 private:
  struct Process {
    trace::Id id = 0;
    std::int64_t pid = 0;
    std::int64_t first_ns = 0, last_ns = 0;
    bool timed = false;
  };
  struct Thread {
    trace::Id id = 0;
    std::int64_t tid = 0;
    Index process = 0;
    std::int64_t first_ns = 0;
  };
  Result<std::unordered_map<std::int64_t, trace::Name>> thread_names();
  Result<std::map<std::int64_t, trace::Name>> process_names();

  Database& database_;
  Strings& strings_;
  std::vector<Process> processes_{1};
  std::vector<Thread> threads_{1};
  std::unordered_map<std::int64_t, Index> process_index_, thread_index_;
  std::int64_t last_process_ = -1, last_thread_ = -1;  // rows of one thread follow each other
  Index last_process_index_ = 0, last_thread_index_ = 0;
};

}  // namespace llmprof::importers::nsys

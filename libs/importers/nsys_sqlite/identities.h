#pragma once
// What the rows of an export refer to: texts, processes, threads and devices.

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "importers/nsys_sqlite/database.h"

namespace llmprof::importers::nsys {

// Names by number: numbers are small and dense in practice, which an array is best for.
class NameCache {
 public:
  template <class Make>
  trace::Name get(std::int64_t number, const Make& make) {
    if (number >= 0 && number < kDense) {
      const auto index = static_cast<std::size_t>(number);
      if (index >= dense_.size()) dense_.resize(index + 1);
      if (dense_[index].id == 0) dense_[index] = make();
      return dense_[index];
    }
    trace::Name& name = sparse_[number];
    if (name.id == 0) name = make();
    if (sparse_.size() > kMostSparse) sparse_.clear();
    return name;
  }

 private:
  static constexpr std::int64_t kDense = 1 << 20;
  static constexpr std::size_t kMostSparse = 1 << 20;
  std::vector<trace::Name> dense_;
  std::unordered_map<std::int64_t, trace::Name> sparse_;
};

// Texts of the table StringIds, by their number, and what is made of them. Only those that are asked for are read.
class Strings {
 public:
  explicit Strings(Database& database) : database_(database), table_(database.find_table("StringIds")) {}

  // A number that StringIds does not have is "<missing name N>", counted once.
  trace::Name name(std::int64_t number);
  // A function of the CUDA runtime without the version that Nsight adds: "cudaLaunchKernel_v7000".
  trace::Name runtime_function(std::int64_t number);
  // As llmprof's own capture names kernels: base/kernel_name.h. Numbers of texts; the first that is there counts.
  trace::Name kernel(std::optional<std::int64_t> mangled, std::optional<std::int64_t> demangled,
                     std::optional<std::int64_t> short_name);
  std::string text(std::int64_t number);
  bool is(std::int64_t number, std::string_view text);

 private:
  Database& database_;
  std::string table_;
  NameCache names_, functions_, mangled_, demangled_;
};

// Processes and threads. Nsight numbers them over all machines of a report; a number is made of (from the highest bit)
// 8 bits of hardware, 8 bits of virtual machine, 24 bits of process id and 24 bits of thread id, 0 for "the process".
// Correlation ids are counted per process, so joins are made per process.
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

// The GPUs. Kernels name them by the number CUDA gives them in their process; TARGET_INFO_CUDA_DEVICE tells which of
// the machine's GPUs that is.
class Devices {
 public:
  explicit Devices(Database& database) : database_(database) {}

  // Reads TARGET_INFO_GPU and writes its rows.
  Result<void> read(const std::string& driver);
  trace::Id of_cuda(std::int64_t pid, std::int64_t cuda_ordinal);
  trace::Id of_gpu(std::int64_t gpu);  // the machine's own number, as GPU metrics use it

 private:
  trace::Id add_unknown(std::int64_t gpu);

  Database& database_;
  std::map<std::int64_t, trace::Id> by_gpu_;
  std::map<std::int64_t, std::int64_t> gpu_of_ordinal_;                        // where the process is not known
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> gpu_of_cuda_;  // by process id and CUDA's number
  std::int64_t last_pid_ = -1, last_ordinal_ = -1;
  trace::Id last_id_ = 0;
};

// An export on its way: who and what its rows are about.
struct Export {
  explicit Export(Database& opened) : database(opened), sink(opened.sink()) {}

  Database& database;
  Sink& sink;
  Strings strings{database};
  Actors actors{database, strings};
  Devices devices{database};
};

}  // namespace llmprof::importers::nsys

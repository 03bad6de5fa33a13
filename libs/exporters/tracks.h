#pragma once
// Who did something in a run, with the numbers and names that viewers show: processes, their threads, devices.
// Viewers tell processes and threads apart by their numbers alone, so those are made unique here.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::exporters {

struct HostProcess {
  std::int64_t id = 0;
  std::int64_t pid = 0;  // the system's, unless another process of the run has the same
  std::string name;      // "python3", "python3 (rank 1)"
  std::string arguments;
  std::optional<std::int64_t> rank;
};

struct HostThread {
  std::int64_t id = 0;
  std::int64_t tid = 0;  // as pid
  std::string name;      // "" unknown
  std::size_t process = 0;

  std::string title() const { return name.empty() ? "thread " + std::to_string(tid) : name; }
};

struct Device {
  std::int64_t id = 0;
  bool is_gpu = false;
  std::int64_t ordinal = 0;  // unique over the devices of the run
  std::string name;          // "NVIDIA H200"
  std::string title;         // "GPU 0: NVIDIA H200"
  std::string chip;          // "sm_90"
  std::int64_t units = 0, memory_bytes = 0;
};

struct Tracks {
  std::vector<HostProcess> processes;  // at least one
  std::vector<HostThread> threads;
  std::vector<Device> devices;
  std::unordered_map<std::int64_t, std::size_t> process_of_id, thread_of_id, device_of_id;

  // Rows may name a thread or device that has no row of its own (thread 0: unknown); they get one here.
  std::size_t thread(std::int64_t id);
  std::size_t device(std::int64_t id);
};

Result<Tracks> load_tracks(const trace::Run& run);

// Wall time at 0 of the run's clock, from the clock_sync row that is most exact; none if there is none.
Result<std::optional<std::int64_t>> wall_of_zero_ns(const trace::Run& run);

}  // namespace llmprof::exporters

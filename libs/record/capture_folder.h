#pragma once
// The folder NAME.llmprof/capture/ of a recording that is not ingested yet: its logs, record.json, the file `full`
// that tells collectors to stop, `control` that switches them, and a lock held by whoever records or ingests.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::record {

inline constexpr const char* kPlanFile = "counters.plan";  // what to count (record/counter_plan.h)
inline constexpr const char* kControlFile = "control";  // lines for the collectors (record/control.h)

std::string capture_folder(const std::string& run_folder);
std::string record_json(const std::string& capture_folder);

// File names of the logs, sorted.
std::vector<std::string> log_names(const std::string& capture_folder);
std::uint64_t log_bytes(const std::string& capture_folder);

// Tells the collectors that the recording has reached its size.
void mark_full(const std::string& capture_folder);
bool is_full(const std::string& capture_folder);

// Makes `run_folder` and its capture folder. An existing run is refused, or replaced when `force`; a folder that is
// not a run is never touched.
Result<void> create_run_folder(const std::string& run_folder, bool force);
// Takes away what create_run_folder made (and only that).
void remove_run_folder(const std::string& run_folder);
void remove_capture_folder(const std::string& run_folder);
void remove_tables(const std::string& run_folder);

// Held while recording or ingesting. Released when destroyed or when the process dies.
class CaptureLock {
 public:
  static Result<CaptureLock> take(const std::string& capture_folder);
  CaptureLock(CaptureLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  CaptureLock& operator=(CaptureLock&&) = delete;
  ~CaptureLock();

 private:
  explicit CaptureLock(int fd) : fd_(fd) {}
  int fd_;
};

// Field 22 of /proc/PID/stat; 0 if there is no such process. With the pid it names one process of this boot.
std::int64_t start_ticks(std::int64_t pid);
bool is_alive(std::int64_t pid, std::int64_t ticks);

}  // namespace llmprof::record

#pragma once
// The folder NAME.llmprof/capture/ of a recording that is not ingested yet: its logs, record.json, the file `full`
// that tells collectors to stop, `control` that switches them, and a lock held by whoever records or ingests.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/device.h"
#include "hw/peaks.h"
#include "trace/loss.h"
#include "trace/run_info.h"

namespace llmprof::record {

inline constexpr const char* kPlanFile = "counters.plan";  // what to count (watch/counter_plan.h)
inline constexpr const char* kControlFile = "control";     // lines for the collectors (control/control.h)

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

// capture/record.json: what the recorder knows and no log can tell. Written before the launch and again when the
// program ended, so that a recording whose recorder was killed can still be ingested.
//
// Two clocks read at the same moment.
struct ClockPair {
  std::int64_t raw_ns = 0;    // CLOCK_MONOTONIC_RAW
  std::int64_t wall_ns = 0;   // CLOCK_REALTIME
  std::int64_t error_ns = 0;  // how far apart they may be
};
ClockPair read_clocks();

struct NotedLoss {
  trace::Loss name = trace::Loss::kNone;
  std::int64_t count = 0;
  std::string detail;
};

struct NotedText {  // what a report should say of the recording
  std::string subject, text;
};

struct DevicePeaks {
  hw::Device device;
  std::vector<hw::Peak> peaks;
};

struct CaptureInfo {
  std::string llmprof_version;
  std::vector<std::string> command;  // secrets redacted
  std::string executable;            // path of the program file
  std::string environment;           // the environment card, JSON text
  std::int64_t root_pid = 0;         // 0: not launched yet
  std::int64_t root_start_ticks = 0;
  std::optional<std::int64_t> root_begin_ns;  // when it was let go to execute the program; none: an older recorder
  std::optional<std::int64_t> root_end_ns;    // when it was seen to have ended
  ClockPair begin;
  std::optional<ClockPair> end;  // none: the recorder did not live to see the end
  std::optional<int> exit_status;
  bool injectable = true;
  hw::Device cpu;
  std::vector<hw::Peak> peaks;  // of the CPU
  std::vector<DevicePeaks> gpus;
  std::vector<NotedLoss> losses;
  std::vector<NotedText> notes;
  std::string window;                                   // the part that was asked for, in words; "": everything
  std::optional<std::int64_t> last_ns;                  // only so much of the end is to be kept
  std::optional<double> range_event_ns, gemm_event_ns;  // what recording one event costs, measured on this machine
  std::optional<trace::AskedCounters> counters;
  std::optional<trace::NotedRests> rests;
  std::vector<trace::NotedModel> models;
  std::string parallel;  // --parallel
  trace::NotedRules range_rules;
  std::optional<std::int64_t> recorder_cpu_ns;  // CPU time of llmprof itself while the program ran
};

Result<CaptureInfo> read_capture_info(const std::string& capture_folder);
Result<void> write_capture_info(const std::string& capture_folder, const CaptureInfo& info);

// "2026-11-15T10:15:00Z"
std::string iso_time(std::int64_t wall_ns);

}  // namespace llmprof::record

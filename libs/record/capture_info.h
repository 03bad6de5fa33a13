#pragma once
// capture/record.json: what the recorder knows and no log can tell. Written before the launch and again when the
// program ended, so that a recording whose recorder was killed can still be ingested.

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

// Two clocks read at the same moment.
struct ClockPair {
  std::int64_t raw_ns = 0;    // CLOCK_MONOTONIC_RAW
  std::int64_t wall_ns = 0;   // CLOCK_REALTIME
  std::int64_t error_ns = 0;  // how far apart they may be
};
ClockPair read_clocks();

struct NotedLoss {
  trace::Loss loss = trace::Loss::kNone;
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

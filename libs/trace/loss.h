#pragma once
// The loss ledger: everything llmprof can fail to see, once, with what it means and what to do about it.
// Collector, ingest, importers and analysis all add rows of the `loss` table by these names; every report prints them.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmprof::trace {

enum class Severity : std::uint8_t { kInfo, kDegraded, kDataLoss };

enum class Loss : std::uint8_t {
  // 1…33 are wire::LossKind, in the same order; kLastOfCollector is the last of them.
  kNone,
  kBufferFull,
  kStringTableFull,
  kNameTruncated,
  kWriteFailed,
  kSizeLimit,
  kReentered,
  kForkedAfterCuda,
  kBlasNotHooked,
  kBlasUnresolved,
  kThreadTableFull,
  kCudaNotTraced,
  kNvtxTableTooSmall,
  kUnbalancedPop,
  kOutsideWindow,
  kAfterExit,
  kDefinitionsFull,
  kCuptiMissing,
  kCuptiHeld,
  kCuptiError,
  kCuptiDropped,
  kCuptiRefused,
  kZeroTimes,
  kUnknownActivity,
  kGraphUnknown,
  kBuffersTaken,
  kStacksOff,
  kLaunchLost,
  kCountersForbidden,
  kCountersHeld,
  kCounterUnknown,
  kCountersFailed,
  kCountersSkipped,
  kCountersShort,
  kLastOfCollector = kCountersShort,
  // found by the recorder
  kNotInjected,
  kStillRunning,
  kAbnormalEnd,
  kTornTail,
  kDamagedBlock,
  kMissingBlock,
  kLostName,
  kUnknownRecord,
  kOpenRange,
  kBadTime,
  kLogUnreadable,
  kExistingInjection,
  kNoPeaks,
  kNoStackSamples,
  kSamplesLost,
  kNoPythonFrames,
  kUsageUnreadable,
  kSegmentsDropped,
  kCollectorOff,
  kTelemetrySlowed,
  kTelemetryStopped,
  // found by benchmarks
  kBenchDisturbed,
  kBenchIncomplete,
  // found by importers
  kInputTruncated,
  kInputDamaged,
  kInputRepaired,
  kInputIgnored,
  kInputLimit,
  kToolLost,
  kNoDeviceWork,
  kNoClock,
  kNoRank,
  kCallsNotJoined,
  kCount,
};

struct LossInfo {
  std::string_view name;
  Severity severity;
  std::string_view unit;  // what `count` counts
  std::string_view meaning;
  std::string_view remedy;
};

inline constexpr std::array<LossInfo, static_cast<std::size_t>(Loss::kCount)> kLossInfo{{
    {"none", Severity::kInfo, "", "", ""},
    {"buffer_full", Severity::kDataLoss, "records", "events came faster than the writer could store them",
     "annotate fewer, longer ranges, or record to a faster disk"},
    {"string_table_full", Severity::kDegraded, "names", "too many distinct names; further ones are shown as <other>",
     "do not put numbers into range names; use payloads"},
    {"name_truncated", Severity::kInfo, "names", "names longer than 64 KiB were cut", "shorten the names"},
    {"write_failed", Severity::kDataLoss, "events", "the log could not be written",
     "free disk space or choose another folder with -o"},
    {"size_limit", Severity::kDataLoss, "records", "the recording reached --max-size", "raise --max-size"},
    {"reentered", Severity::kDegraded, "events", "events raised inside an event of the same thread (signal handlers)",
     ""},
    {"forked_after_cuda", Severity::kDataLoss, "events", "a forked child of a process that had initialised CUDA",
     "start workers by spawn"},
    {"blas_not_hooked", Severity::kDegraded, "libraries",
     "a BLAS library is loaded whose calls llmprof does not see (static, or reached by dlsym)", ""},
    {"blas_unresolved", Severity::kDegraded, "calls", "BLAS calls whose library could not be told from the caller", ""},
    {"thread_table_full", Severity::kDataLoss, "events", "more threads at once than llmprof can follow", ""},
    {"cuda_not_traced", Severity::kDataLoss, "processes",
     "the process uses CUDA; GPU activity was not recorded, as asked", "record it: LLMPROF_GPU=1"},
    {"nvtx_table_too_small", Severity::kDegraded, "modules", "an NVTX client offers fewer callbacks than expected",
     "update its nvtx3 headers"},
    {"unbalanced_pop", Severity::kInfo, "events", "range pops without a push on the same thread",
     "close ranges on the thread that opened them"},
    {"outside_window", Severity::kInfo, "records",
     "records before or after the part that was asked for (--delay, --duration, --start-range, --steps, --last)", ""},
    {"after_exit", Severity::kInfo, "events",
     "events raised while the process was already exiting, up to the moment its log was closed", ""},
    {"definitions_full", Severity::kDegraded, "records",
     "too many distinct kernel shapes, GEMM shapes or stacks; further records are without them", ""},
    {"cupti_missing", Severity::kDataLoss, "processes",
     "the process uses CUDA, but no usable CUPTI library was found: no GPU activity",
     "install CUPTI (cuda-cupti) or set LLMPROF_CUPTI to libcupti.so"},
    {"cupti_held", Severity::kDataLoss, "processes",
     "another profiler holds CUPTI in this process: ranges, BLAS shapes and telemetry were recorded, GPU activity was "
     "not",
     "do not run two profilers at once"},
    {"cupti_error", Severity::kDataLoss, "calls", "calls of CUPTI that failed; what they would have given is missing",
     "llmprof doctor says what this machine permits"},
    {"cupti_dropped", Severity::kDataLoss, "records", "GPU activity that CUPTI dropped", ""},
    {"cupti_refused", Severity::kDataLoss, "buffers",
     "buffers CUPTI asked for while the pool was in use; the activity that would have filled them is missing", ""},
    {"zero_times", Severity::kDataLoss, "executions",
     "kernels, copies or graphs whose times CUPTI had lost: they are counted, not timed", ""},
    {"unknown_activity", Severity::kDegraded, "records", "GPU activity of a kind this version does not know",
     "update llmprof"},
    {"graph_unknown", Severity::kDegraded, "executions",
     "work of CUDA graphs whose nodes were not seen when they were made", ""},
    {"buffers_taken", Severity::kDataLoss, "launches",
     "another client took CUPTI's buffers for a time: the GPU activity of these launches is missing",
     "do not run two profilers at once"},
    {"stacks_off", Severity::kDegraded, "launches", "launches without the stack that --stacks asked for", ""},
    {"launch_lost", Severity::kDegraded, "executions",
     "GPU work whose launch was not seen: it belongs to no thread and no range", ""},
    {"counters_forbidden", Severity::kDegraded, "processes",
     "hardware counters were asked for and may not be read here: what stands in their place comes from NVML and from "
     "the model analysis",
     "as root: load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the process CAP_SYS_ADMIN"},
    {"counters_held", Severity::kDegraded, "processes", "another program holds the hardware counters of the device",
     "stop it (DCGM: dcgmi profile --pause), then record again"},
    {"counter_unknown", Severity::kDegraded, "metrics", "metrics that were asked for and that this chip does not have",
     "llmprof counters --chip NAME lists what it has"},
    {"counters_failed", Severity::kDegraded, "calls",
     "calls of CUPTI's profilers that failed: what they would have counted is missing", ""},
    {"counters_skipped", Severity::kInfo, "windows",
     "work that counters were to be read over, and were not", ""},
    {"counters_short", Severity::kDegraded, "windows", "work too short for the values that were asked for",
     "a shorter --counters-period, or --counters-method kernel"},
    {"not_injected", Severity::kDataLoss, "processes",
     "the program cannot be injected (static, setuid or another architecture)",
     "link it dynamically, or run it without the setuid bit"},
    {"still_running", Severity::kDegraded, "processes",
     "a child process was still running when recording ended; its later events are missing", ""},
    {"abnormal_end", Severity::kInfo, "processes",
     "the process ended without running its exit handlers (signal, _exit, exec): its last fraction of a second may be "
     "missing",
     ""},
    {"torn_tail", Severity::kDataLoss, "bytes",
     "the last block of a log is incomplete (the process was killed while writing)", ""},
    {"damaged_block", Severity::kDataLoss, "bytes", "a part of a log does not match its checksum and was left out",
     "check the disk"},
    {"missing_block", Severity::kDataLoss, "blocks", "blocks of a log are missing; nobody knows what was in them",
     "check the disk"},
    {"lost_name", Severity::kDegraded, "names", "names whose definition was in a lost part of a log", ""},
    {"unknown_record", Severity::kDegraded, "records", "records of a kind this version does not know",
     "update llmprof"},
    {"open_range", Severity::kInfo, "ranges",
     "ranges whose end was not seen for certain: still open when the process ended (closed at its last event), or "
     "records were lost inside them",
     ""},
    {"bad_time", Severity::kDataLoss, "records",
     "records whose end is before their begin, or far outside the recording", ""},
    {"log_unreadable", Severity::kDataLoss, "logs", "a log file could not be read at all", ""},
    {"existing_injection", Severity::kInfo, "variables",
     "the environment already had an LD_PRELOAD or injection variable; it was kept", ""},
    {"no_peaks", Severity::kDegraded, "devices", "no measured peaks: MFU and MBU are of those in data sheets, or unknown",
     "record without --no-peaks"},
    {"no_stack_samples", Severity::kDegraded, "processes", "CPU stacks were not sampled: no function table",
     "llmprof doctor says what this machine permits"},
    {"samples_lost", Severity::kDegraded, "samples", "stack samples came faster than they could be read",
     "lower --sample-hz"},
    {"no_python_frames", Severity::kDegraded, "samples",
     "stack samples in Python whose Python frames could not be read for certain: the program had moved on, or its "
     "Python "
     "is unknown; they show the interpreter's own functions",
     ""},
    {"usage_unreadable", Severity::kDegraded, "processes",
     "memory and CPU time of a process could not be read from outside", ""},
    {"segments_dropped", Severity::kInfo, "logs", "older than what --last asked to keep", ""},
    {"collector_off", Severity::kDataLoss, "processes",
     "the collector could not start or go on in a process; the program ran, its events were not recorded",
     "give the process more of what the detail names"},
    {"telemetry_slowed", Severity::kDegraded, "groups",
     "devices were read less often than wanted, because reading them costs more CPU time than it may", ""},
    {"telemetry_stopped", Severity::kDegraded, "devices",
     "power, clocks and memory of a device were not read, or not to the end",
     "nvidia-smi shows whether it still answers"},
    {"bench_disturbed", Severity::kDegraded, "notes", "the device was not as a benchmark wants it",
     "measure again when the device is idle"},
    {"bench_incomplete", Severity::kDegraded, "points",
     "points of the sweep that were not measured before it was stopped", "llmprof bench --resume RUN"},
    {"input_truncated", Severity::kDataLoss, "files",
     "the file ends in the middle (its writer was stopped): what stands before was read", "record it again"},
    {"input_damaged", Severity::kDataLoss, "entries", "parts of the file that could not be understood were left out", ""},
    {"input_repaired", Severity::kInfo, "values",
     "values the format does not allow were replaced: text that is not UTF-8, numbers that are not finite", ""},
    {"input_ignored", Severity::kInfo, "entries", "entries of kinds that a run has no table for", ""},
    {"input_limit", Severity::kDataLoss, "entries", "the file holds more than llmprof takes from a file of this kind", ""},
    {"tool_lost", Severity::kDataLoss, "messages", "the tool that recorded says that it lost something", ""},
    {"no_device_work", Severity::kDegraded, "files", "the file holds no work of a GPU",
     "was recording of CUDA activity on? llmprof advise tells the command line"},
    {"no_clock", Severity::kDegraded, "files",
     "the file does not say what time of day it is from: it cannot be placed beside the others", ""},
    {"no_rank", Severity::kInfo, "files", "the file does not say which rank of a job it is from", ""},
    {"calls_not_joined", Severity::kDegraded, "calls", "library calls of a log that no kernel of a trace was found for",
     "log and trace must be of the same run, from its beginning"},
}};

constexpr const LossInfo& info_of(Loss loss) { return kLossInfo[static_cast<std::size_t>(loss)]; }
constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::kInfo ? "info" : severity == Severity::kDegraded ? "degraded" : "data_loss";
}

// One row of the ledger as every verb prints it: "LOST: size_limit, 3 records: the recording reached --max-size. To do:
// …".
struct LossEntry {
  std::string_view name, severity;
  std::int64_t count = 0;
  std::string_view unit, meaning, remedy, detail;
};
std::string describe(const LossEntry& entry);

}  // namespace llmprof::trace

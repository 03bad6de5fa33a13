#pragma once
// One capture log to rows, and what all logs of a run share: its GPUs, its ids, its counts.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/model_files.h"
#include "hw/device.h"
#include "hw/peaks.h"
#include "record/log/ledger.h"
#include "record/log/names.h"
#include "record/log/ranges.h"
#include "record/log/reader.h"
#include "record/log/requests.h"
#include "record/log/stacks.h"
#include "trace/rows.h"
#include "trace/run_writer.h"

namespace llmprof::record {

struct Uuid {
  std::uint64_t high = 0, low = 0;  // 0, 0: unknown
  bool known() const { return high != 0 || low != 0; }
  friend bool operator==(const Uuid&, const Uuid&) = default;
};
std::string to_text(const Uuid& uuid);  // "GPU-…", as the driver writes it; "" if unknown

// The GPUs of a run: one row for each physical device, whatever number a process or the driver gives it. The recorder's
// list comes first; what processes say is joined to it by UUID, or by name where the list has no UUIDs.
class CudaDevices {
 public:
  // Of the recorder's list.
  void add(const hw::Device& device, std::vector<hw::Peak> peaks, trace::Id& next_id);
  // Of a process, or of telemetry: the id of the device that this is.
  trace::Id find(const Uuid& uuid, const hw::Device& device, trace::Id& next_id);
  bool has(const std::string& name) const;
  void write(trace::RunWriter& writer) const;

 private:
  static constexpr std::size_t kMost = 4096;  // a log may name any number
  struct Known {
    trace::Id id = 0;
    Uuid uuid;
    hw::Device device;
    std::vector<hw::Peak> peaks;
  };
  std::vector<Known> devices_;
};

// Rows of one device and its peaks, of a CPU too.
void write_device(trace::RunWriter& writer, trace::Id id, const hw::Device& device, const std::vector<hw::Peak>& peaks,
                  const std::string& uuid);

// One capture log to rows: process, threads, ranges, BLAS calls as kernels, clock pairs, losses. What is of GPUs is for
// CudaIngest.

// The process image of one log, for those who saw it from outside.
struct LogImage {
  std::int64_t pid = 0, start_ticks = 0;
  std::int64_t begin_ns = 0;  // its first event
  trace::Name executable;
  trace::Id process_id = 0;
  std::unordered_map<std::int64_t, trace::Id> threads;  // by tid
};

// What all logs of a run share.
struct RunRows {
  trace::RunWriter& writer;
  Ledger& ledger;
  trace::Id next_id = 1;  // ids are unique in the run, whatever the table
  trace::Id cpu_id = 0;   // the device of BLAS calls
  CudaDevices devices;    // the GPUs
  LogFrames frames;
  RunCounts counts;
  RequestMarks requests;
  std::vector<LogImage> images;
  std::vector<trace::ProcessRow> process_rows;  // of all images; written last, when both sides said what they know
  std::vector<host::ModelFile> model_files;     // that programs opened; what a log says, so not to be trusted
  trace::OptionalDouble range_event_ns, gemm_event_ns;  // what recording one event costs, measured
};

// What the recorder knows about the process of a log.
struct LogFacts {
  std::string name;  // of the file
  TimeWindow window;
  trace::OptionalInt exit_status;
  bool still_running = false;
};

class CudaIngest;

class LogIngest final : public LogSink {
 public:
  LogIngest(RunRows& rows, LogFacts facts, const wire::FileHeader& header);
  ~LogIngest() override;

  void define(wire::StringId id, std::string_view text) override { names_.define(id, text); }
  void receive(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) override;
  void gap() override { ranges_.gap(); }

  // What the recorder knows by now.
  void update(LogFacts facts);
  // What comes now is from the next log of the process.
  void next_log();
  // Writes what is known only at the end of the log.
  void finish(const LogStats& stats);

 private:
  struct Thread {
    trace::Id id = 0;  // 0: not seen yet
    std::int64_t tid = 0;
    wire::StringId name = 0;
    std::int64_t begin_ns = INT64_MAX;
    std::int64_t end_ns = 0;  // 0: not seen
  };

  Thread& thread(std::uint32_t number, std::uint64_t ts_ns);
  void note_time(std::uint64_t ts_ns) { last_ns_ = std::max(last_ns_, static_cast<std::int64_t>(ts_ns)); }
  void take_ranges(std::uint32_t number, std::span<const wire::Record> records);
  void take_gemms(std::uint32_t number, std::span<const wire::Record> records);
  void take_thread(std::uint32_t number, const wire::ThreadRecord& record);
  void take_process(const wire::ProcessRecord& record);
  void take_clock(const wire::ClockSyncRecord& record);
  void take_cost(const wire::CostRecord& record);
  void take_library(const wire::LibraryRecord& record);
  void take_loss(const wire::LossRecord& record);
  std::string loss_detail(const wire::LossRecord& record) const;
  void take_cuda(wire::RecordKind kind, std::uint32_t number, std::span<const wire::Record> records);
  void take_other(wire::RecordKind kind, std::uint32_t number, const wire::Record& record);
  void write_process();
  void write_threads();
  void write_losses(const LogStats& stats);

  RunRows& rows_;
  LogFacts facts_;
  wire::FileHeader header_;
  LogNames names_;
  trace::Id process_id_;
  RangePairing ranges_;
  std::unique_ptr<CudaIngest> cuda_;                                // once there is something for it
  std::unordered_map<std::uint32_t, Thread> threads_;               // by number in the log
  std::unordered_map<std::uint64_t, wire::StringId> names_by_tid_;  // given by other threads
  wire::ProcessRecord process_{};
  std::uint64_t process_end_ns_ = 0;  // 0: no orderly end was seen
  std::int64_t last_ns_ = 0;
  std::int64_t unknown_ = 0;
  bool continued_ = false;        // the log before this one was read
  std::uint64_t segment_ns_ = 0;  // when this log continued the one before it; 0: it did not
  TimeCheck times_;
  std::set<std::string> not_hooked_;  // said again by every log

  // Names used by every BLAS row.
  trace::Name types_[5];
  LayoutNames layouts_;
};

// argv joined by '\0' -> one line, secrets redacted.
std::string command_line(std::string_view joined);

}  // namespace llmprof::record

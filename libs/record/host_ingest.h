#pragma once
// The recorder's own log to rows: what processes used, samples of their stacks, and the processes and threads that no
// capture log knows. The log is read twice: the processes of it first, because a reading may stand before the record
// that says which program it was.

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/cuda_counters.h"
#include "record/log_ingest.h"

namespace llmprof::record {

// What the recorder knows about the run.
struct HostFacts {
  TimeWindow window;
  std::int64_t root_pid = 0;
  std::string root_executable, root_arguments;
  bool root_injectable = true;
  trace::OptionalInt root_begin_ns, root_end_ns;
  trace::OptionalInt root_exit_status;
};

// The process images of a run by pid and time, from both sides.
class HostImages final : public LogSink {
 public:
  HostImages(RunRows& rows, HostFacts facts);

  void define(wire::StringId id, std::string_view text) override { names_.define(id, text); }
  void receive(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) override;
  void gap() override {}

  // Joins what the log said with the images of the capture logs; writes the rows of the others.
  void finish();
  bool knows(std::int64_t pid) const { return by_pid_.contains(pid); }

  trace::Id process_at(std::int64_t pid, std::int64_t ts_ns);
  trace::Id thread_at(std::int64_t pid, std::int64_t tid, std::int64_t ts_ns);
  void write_threads();  // those that only samples know

 private:
  struct Seen {  // by the sampler
    wire::ProcessRecord record{};
    std::int64_t end_ns = INT64_MAX;  // when another image was seen in its place
    bool ended = false;
    bool joined = false;
  };
  struct Since {
    std::int64_t begin_ns = 0;
    const LogImage* log = nullptr;
    trace::Id process_id = 0;
  };
  struct Sampled {
    trace::Id id = 0;
    std::int64_t begin_ns = 0;
  };

  void take(const wire::ProcessRecord& record);
  Seen* match(const LogImage& image);
  trace::ProcessRow& row_of(trace::Id process_id);
  trace::Id write_process(const Seen& seen, bool last);
  Since& since(std::int64_t pid, std::int64_t ts_ns);

  RunRows& rows_;
  HostFacts facts_;
  LogNames names_;
  std::map<std::int64_t, std::vector<Seen>> seen_;     // by pid, in order of time
  std::map<std::int64_t, std::vector<Since>> by_pid_;  // in order of time
  std::map<std::pair<trace::Id, std::int64_t>, Sampled> threads_;
  std::unordered_map<std::int64_t, wire::StringId> thread_names_;  // by tid
};

class HostIngest final : public LogSink {
 public:
  HostIngest(RunRows& rows, HostImages& images, const HostFacts& facts);

  void define(wire::StringId id, std::string_view text) override { names_.define(id, text); }
  void receive(wire::RecordKind kind, std::uint32_t thread, std::span<const wire::Record> records) override;
  void gap() override {}
  void finish(const LogStats& stats, const std::string& log_name);

 private:
  void take(wire::RecordKind kind, const wire::Record& record);
  void take_usage(const wire::UsageRecord& record);
  std::int64_t reading_ns(std::uint32_t pid, std::uint64_t ts_ns) const;
  void take_io(const wire::IoRecord& record);
  void take_sample(const wire::SampleRecord& record);
  void take_telemetry_device(const wire::TelemetryDeviceRecord& record);
  void take_telemetry(const wire::TelemetryRecord& record);
  void take_note(const wire::NoteRecord& record);
  void take_counter_window(const wire::CounterWindowRecord& record);
  void take_counter(const wire::CounterRecord& record);
  bool in_time(std::uint64_t ts_ns);

  RunRows& rows_;
  HostImages& images_;
  TimeWindow window_;
  std::int64_t root_pid_;
  trace::OptionalInt root_end_ns_;
  LogNames names_;
  LogStacks stacks_;
  CudaCounters counters_;                                               // samples of devices
  std::unordered_map<std::uint32_t, trace::ProcessUsageRow> readings_;  // the last of each pid, not yet written
  std::unordered_map<std::uint32_t, trace::Id> devices_;                // by number in the log
  std::int64_t bad_times_ = 0, unknown_ = 0;
};

// Reads the recorder's log of a capture folder, if there is one. Afterwards `rows` holds a row for every process.
struct HostRead {
  bool root_known = false;  // a row for the root was written or is of a capture log
  std::uint64_t bytes = 0;
};
Result<HostRead> ingest_host_log(const std::string& path, const HostFacts& facts, RunRows& rows,
                                 const base::Progress& progress);

}  // namespace llmprof::record

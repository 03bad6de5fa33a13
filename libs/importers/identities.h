#pragma once
// Processes, threads and devices of a run that is made of several files: which of them are the same, and their rows.
// Two files never tell the same story twice, so traces are never merged with each other, but for a GPU: of the same
// UUID, or of the same number in files of the same rank. What stands beside a trace (a log, readings) belongs to its
// process of the same pid, and to its only GPU of the same number.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/importer.h"
#include "importers/table_plan.h"
#include "trace/run_writer.h"

namespace llmprof::importers {

class Identities {
 public:
  explicit Identities(trace::RunWriter& writer) : writer_(writer) {}

  // Rows hold ids and names of the run already, their times still are the file's. The map learns what was merged; rows
  // that came before keep their own id, and then there is no merging.
  void begin_file(Role role);
  // The rank that this file is of, a number, and its host; "": unknown.
  void set_origin(std::string_view rank, std::string_view host);
  void add(const trace::ProcessRow& row, FileMap& map);
  void add(const trace::ThreadRow& row, FileMap& map);
  void add(const trace::DeviceRow& row, FileMap& map);
  // Times of this file's rows: a begin of 0 becomes the first time of the file.
  void end_file(const FileMap& map);

  // The only process of all traces, for files that name none; 0 if there is none, or several.
  trace::Id only_process() const;
  bool file_has_process() const { return processes_.size() > first_process_ || merged_process_; }
  std::int64_t pid_of_thread(trace::Id thread) const;  // 0 if unknown
  // Rows of all three tables, and the peaks of devices that the catalogue knows.
  void write();

 private:
  struct Origin {
    int file = 0;
    std::string rank, host;
  };
  struct Device {
    trace::DeviceRow row;
    Role role;
    Origin origin;
  };
  struct Process {
    trace::ProcessRow row;
    Role role;
  };
  Device* same_device(const trace::DeviceRow& row);
  bool of_same_rank(const Origin& other) const;
  void write_device(trace::DeviceRow row);
  void write_peaks(const trace::DeviceRow& row, std::string_view name);
  void index_threads();

  trace::RunWriter& writer_;
  Role role_ = Role::kTrace;
  Origin origin_;
  std::vector<Process> processes_;
  std::vector<trace::ThreadRow> threads_;
  std::vector<Device> devices_;
  std::size_t first_process_ = 0, first_thread_ = 0;  // of this file
  bool merged_process_ = false;
  std::map<std::pair<trace::Id, std::int64_t>, trace::Id> thread_ids_;  // by process and tid, of files before
  std::unordered_map<trace::Id, std::int64_t> pids_;                    // by thread
};

}  // namespace llmprof::importers

#pragma once
// Writes parts of tables as Parquet files in the background. A bounded queue: submit() waits when the disk is slower
// than the caller, so memory stays bounded. Errors are kept and returned by finish().

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "trace/parquet_writer.h"
#include "trace/row_buffer.h"
#include "trace/run_info.h"

namespace llmprof::trace {

struct Part {
  RowBatch batch;
  RowBuffer::Blocks memory;  // what the batch points into; empty if the caller keeps it
};

class PartWriter {
 public:
  // Files are called <table>.parquet, <table>.1.parquet… in `folder`; `prefix` stands before them in TableFile::file.
  PartWriter(std::string folder, std::string prefix);
  ~PartWriter();
  void submit(Part part);
  void stop();  // waits for parts being written; what is still queued is thrown away unless finish() was called
  // Waits for all parts. The files are in the order of tables and parts.
  Result<std::vector<TableFile>> finish(const base::Progress& progress);

 private:
  struct Job {
    Part part;
    std::string table, name;
    std::size_t number = 0;
  };
  void work();
  void done(std::size_t number, Result<TableFile> file);
  Result<TableFile> write(Result<ParquetWriter>& writer, Job& job) const;

  const std::string folder_, prefix_;
  std::map<std::string, int, std::less<>> parts_of_table_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;                        // guarded by mutex_, as all below
  std::vector<std::optional<TableFile>> files_;  // by job number
  std::optional<Error> error_;
  std::size_t written_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace llmprof::trace

#pragma once
// Rows on their way to Parquet files: RowBuffer gathers the rows of a table, RowBatch puts them into the order of the
// file they become, PartWriter writes batches in the background.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "trace/run_info.h"
#include "trace/schema.h"
#include "trace/strings.h"

namespace llmprof::trace {

class Connection;

// Rows of one table. Adding is a copy of the row; memory grows by blocks, never moves.
class RowBuffer {
 public:
  using Blocks = std::vector<std::unique_ptr<std::byte[]>>;

  explicit RowBuffer(const Table& table) : table_(&table) {}
  const Table& table() const { return *table_; }
  std::size_t rows() const { return rows_; }
  std::size_t bytes() const { return rows_ * table_->row_bytes; }

  void add(const void* row) {
    if (rows_ % kBlockRows == 0) {
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlockRows * table_->row_bytes));
      next_ = blocks_.back().get();
    }
    std::memcpy(next_, row, table_->row_bytes);
    next_ += table_->row_bytes;
    ++rows_;
  }

  void add_many(const std::byte* rows, std::size_t count) {
    while (count > 0) {
      add(rows);
      const std::size_t more =
          std::min(count, kBlockRows - (rows_ - 1) % kBlockRows) - 1;  // what this block still takes
      std::memcpy(next_, rows + table_->row_bytes, more * table_->row_bytes);
      next_ += more * table_->row_bytes;
      rows_ += more;
      rows += (more + 1) * table_->row_bytes;
      count -= more + 1;
    }
  }

  std::vector<const std::byte*> row_pointers() const {
    std::vector<const std::byte*> pointers(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      pointers[i] = blocks_[i / kBlockRows].get() + i % kBlockRows * table_->row_bytes;
    }
    return pointers;
  }

  // Hands the memory over; the buffer is empty afterwards.
  Blocks take() {
    rows_ = 0;
    return std::exchange(blocks_, {});
  }

 private:
  static constexpr std::size_t kBlockRows = 2048;
  const Table* table_;
  Blocks blocks_;
  std::byte* next_ = nullptr;
  std::size_t rows_ = 0;
};

// Some rows of one table, in the order of the file they are to become, and the names they use. Independent of Strings
// once made, so another thread may write it while the dictionary grows (texts of a dictionary never move).
class RowBatch {
 public:
  RowBatch(const Table& table, std::vector<const std::byte*> rows, const Strings& strings);

  // Lane by lane, each by the table's sort column; rows of equal keys keep their order. A lane is one thread's rows:
  // side by side their times advance in small even steps and their names repeat, which is what compresses.
  void sort();

  const Table& table() const { return *table_; }
  const std::vector<const std::byte*>& rows() const { return rows_; }

  // The distinct names of a column. Column types other than kName have none.
  struct Dictionary {
    std::vector<const char*> texts;    // by code
    std::vector<std::uint32_t> codes;  // by Name::id
  };
  const Dictionary& dictionary(std::size_t column) const { return dictionaries_[column]; }

 private:
  const Table* table_;
  std::vector<const std::byte*> rows_;
  std::vector<Dictionary> dictionaries_;
};

struct Part {
  RowBatch batch;
  RowBuffer::Blocks memory;  // what the batch points into; empty if the caller keeps it
};

// Writes parts of tables as Parquet files (sorted, zstd, delta and dictionary encoded). A bounded queue: submit() waits
// when the disk is slower than the caller, so memory stays bounded. Errors are kept and returned by finish().
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
  Result<TableFile> write(const Connection& connection, Job& job) const;

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

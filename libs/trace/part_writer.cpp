#include "trace/part_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "trace/file_stamp.h"

namespace llmprof::trace {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kQueuedParts = 1;  // besides those being written: each part may be 100 MB

// The capture logs are deleted once a run is whole, so its files must be on the disk by then.
void sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

PartWriter::PartWriter(std::string folder, std::string prefix)
    : folder_(std::move(folder)), prefix_(std::move(prefix)) {}

PartWriter::~PartWriter() { stop(); }

void PartWriter::submit(Part part) {
  std::string table(part.batch.table().name);
  const int place = parts_of_table_[table]++;
  std::string name = place == 0 ? table + ".parquet" : fmt::format("{}.{}.parquet", table, place);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kQueuedParts || error_.has_value(); });
  if (error_.has_value()) return;  // finish() will tell; what comes now would be thrown away
  queue_.push_back({std::move(part), std::move(table), std::move(name), files_.size()});
  files_.emplace_back();
  if (threads_.size() < std::min(kThreads, files_.size())) threads_.emplace_back([this] { work(); });
  lock.unlock();
  changed_.notify_all();
}

void PartWriter::work() {
  std::optional<Result<ParquetWriter>> writer;
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    changed_.notify_all();
    if (!writer.has_value()) writer.emplace(ParquetWriter::create());
    done(job.number, write(*writer, job));
  }
}

Result<TableFile> PartWriter::write(Result<ParquetWriter>& writer, Job& job) const {
  if (!writer) return writer.error();
  const std::string path = folder_ + "/" + job.name;
  job.part.batch.sort();
  LLMPROF_TRY(writer->write(job.part.batch, path));
  sync_file(path);
  LLMPROF_LET(const FileStamp stamp, stamp_file(path));
  return TableFile{job.table, prefix_ + job.name, static_cast<std::int64_t>(job.part.batch.rows().size()), stamp.bytes,
                   stamp.crc32c};
}

void PartWriter::done(std::size_t number, Result<TableFile> file) {
  const std::lock_guard lock(mutex_);
  ++written_;
  if (file) {
    files_[number] = std::move(*file);
  } else if (!error_.has_value()) {
    error_ = std::move(file.error());
  }
  changed_.notify_all();
}

Result<std::vector<TableFile>> PartWriter::finish(const base::Progress& progress) {
  std::unique_lock lock(mutex_);
  while (written_ < files_.size() && !error_.has_value()) {
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (!progress({"writing tables", static_cast<double>(written_), static_cast<double>(files_.size()), "files"})) {
      error_ = Error{ErrorCode::kInterrupted, "interrupted while writing tables", ""};
    }
  }
  lock.unlock();
  stop();
  if (error_.has_value()) return *error_;
  std::vector<TableFile> files;
  for (const Table* table : tables()) {
    for (const auto& file : files_) {
      if (file->table == table->name) files.push_back(*file);
    }
  }
  return files;
}

void PartWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (error_.has_value() || written_ < files_.size()) queue_.clear();  // given up: nobody will ask for them
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace llmprof::trace

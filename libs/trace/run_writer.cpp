#include "trace/run_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <list>

#include "base/file.h"
#include "base/version.h"
#include "trace/part_writer.h"
#include "trace/table_files.h"

namespace llmprof::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPartRows = 1u << 20;

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

Result<void> rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return base::errno_error(ErrorCode::kIo, to, errno);
  return {};
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

bool plain_key(const std::string& key) {
  return !key.empty() && key.front() != '.' &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

}  // namespace

// Rows of any table into a folder that is temporary until somebody renames it.
class TableSink {
 public:
  TableSink(const std::string& folder, const std::string& prefix, const WriterLimits& limits = {})
      : folder_(folder), limits_(limits), parts_(folder, prefix) {}
  ~TableSink() {
    parts_.stop();
    remove_all(folder_);  // gone already if it was renamed
  }

  Strings& strings() { return strings_; }

  void add(const Table& table, const void* row) {
    RowBuffer& buffer = buffer_of(table);
    buffer.add(row);
    settle(buffer, table.row_bytes);
  }

  void add_rows(const Table& table, const std::byte* rows, std::size_t count) {
    constexpr std::size_t kAtOnce = 4096;  // limits are looked at in between
    for (; count > 0; rows += std::min(count, kAtOnce) * table.row_bytes, count -= std::min(count, kAtOnce)) {
      RowBuffer& buffer = buffer_of(table);
      buffer.add_many(rows, std::min(count, kAtOnce));
      settle(buffer, std::min(count, kAtOnce) * table.row_bytes);
    }
  }

  void add_block(const Table& table, const void* rows, std::size_t count) {
    const auto* first = static_cast<const std::byte*>(rows);
    for (std::size_t begin = 0; begin < count; begin += kPartRows) {
      std::vector<const std::byte*> pointers(std::min(kPartRows, count - begin));
      for (std::size_t i = 0; i < pointers.size(); ++i) pointers[i] = first + (begin + i) * table.row_bytes;
      parts_.submit({RowBatch(table, std::move(pointers), strings_), {}});
    }
  }

  Result<std::vector<TableFile>> finish(const base::Progress& progress) {
    for (RowBuffer& buffer : buffers_) {
      if (buffer.rows() > 0) submit(buffer);
    }
    return parts_.finish(progress);
  }

  const std::string& folder() const { return folder_; }

 private:
  RowBuffer& buffer_of(const Table& table) {
    for (RowBuffer& buffer : buffers_) {  // a handful of tables are in use: cheaper than hashing
      if (&buffer.table() == &table) return buffer;
    }
    return buffers_.emplace_back(table);
  }

  void settle(RowBuffer& buffer, std::size_t added_bytes) {
    bytes_ += added_bytes;
    if (buffer.rows() >= kPartRows || buffer.bytes() >= limits_.part_bytes) submit(buffer);
    if (bytes_ >= limits_.all_bytes) submit(*std::ranges::max_element(buffers_, {}, &RowBuffer::bytes));
  }

  void submit(RowBuffer& buffer) {
    bytes_ -= buffer.bytes();
    RowBatch batch(buffer.table(), buffer.row_pointers(), strings_);
    parts_.submit({std::move(batch), buffer.take()});
  }

  const std::string folder_;
  const WriterLimits limits_;
  std::size_t bytes_ = 0;  // that wait in buffers
  Strings strings_;
  std::list<RowBuffer> buffers_;
  PartWriter parts_;
};

RowWriter::RowWriter(std::string folder, std::unique_ptr<TableSink> sink)
    : folder_(std::move(folder)), sink_(std::move(sink)) {}
RowWriter::RowWriter(RowWriter&&) noexcept = default;
RowWriter& RowWriter::operator=(RowWriter&&) noexcept = default;
RowWriter::~RowWriter() = default;
Strings& RowWriter::strings() { return sink_->strings(); }
void RowWriter::add_bytes(const Table& table, const void* row) { sink_->add(table, row); }

Result<RunWriter> RunWriter::create(const std::string& folder, const WriterLimits& limits) {
  if (base::is_file(folder + "/run.json")) {
    return Error{ErrorCode::kUsage, folder + " is a run already", "choose another name"};
  }
  const std::string tables = folder + "/tables.tmp";
  remove_all(tables);  // of a writer that was killed
  LLMPROF_TRY(base::make_directories(folder));
  LLMPROF_TRY(base::make_directories(tables));
  return RunWriter(folder, std::make_unique<TableSink>(tables, "tables/", limits));
}

void RunWriter::add_rows(const Table& table, const void* rows, std::size_t count) {
  sink_->add_rows(table, static_cast<const std::byte*>(rows), count);
}

Result<void> RunWriter::finish(RunInfo info, const base::Progress& progress) {
  LLMPROF_LET(info.files, sink_->finish(progress));
  info.format_version = kRunFormatVersion;
  if (info.llmprof_version.empty()) info.llmprof_version = std::string(base::version());
  if (info.created.empty()) info.created = now_utc();
  const std::string tables = folder_ + "/tables";
  remove_all(tables);  // of a writer that was killed before it wrote run.json
  LLMPROF_TRY(rename(sink_->folder(), tables));
  return base::write_file(folder_ + "/run.json", format_run_info(info));
}

Result<DerivedWriter> DerivedWriter::create(const std::string& run_folder, const std::string& key) {
  if (!plain_key(key)) return Error{ErrorCode::kInternal, "derived key " + key + " is not a plain name", ""};
  const std::string temporary = fmt::format("{}/derived/.{}.{}.tmp", run_folder, key, ::getpid());
  remove_all(temporary);
  LLMPROF_TRY(base::make_directories(run_folder + "/derived"));
  LLMPROF_TRY(base::make_directories(temporary));
  return DerivedWriter(run_folder + "/derived/" + key, std::make_unique<TableSink>(temporary, ""));
}

void DerivedWriter::add_block(const Table& table, const void* rows, std::size_t count) {
  sink_->add_block(table, rows, count);
}

Result<void> DerivedWriter::finish() {
  LLMPROF_LET(const std::vector<TableFile> files, sink_->finish(base::no_progress));
  LLMPROF_TRY(base::write_file(sink_->folder() + "/" + kDerivedIndex, format_table_files(files)));
  if (rename(sink_->folder(), folder_)) return {};
  remove_all(folder_);  // a damaged or older one is in the way
  return rename(sink_->folder(), folder_);
}

}  // namespace llmprof::trace

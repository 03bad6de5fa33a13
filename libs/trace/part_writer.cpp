#include "trace/part_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/assert.h"
#include "trace/database.h"
#include "trace/parquet.h"
#include "trace/table_files.h"

namespace llmprof::trace {
namespace {

using Rows = std::vector<const std::byte*>;

constexpr std::uint32_t kUnused = UINT32_MAX;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

RowBatch::Dictionary make_dictionary(const Column& column, const Rows& rows, const Strings& strings) {
  RowBatch::Dictionary dictionary;
  dictionary.codes.assign(strings.size() + 1, kUnused);
  for (const std::byte* row : rows) {
    const auto name = load<Name>(row + column.offset);
    std::uint32_t& code = dictionary.codes[name.id];
    if (code != kUnused || name.id == 0) continue;
    code = static_cast<std::uint32_t>(dictionary.texts.size());
    dictionary.texts.push_back(strings.text(name).data());
  }
  return dictionary;
}

// Threads hand in their rows in runs, so the last lane is usually the next one too.
std::map<std::int64_t, Rows> split_by_lane(const Rows& rows, std::size_t lane_offset) {
  std::map<std::int64_t, Rows> lanes;
  auto current = lanes.end();
  for (const std::byte* row : rows) {
    const auto lane = load<std::int64_t>(row + lane_offset);
    if (current == lanes.end() || current->first != lane) current = lanes.try_emplace(lane).first;
    current->second.push_back(row);
  }
  return lanes;
}

void sort_by_key(Rows& rows, std::size_t key_offset) {
  const auto key_of = [&](const std::byte* row) { return load<std::int64_t>(row + key_offset); };
  if (std::ranges::is_sorted(rows, {}, key_of)) return;
  std::vector<std::pair<std::int64_t, std::uint32_t>> order(rows.size());  // keys side by side: the rows are far apart
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = {key_of(rows[i]), i};
  std::ranges::sort(order);
  Rows sorted(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = rows[order[i].second];
  rows = std::move(sorted);
}

// The values of one column for `count` rows, into a vector of the engine.
class ColumnFill {
 public:
  ColumnFill(const DuckDbApi& api, duckdb_vector vector, const std::byte* const* rows, std::size_t count)
      : api_(api), vector_(vector), rows_(rows), count_(count), data_(api.vector_data(vector)) {}

  template <class T>
  void plain(std::size_t offset) {
    auto* out = static_cast<T*>(data_);
    for (std::size_t i = 0; i < count_; ++i) out[i] = load<T>(rows_[i] + offset);
  }

  // One that is absent may be any byte.
  void flags(std::size_t offset) {
    auto* out = static_cast<bool*>(data_);
    for (std::size_t i = 0; i < count_; ++i) out[i] = load<std::uint8_t>(rows_[i] + offset) == 1;
  }

  void nulls(std::size_t present_offset) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!load<bool>(rows_[i] + present_offset)) set_null(i);
    }
  }

  template <class Code>
  void names(std::size_t offset, const std::vector<std::uint32_t>& codes) {
    auto* out = static_cast<Code*>(data_);
    for (std::size_t i = 0; i < count_; ++i) {
      const auto name = load<Name>(rows_[i] + offset);
      out[i] = name.id != 0 ? static_cast<Code>(codes[name.id]) : 0;
      if (name.id == 0) set_null(i);
    }
  }

 private:
  void set_null(std::size_t row) {
    if (validity_ == nullptr) {
      api_.ensure_validity_writable(vector_);
      validity_ = api_.vector_validity(vector_);
    }
    validity_[row / 64] &= ~(std::uint64_t{1} << (row % 64));
  }

  const DuckDbApi& api_;
  duckdb_vector vector_;
  const std::byte* const* rows_;
  std::size_t count_;
  void* data_;
  std::uint64_t* validity_ = nullptr;
};

void fill(ColumnFill& out, const Column& column, const RowBatch::Dictionary& dictionary) {
  if (column.type == ColumnType::kName) {  // an ENUM's codes are as wide as its members need
    if (dictionary.texts.size() <= UINT8_MAX) return out.names<std::uint8_t>(column.offset, dictionary.codes);
    if (dictionary.texts.size() <= UINT16_MAX) return out.names<std::uint16_t>(column.offset, dictionary.codes);
    return out.names<std::uint32_t>(column.offset, dictionary.codes);
  }
  if (column.type == ColumnType::kInt64) out.plain<std::int64_t>(column.offset);
  if (column.type == ColumnType::kInt32) out.plain<std::int32_t>(column.offset);
  if (column.type == ColumnType::kDouble) out.plain<double>(column.offset);
  if (column.type == ColumnType::kBool) out.flags(column.offset);
  if (column.nullable) out.nulls(column.present_offset);
}

duckdb_logical_type type_of(const DuckDbApi& api, const Column& column, const RowBatch::Dictionary& dictionary) {
  constexpr duckdb_type kTypes[] = {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_INTEGER, DUCKDB_TYPE_DOUBLE, DUCKDB_TYPE_BOOLEAN};
  if (column.type != ColumnType::kName) return api.create_logical_type(kTypes[static_cast<std::size_t>(column.type)]);
  // An ENUM is written as a dictionary of its members, without hashing a single string. It needs one member at least.
  std::vector<const char*> members = dictionary.texts;
  if (members.empty()) members.push_back("");
  return api.create_enum_type(members.data(), members.size());
}

// A batch, 2048 rows at a time.
class BatchSource : public ChunkSource {
 public:
  BatchSource(const DuckDbApi& api, const RowBatch& batch) : api_(api), batch_(batch) {}

  void describe(duckdb_bind_info info) override {
    const std::vector<Column>& columns = batch_.table().columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      duckdb_logical_type type = type_of(api_, columns[i], batch_.dictionary(i));
      api_.bind_add_result_column(info, std::string(columns[i].name).c_str(), type);
      api_.destroy_logical_type(&type);
    }
    api_.bind_set_cardinality(info, batch_.rows().size(), true);
  }

  Result<void> next(duckdb_data_chunk chunk) override {
    const std::size_t count = std::min<std::size_t>(api_.vector_size(), batch_.rows().size() - at_);
    const std::vector<Column>& columns = batch_.table().columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      ColumnFill out(api_, api_.chunk_vector(chunk, i), batch_.rows().data() + at_, count);
      fill(out, columns[i], batch_.dictionary(i));
    }
    at_ += count;
    api_.set_chunk_size(chunk, count);
    return {};
  }

 private:
  const DuckDbApi& api_;
  const RowBatch& batch_;
  std::size_t at_ = 0;
};

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

RowBatch::RowBatch(const Table& table, std::vector<const std::byte*> rows, const Strings& strings)
    : table_(&table), rows_(std::move(rows)) {
  for (const Column& column : table.columns) {
    dictionaries_.push_back(column.type == ColumnType::kName ? make_dictionary(column, rows_, strings) : Dictionary{});
  }
}

void RowBatch::sort() {
  if (table_->sort_by.empty()) return;
  const Column& key = *table_->find(table_->sort_by);
  LLMPROF_ASSERT(key.type == ColumnType::kInt64);
  if (table_->lane.empty()) return sort_by_key(rows_, key.offset);
  auto out = rows_.begin();
  for (auto& [lane, rows] : split_by_lane(rows_, table_->find(table_->lane)->offset)) {
    sort_by_key(rows, key.offset);
    out = std::ranges::copy(rows, out).out;
  }
}

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
  struct Engine {
    Database database;
    Connection connection;
  };
  const auto start = []() -> Result<Engine> {
    LLMPROF_LET(Database database, Database::open({{"threads", "1"}}));  // this thread does the work
    LLMPROF_LET(Connection connection, database.connect());
    LLMPROF_TRY(register_chunk_source(connection));
    return Engine{std::move(database), std::move(connection)};
  };
  std::optional<Result<Engine>> engine;
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    changed_.notify_all();
    if (!engine.has_value()) engine.emplace(start());
    done(job.number, *engine ? write((*engine)->connection, job) : Result<TableFile>(engine->error()));
  }
}

Result<TableFile> PartWriter::write(const Connection& connection, Job& job) const {
  const std::string path = folder_ + "/" + job.name;
  job.part.batch.sort();
  BatchSource source(connection.api(), job.part.batch);
  LLMPROF_TRY(copy_to_parquet(connection, source, path));
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

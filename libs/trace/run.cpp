#include "trace/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "base/assert.h"
#include "base/file.h"
#include "base/strings.h"
#include "trace/answers.h"
#include "trace/database.h"
#include "trace/parquet.h"
#include "trace/result_reader.h"
#include "trace/table_files.h"
#include "trace/views.h"

namespace llmprof::trace {
namespace {

constexpr std::uint64_t kMaxRunJson = 64u << 20;
constexpr std::int64_t kRowsForThreads = 2'000'000;  // with fewer, the engine's threads mostly wait for each other
constexpr const char* kAnswersFile = "answers";

Result<void> must_be_run(const std::string& folder) {
  if (base::is_file(folder + "/run.json")) return {};
  if (base::is_file(folder)) {
    return Error{ErrorCode::kCorruptInput, folder + ": not a run: it is a file",
                 "a run is a folder; llmprof check reads single logs"};
  }
  if (!base::is_directory(folder))
    return Error{ErrorCode::kNotFound, folder + ": no such run", "llmprof record makes one"};
  return Error{ErrorCode::kCorruptInput, folder + ": not a run: it has no run.json",
               "a run is a folder that llmprof record or import made"};
}

// The engine reads * ? [ and { in paths as patterns. Behind the folder's own file descriptor there are none.
class EngineFolder {
 public:
  explicit EngineFolder(const std::string& folder) {
    std::error_code error;
    path_ = std::filesystem::absolute(folder, error).string();
    if (path_.find_first_of("*?[{") == std::string::npos) return;
    descriptor_ = ::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    path_ = fmt::format("/proc/self/fd/{}", descriptor_);
  }
  EngineFolder(const EngineFolder&) = delete;
  EngineFolder& operator=(const EngineFolder&) = delete;
  ~EngineFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// Checks the files (size, checksum) and gives them the names the engine opens them by.
Result<std::vector<OpenFile>> open_files(const std::string& folder, const std::string& engine_folder,
                                         const std::vector<TableFile>& listed, TableKind kind) {
  std::vector<OpenFile> files;
  for (const TableFile& file : listed) {
    if (find_table(file.table)->kind != kind) continue;
    LLMPROF_TRY(check_table_file(folder, file));
    files.push_back({file, engine_folder + "/" + file.file});
  }
  return files;
}

// Chunks of one engine handed to another; vectors are shared, not copied.
class StreamSource : public ChunkSource {
 public:
  StreamSource(const DuckDbApi& api, Stream& stream) : api_(api), stream_(stream) {}

  void describe(duckdb_bind_info info) override {
    for (idx_t i = 0; i < stream_.names().size(); ++i) {
      duckdb_logical_type type = api_.column_logical_type(&stream_.result(), i);
      api_.bind_add_result_column(info, stream_.names()[i].c_str(), type);
      api_.destroy_logical_type(&type);
    }
  }

  Result<void> next(duckdb_data_chunk chunk) override {
    LLMPROF_LET(duckdb_data_chunk from, stream_.next());
    const idx_t count = from != nullptr ? api_.chunk_size(from) : 0;
    for (idx_t i = 0; from != nullptr && i < stream_.names().size(); ++i) {
      api_.reference_vector(api_.chunk_vector(chunk, i), api_.chunk_vector(from, i));
    }
    api_.set_chunk_size(chunk, count);
    rows_ += static_cast<std::int64_t>(count);
    return {};
  }

  std::int64_t rows() const { return rows_; }

 private:
  const DuckDbApi& api_;
  Stream& stream_;
  std::int64_t rows_ = 0;
};

std::string lock_statement(const std::vector<OpenFile>& files) {
  std::string paths;
  for (const OpenFile& file : files) paths += (paths.empty() ? "" : ", ") + sql_literal(file.path);
  return fmt::format("SET allowed_paths = [{}]; SET enable_external_access = false; SET lock_configuration = true",
                     paths);
}

// Table functions a query may call: they make rows from their arguments, or describe the tables. The others read files,
// take raw addresses or switch things on (enable_logging is a table function, and no setting forbids it).
constexpr std::string_view kTableFunctions =
    "duckdb_columns duckdb_functions duckdb_keywords duckdb_tables duckdb_types duckdb_views generate_series json_each "
    "json_tree pragma_version pragma_table_info range repeat unnest";

// What the parser makes of the statement, asked before it is prepared: preparing runs the bind step of functions.
struct Parsed {
  bool is_select = false;
  std::string table_functions;  // joined by ','
};
Result<Parsed> parse(const Connection& connection, const std::string& sql) {
  if (sql.find('\0') != std::string::npos)
    return Error{ErrorCode::kCorruptInput, "SQL: the statement holds a NUL byte", ""};
  LLMPROF_LET(Stream stream,
              connection.stream(fmt::format(
                  "SELECT j->>'$.error', array_to_string(json_extract_string(j, '$..function.function_name'), ',') "
                  "FROM (SELECT json_serialize_sql({}) AS j)",
                  sql_literal(sql))));
  const RowReader reader(connection, stream);
  LLMPROF_LET(duckdb_data_chunk chunk, stream.next());
  std::vector<Value> row(2);
  if (chunk != nullptr && connection.api().chunk_size(chunk) == 1) reader.read(chunk, 0, row);
  return Parsed{row[0].text == "false", row[1].text};
}

Result<void> allow_functions(std::string_view names) {
  if (names.empty()) return {};
  const std::vector<std::string_view> allowed = base::split(kTableFunctions, ' ');
  for (const std::string_view name : base::split(names, ',')) {
    if (std::ranges::find(allowed, name) == allowed.end())
      return Error{ErrorCode::kPermission, fmt::format("SQL: table function {} is not allowed", name),
                   "queries read the tables of this run and nothing else"};
  }
  return {};
}

// The engine that runs a user's SQL: it can read the checked files of one run, and do nothing else.
class UserEngine {
 public:
  // Checks the files and makes the views, then locks: `files` are the only paths, nothing can be loaded, written or
  // set. It may use `memory` ("2GB"); nothing is spilled to disk.
  static Result<UserEngine> create(const std::vector<OpenFile>& files, const std::string& memory) {
    LLMPROF_LET(Database database, Database::open({{"memory_limit", memory}}));
    LLMPROF_LET(Connection connection, database.connect());
    LLMPROF_LET(const ColumnsOfTables columns, check_parquet(connection, files));
    for (const std::string& view : view_statements(files, columns)) LLMPROF_TRY(connection.run(view));
    LLMPROF_TRY(connection.run(lock_statement(files)));
    return UserEngine(std::move(database), std::move(connection));
  }

  Result<void> each(const std::string& sql, const ColumnSink& columns, const RowSink& row) const {
    LLMPROF_LET(Stream stream, open(sql, Types::kPlain));
    columns(stream.names());
    return read_rows(connection_, stream, row);
  }

  // Rows written. The file is written by a second engine that never sees the SQL.
  Result<std::int64_t> to_parquet(const std::string& sql, const std::string& file) const {
    LLMPROF_LET(Stream stream, open(sql, Types::kAll));
    LLMPROF_LET(const Database outside, Database::open({{"threads", "1"}}));
    LLMPROF_LET(const Connection writer, outside.connect());
    LLMPROF_TRY(register_chunk_source(writer));
    StreamSource source(connection_.api(), stream);
    const std::string beside = fmt::format("{}.{}.tmp", file, ::getpid());
    LLMPROF_TRY(copy_to_parquet(writer, source, beside));
    if (::rename(beside.c_str(), file.c_str()) != 0) {
      const Error error = base::errno_error(ErrorCode::kIo, file, errno);
      ::unlink(beside.c_str());
      return error;
    }
    return source.rows();
  }

 private:
  // A statement that the parser cannot show us is no SELECT, or not SQL: it is only asked what is wrong with it.
  Result<Stream> open(const std::string& sql, Types types) const {
    LLMPROF_LET(const Parsed parsed, parse(connection_, sql));
    LLMPROF_TRY(allow_functions(parsed.table_functions));
    return connection_.stream(sql, parsed.is_select ? Trust::kUser : Trust::kRefused, types);
  }

  UserEngine(Database database, Connection connection)
      : database_(std::move(database)), connection_(std::move(connection)) {}
  Database database_;
  Connection connection_;
};

}  // namespace

// The engine is started when something is asked that was not answered before.
struct Run::State {
  struct Engine {
    Database database;
    Connection connection;
  };
  std::string folder;
  std::unique_ptr<EngineFolder> engine_folder;
  std::string list;  // the text of run.json
  RunInfo info;
  std::vector<OpenFile> facts, derived = {};
  ColumnsOfTables fact_columns = {}, derived_columns = {};
  std::optional<Engine> own = {};
  Answers of_facts = {}, of_derived = {};
  Answers* answers = &of_facts;  // nullptr: what is asked now, to make the derived tables, nobody asks again
  std::string user_memory = "2GB";
  std::optional<UserEngine> user = {};  // made when first asked for

  std::vector<OpenFile> files() const {
    std::vector<OpenFile> all = facts;
    all.insert(all.end(), derived.begin(), derived.end());
    return all;
  }
  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const OpenFile& file : facts) sum += file.listed.rows;
    return sum;
  }
  Result<void> show() {
    ColumnsOfTables columns = fact_columns;
    columns.insert(derived_columns.begin(), derived_columns.end());
    for (const std::string& view : view_statements(files(), columns)) LLMPROF_TRY(own->connection.run(view));
    return {};
  }
  Result<const Connection*> engine() {
    if (own.has_value()) return &own->connection;
    LLMPROF_LET(Database database, rows() < kRowsForThreads ? Database::open({{"threads", "1"}}) : Database::open());
    LLMPROF_LET(Connection connection, database.connect());
    LLMPROF_LET(fact_columns, check_parquet(connection, facts));
    LLMPROF_LET(derived_columns, check_parquet(connection, derived));
    own.emplace(Engine{std::move(database), std::move(connection)});
    LLMPROF_TRY(show());
    return &own->connection;
  }
  Result<const UserEngine*> user_engine() {
    if (!user.has_value()) {
      LLMPROF_LET(UserEngine engine, UserEngine::create(files(), user_memory));
      user.emplace(std::move(engine));
    }
    return &*user;
  }
};

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

std::string run_folder(const std::string& name) {
  std::string folder = name;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (folder.ends_with(".llmprof") || base::is_file(folder + "/run.json")) return folder;
  return folder + ".llmprof";
}

Result<Run> Run::open(const std::string& path) {
  std::string folder = run_folder(path);
  if (!base::is_directory(folder) && (base::is_file(path) || base::is_directory(path))) folder = path;
  LLMPROF_TRY(must_be_run(folder));
  LLMPROF_LET(const std::string text, base::read_file(folder + "/run.json", kMaxRunJson));
  LLMPROF_LET(RunInfo info, parse_run_info(text, folder + "/run.json"));
  auto engine_folder = std::make_unique<EngineFolder>(folder);
  LLMPROF_LET(std::vector<OpenFile> files, open_files(folder, engine_folder->path(), info.files, TableKind::kFact));
  std::unique_ptr<State> state(new State{.folder = folder,
                                         .engine_folder = std::move(engine_folder),
                                         .list = text,
                                         .info = std::move(info),
                                         .facts = std::move(files)});
  state->of_facts = Answers(folder + "/derived/" + kAnswersFile, text);
  if (!state->of_facts.believed()) LLMPROF_TRY(state->engine());
  return Run(std::move(state));
}

const std::string& Run::folder() const { return state_->folder; }
const RunInfo& Run::info() const { return state_->info; }

Result<ResultTable> Run::query(const std::string& sql) const {
  Answers* answers = state_->answers;
  if (auto known = answers != nullptr ? answers->table(sql) : std::nullopt) return std::move(*known);
  LLMPROF_LET(const Connection* connection, state_->engine());
  LLMPROF_LET(Stream stream, connection->stream(sql, Trust::kOwn, Types::kPlain));
  ResultTable out{stream.names(), {}};
  LLMPROF_TRY(read_rows(*connection, stream, [&](std::vector<Value>& row) {
    out.rows.push_back(std::move(row));
    return true;
  }));
  if (answers != nullptr) answers->keep(sql, out);
  return out;
}

Result<Columns> Run::columns(const std::string& sql) const {
  Answers* answers = state_->answers;
  if (auto known = answers != nullptr ? answers->columns(sql) : std::nullopt) return std::move(*known);
  LLMPROF_LET(const Connection* connection, state_->engine());
  LLMPROF_LET(Stream stream, connection->stream(sql));
  LLMPROF_LET(Columns out, read_columns(*connection, stream));
  if (answers != nullptr) answers->keep(sql, out);
  return out;
}

Result<void> Run::column_chunks(const std::string& sql, const ChunkSink& sink) const {
  Answers* answers = state_->answers;
  if (answers != nullptr && answers->chunks(sql, sink)) return {};
  LLMPROF_LET(const Connection* connection, state_->engine());
  LLMPROF_LET(Stream stream, connection->stream(sql));
  if (answers == nullptr) return read_column_chunks(*connection, stream, sink);
  const Answers::Recorder recorder = answers->recorder(sql, sink);
  LLMPROF_TRY(read_column_chunks(*connection, stream, recorder.sink));
  recorder.all_came();
  return {};
}

Result<bool> Run::use_derived(const std::string& key) {
  state_->answers = nullptr;
  const std::string below = "/derived/" + key;
  const std::string index = state_->folder + below + "/" + kDerivedIndex;
  const auto text = base::read_file(index, kMaxRunJson);
  if (!text) return false;
  const auto listed = parse_table_files(*text, index);
  if (!listed) return false;
  auto files = open_files(state_->folder + below, state_->engine_folder->path() + below, *listed, TableKind::kDerived);
  if (!files) return false;
  Answers answers(state_->folder + below + "/" + kAnswersFile, state_->list + *text);
  if (!answers.believed()) LLMPROF_TRY(state_->engine());
  if (state_->own.has_value()) {
    auto columns = check_parquet(state_->own->connection, *files);
    if (!columns) return false;
    state_->derived_columns = std::move(*columns);
  }
  state_->derived = std::move(*files);
  state_->of_derived = std::move(answers);
  state_->answers = &state_->of_derived;
  state_->user.reset();
  if (state_->own.has_value()) LLMPROF_TRY(state_->show());
  return true;
}

void Run::keep_answers() {
  state_->of_facts.write();
  state_->of_derived.write();
}

void Run::limit_user_memory(const std::string& size) {
  state_->user_memory = size;
  state_->user.reset();
}

Result<void> Run::user_query_each(const std::string& sql, const ColumnSink& columns, const RowSink& row) const {
  LLMPROF_LET(const UserEngine* engine, state_->user_engine());
  return engine->each(sql, columns, row);
}

Result<ResultTable> Run::user_query(const std::string& sql, const QueryLimits& limits) const {
  ResultTable out;
  const auto full = [&] {
    return limits.max_rows >= 0 && out.rows.size() >= static_cast<std::size_t>(limits.max_rows);
  };
  LLMPROF_TRY(user_query_each(
      sql, [&](const std::vector<std::string>& names) { out.columns = names; },
      [&](const std::vector<Value>& row) {
        if (!full()) out.rows.push_back(row);
        return !full();
      }));
  return out;
}

Result<std::int64_t> Run::user_query_to_parquet(const std::string& sql, const std::string& file) const {
  LLMPROF_LET(const UserEngine* engine, state_->user_engine());
  return engine->to_parquet(sql, file);
}

std::size_t ResultTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name);
  LLMPROF_ASSERT(found != columns.end());
  return static_cast<std::size_t>(found - columns.begin());
}

std::int64_t Value::as_int() const {
  if (type == Type::kInt || type == Type::kBool) return integer;
  if (type != Type::kDouble || std::isnan(real)) return 0;
  return static_cast<std::int64_t>(std::clamp(real, -9.2e18, 9.2e18));
}

double Value::as_double() const {
  if (type == Type::kInt || type == Type::kBool) return static_cast<double>(integer);
  return type == Type::kDouble ? real : 0;
}

std::optional<double> Value::maybe_double() const { return is_null() ? std::nullopt : std::optional(as_double()); }
std::optional<std::int64_t> Value::maybe_int() const { return is_null() ? std::nullopt : std::optional(as_int()); }

}  // namespace llmprof::trace

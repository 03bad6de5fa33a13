#include "trace/database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "base/file.h"

namespace llmprof::trace {
namespace {

std::string in_quotes(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    out += c;
    if (c == quote) out += quote;
  }
  return out + quote;
}

// The engine's messages have several lines; the last two point into the statement and become the hint.
Error sql_error(const char* text, Trust trust) {
  std::string message = text != nullptr ? text : "unknown error";
  std::string hint;
  if (const std::size_t at = message.find("\n\nLINE "); at != std::string::npos) {
    hint = "see " + message.substr(at + 2, message.find('\n', at + 2) - at - 2);
    message.resize(at);
  }
  if (message.find("Out of Memory") != std::string::npos)
    hint = "--memory 8GB (or more) gives the statement more memory";
  std::ranges::replace(message, '\n', ' ');
  return Error{trust == Trust::kOwn ? ErrorCode::kInternal : ErrorCode::kCorruptInput, "SQL: " + message, hint};
}

bool is_plain(duckdb_type type) {
  return (type >= DUCKDB_TYPE_BOOLEAN && type <= DUCKDB_TYPE_DOUBLE) || type == DUCKDB_TYPE_HUGEINT ||
         type == DUCKDB_TYPE_DECIMAL || type == DUCKDB_TYPE_VARCHAR;
}

Error not_a_select(std::string_view what) {
  return Error{ErrorCode::kPermission, fmt::format("{}: only one SELECT statement is allowed", what),
               "a run is read-only; results go to a file with --csv, --json or --parquet FILE"};
}

Result<DuckDbApi> load() {
  const std::vector<std::string> names{library_folder() + "/libduckdb.so"};
  auto api = base::load_api<DuckDbApi>(names, DuckDbApi::symbols());
  if (!api) {
    api.error().hint = "llmprof needs its lib/llmprof folder beside its bin folder; LLMPROF_LIBDIR names another place";
  }
  return api;
}

}  // namespace

std::string sql_literal(std::string_view text) { return in_quotes(text, '\''); }
std::string sql_identifier(std::string_view name) { return in_quotes(name, '"'); }

Result<Database> Database::open(std::initializer_list<Setting> settings) {
  const Result<DuckDbApi>& api = duckdb_api();
  if (!api) return Error(api.error());
  duckdb_config config = nullptr;
  api->create_config(&config);
  api->set_config(config, "autoinstall_known_extensions", "false");
  api->set_config(config, "autoload_known_extensions", "false");
  api->set_config(config, "temp_directory", "");
  std::string wrong;
  for (const auto& [name, value] : settings) {
    if (api->set_config(config, name, value.c_str()) != DuckDBSuccess) wrong = fmt::format("{}={}", name, value);
  }
  duckdb_database handle = nullptr;
  char* error = nullptr;
  const bool opened = wrong.empty() && api->open_ext(":memory:", &handle, config, &error) == DuckDBSuccess;
  api->destroy_config(&config);
  if (opened) return Database(&*api, handle);
  Error out{ErrorCode::kUsage, fmt::format("cannot start the SQL engine: {}", error != nullptr ? error : wrong.c_str()),
            ""};
  if (error != nullptr) api->free(error);
  return out;
}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(handle_, other.handle_);
  return *this;
}

Database::~Database() {
  if (handle_ != nullptr) api_->close(&handle_);
}

Result<Connection> Database::connect() const {
  duckdb_connection handle = nullptr;
  if (api_->connect(handle_, &handle) != DuckDBSuccess)
    return Error{ErrorCode::kInternal, "the SQL engine refuses a connection", ""};
  return Connection(api_, handle);
}

Stream::Stream(Stream&& other) noexcept
    : api_(other.api_),
      statement_(std::exchange(other.statement_, nullptr)),
      result_(std::exchange(other.result_, duckdb_result{})),
      chunk_(std::exchange(other.chunk_, nullptr)),
      names_(std::move(other.names_)) {}

Stream::~Stream() {
  if (chunk_ != nullptr) api_->destroy_data_chunk(&chunk_);
  if (result_.internal_data != nullptr) api_->destroy_result(&result_);
  if (statement_ != nullptr) api_->destroy_prepare(&statement_);
}

Result<duckdb_data_chunk> Stream::next() {
  if (chunk_ != nullptr) api_->destroy_data_chunk(&chunk_);
  chunk_ = api_->fetch_chunk(result_);
  if (chunk_ != nullptr) return chunk_;
  if (const char* error = api_->result_error(&result_); error != nullptr && *error != '\0')
    return sql_error(error, Trust::kUser);
  return chunk_;
}

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(handle_, other.handle_);
  return *this;
}

Connection::~Connection() {
  if (handle_ != nullptr) api_->disconnect(&handle_);
}

Result<void> Connection::run(const std::string& sql) const {
  duckdb_result result{};
  const bool done = api_->query(handle_, sql.c_str(), &result) == DuckDBSuccess;
  Result<void> out;
  if (!done) out = sql_error(api_->result_error(&result), Trust::kOwn);
  api_->destroy_result(&result);
  return out;
}

Result<void> Connection::prepare(Stream& stream, const std::string& sql, Trust trust) const {
  if (sql.find('\0') != std::string::npos) return sql_error("the statement holds a NUL byte", trust);
  if (stream.statement_ != nullptr) api_->destroy_prepare(&stream.statement_);
  duckdb_extracted_statements statements = nullptr;
  const idx_t count = api_->extract_statements(handle_, sql.c_str(), &statements);
  Result<void> out;
  if (const char* error = api_->extract_statements_error(statements); error != nullptr) {
    out = sql_error(error, trust);
  } else if (count != 1) {
    out = not_a_select(count == 0 ? "no statement" : fmt::format("{} statements", count));
  } else if (trust == Trust::kRefused) {
    out = not_a_select("the statement is no query");
  } else if (api_->prepare_extracted_statement(handle_, statements, 0, &stream.statement_) != DuckDBSuccess) {
    out = sql_error(api_->prepare_error(stream.statement_), trust);
  } else if (trust == Trust::kUser &&
             api_->prepared_statement_type(stream.statement_) != DUCKDB_STATEMENT_TYPE_SELECT) {
    out = not_a_select("the statement is no query");
  } else if (api_->nparams(stream.statement_) != 0) {
    out = not_a_select("the statement has open parameters");
  }
  api_->destroy_extracted(&statements);
  return out;
}

// The statement around itself, with a CAST where one is needed; "" if none is. query() takes it as it stands, with its
// comments and final semicolon.
std::string Connection::with_plain_types(const Stream& stream, const std::string& sql) const {
  std::string aliases, columns;
  bool needed = false;
  for (idx_t i = 0; i < api_->prepared_column_count(stream.statement_); ++i) {
    const bool plain = is_plain(api_->prepared_column_type(stream.statement_, i));
    needed = needed || !plain;
    const std::string alias = fmt::format("c{}", i);
    aliases += (i == 0 ? "" : ", ") + alias;
    columns += (i == 0 ? "" : ", ") + (plain ? alias : fmt::format("CAST({} AS VARCHAR)", alias));
  }
  return needed ? fmt::format("SELECT {} FROM query({}) AS q({})", columns, sql_literal(sql), aliases) : "";
}

Result<Stream> Connection::stream(const std::string& sql, Trust trust, Types types) const {
  Stream stream(api_);
  LLMPROF_TRY(prepare(stream, sql, trust));
  for (idx_t i = 0; i < api_->prepared_column_count(stream.statement_); ++i) {
    const char* name = api_->prepared_column_name(stream.statement_, i);
    stream.names_.emplace_back(name != nullptr ? name : "");
    api_->free(const_cast<char*>(name));
  }
  if (const std::string plain = types == Types::kPlain ? with_plain_types(stream, sql) : ""; !plain.empty()) {
    LLMPROF_TRY(prepare(stream, plain, trust));
  }
  duckdb_pending_result pending = nullptr;
  const bool running = api_->pending_prepared_streaming(stream.statement_, &pending) == DuckDBSuccess &&
                       api_->execute_pending(pending, &stream.result_) == DuckDBSuccess;
  Result<void> state;
  if (!running) {
    const char* late = stream.result_.internal_data != nullptr ? api_->result_error(&stream.result_) : nullptr;
    state = sql_error(late != nullptr ? late : api_->pending_error(pending), trust);
  }
  api_->destroy_pending(&pending);
  LLMPROF_TRY(std::move(state));
  return stream;
}

std::string library_folder() {
  if (const std::string folder = base::env_or("LLMPROF_LIBDIR", ""); !folder.empty()) return folder;
  char path[PATH_MAX];
  const ssize_t bytes = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return program.substr(0, program.rfind('/') + 1) + "../lib/llmprof";
}

const Result<DuckDbApi>& duckdb_api() {
  static const Result<DuckDbApi> api = load();
  return api;
}

}  // namespace llmprof::trace

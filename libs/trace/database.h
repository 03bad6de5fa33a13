#pragma once
// DuckDB as the rest of libs/trace sees it: a database in memory, connections, streamed results.
// A Connection must not outlive its Database, nor a Stream its Connection. One thread per connection.

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/duckdb_api.h"
#include "trace/run.h"

namespace llmprof::trace {

class Connection;

class Database {
 public:
  using Setting = std::pair<const char*, std::string>;
  // In memory; extensions are never installed or loaded, nothing is spilled to disk.
  static Result<Database> open(std::initializer_list<Setting> settings = {});
  Database(Database&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Database& operator=(Database&& other) noexcept;
  ~Database();
  Result<Connection> connect() const;

 private:
  Database(const DuckDbApi* api, duckdb_database handle) : api_(api), handle_(handle) {}
  const DuckDbApi* api_;
  duckdb_database handle_;
};

// The rows of a SELECT, 2048 at a time.
class Stream {
 public:
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  // The next chunk, nullptr at the end. It is valid until the next call.
  Result<duckdb_data_chunk> next();
  duckdb_result& result() { return result_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend class Connection;
  explicit Stream(const DuckDbApi* api) : api_(api) {}
  const DuckDbApi* api_;
  duckdb_prepared_statement statement_ = nullptr;
  duckdb_result result_{};
  duckdb_data_chunk chunk_ = nullptr;
  std::vector<std::string> names_;
};

enum class Trust : std::uint8_t {
  kOwn,
  kUser,     // must be a SELECT
  kRefused,  // never runs: only the reason is wanted
};
enum class Types : std::uint8_t {
  kAll,    // as the engine has them
  kPlain,  // numbers, BOOLEAN and VARCHAR; dates, lists and everything else are cast to VARCHAR
};

class Connection {
 public:
  Connection(Connection&& other) noexcept : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();
  const DuckDbApi& api() const { return *api_; }
  duckdb_connection handle() const { return handle_; }

  Result<void> run(const std::string& sql) const;  // statements without a result
  Result<Stream> stream(const std::string& sql, Trust trust = Trust::kOwn, Types types = Types::kAll) const;

 private:
  friend class Database;
  Connection(const DuckDbApi* api, duckdb_connection handle) : api_(api), handle_(handle) {}
  Result<void> prepare(Stream& stream, const std::string& sql, Trust trust) const;
  std::string with_plain_types(const Stream& stream, const std::string& sql) const;
  const DuckDbApi* api_;
  duckdb_connection handle_;
};

}  // namespace llmprof::trace

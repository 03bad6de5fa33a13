// Exports of Nsight Systems: the bytes of a database, and (input that begins with '!') tables of the right names with
// values of any type. What comes out can be calculated with, and ids lead somewhere.

#include <sqlite3.h>

#include <set>

#include "fuzz.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::fuzz {
namespace {

using importers::MemorySink;

struct Shape {
  const char* name;
  const char* columns;
  int count;
};
constexpr Shape kShapes[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "start, end, deviceId, streamId, correlationId, globalPid, mangledName, graphNodeId",
     8},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, eventClass, globalTid, correlationId, nameId, callchainId", 7},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "start, end, correlationId, globalPid, bytes, copyKind, srcKind, dstKind", 8},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start, end, correlationId, globalPid, graphId, graphExecId", 6},
    {"NVTX_EVENTS", "start, end, eventType, globalTid, text, textId, domainId, category, int64Value, doubleValue", 10},
    {"CUDA_GRAPH_NODE_EVENTS", "start, globalTid, graphNodeId, originalGraphNodeId", 4},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS", "start, address, bytes, memKind, memoryOperationType, globalPid", 6},
    {"GPU_METRICS", "timestamp, typeId, metricId, value", 4},
    {"TARGET_INFO_GPU_METRICS", "typeId, metricId, metricName", 3},
    {"CUDA_CALLCHAINS", "id, symbol, module", 3},
    {"DIAGNOSTIC_EVENT", "timestamp, severity, text, globalPid", 4},
    {"ThreadNames", "nameId, priority, globalTid", 3},
    {"TARGET_INFO_GPU", "id, name, smCount, totalMemory, clockRate, uuid, cuDevice", 7},
    {"META_DATA_EXPORT", "name, value", 2}};

class Memory {
 public:
  Memory() {
    sqlite3_open(":memory:", &connection_);
    run("PRAGMA page_size = 512; CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, '_Z5scalePfi')");
  }
  ~Memory() { sqlite3_close(connection_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void run(const std::string& sql) { sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr); }
  std::string bytes() {
    sqlite3_int64 size = 0;
    unsigned char* stored = sqlite3_serialize(connection_, "main", &size, 0);
    std::string content(reinterpret_cast<char*>(stored), static_cast<std::size_t>(size));
    sqlite3_free(stored);
    return content;
  }

 private:
  sqlite3* connection_ = nullptr;
};

// A value of a cell, by one byte: small numbers mostly, so that rows find each other.
std::string cell(unsigned char byte) {
  if (byte < 200) return std::to_string(byte % 64);
  switch (byte % 8) {
    case 0:
      return "NULL";
    case 1:
      return "'text'";
    case 2:
      return "x'00ff'";
    case 3:
      return "9223372036854775807";
    case 4:
      return "-9223372036854775808";
    case 5:
      return "281486586544820";
    case 6:
      return "1.5";
    default:
      return std::to_string(byte);
  }
}

std::string built(std::string_view input) {
  Memory memory;
  for (const Shape& shape : kShapes) memory.run(std::string("CREATE TABLE ") + shape.name + " (" + shape.columns + ")");
  std::size_t at = 0;
  while (at < input.size() && at < 512) {
    const Shape& shape = kShapes[static_cast<unsigned char>(input[at++]) % std::size(kShapes)];
    std::string values;
    for (int i = 0; i < shape.count; ++i)
      values += (i == 0 ? "" : ", ") + cell(at < input.size() ? static_cast<unsigned char>(input[at++]) : 0);
    memory.run(std::string("INSERT INTO ") + shape.name + " VALUES (" + values + ")");
  }
  return memory.bytes();
}

template <class Row>
void check_times(const MemorySink& sink) {
  for (const Row& row : sink.rows<Row>()) require(row.end_ns >= row.begin_ns && row.end_ns - row.begin_ns >= 0);
}

void run(std::string_view input) {
  const std::string content = input.starts_with('!') ? built(input.substr(1)) : std::string(input);
  importers::Input file = importers::Input::of_text("input", content);
  MemorySink sink;
  const auto done = importers::find_importer("nsys")->parse(file, sink);
  sink.flush();
  require(done.has_value() || !done.error().message.empty());
  if (!done) return;
  check_times<trace::KernelRow>(sink);
  check_times<trace::CopyRow>(sink);
  check_times<trace::ApiRow>(sink);
  check_times<trace::RangeRow>(sink);
  std::set<trace::Id> threads{0}, devices, ranges;
  for (const auto& row : sink.rows<trace::ThreadRow>()) threads.insert(row.id);
  for (const auto& row : sink.rows<trace::DeviceRow>()) devices.insert(row.id);
  for (const auto& row : sink.rows<trace::RangeRow>()) {
    require(ranges.insert(row.id).second && threads.contains(row.thread_id));
    require(!row.parent_id || (row.depth > 0 && ranges.contains(*row.parent_id)));
  }
  for (const auto& row : sink.rows<trace::KernelRow>())
    require(threads.contains(row.thread_id) && devices.contains(row.device_id) && row.name.id != 0);
}

std::vector<std::string> seeds() {
  Memory memory;
  memory.run(
      "CREATE TABLE META_DATA_EXPORT (name, value); INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', "
      "'3.20.3'); CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, mangledName);"
      "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) INSERT INTO "
      "CUPTI_ACTIVITY_KIND_KERNEL SELECT 200 + i, 210 + i, 0, 7, 7, 11609833472, 2 FROM n;"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90, 95, 0, 11609833972, 7, 1);"
      "INSERT INTO NVTX_EVENTS VALUES (1, 500, 59, 11609833972, 'decode'), (2, 90, 59, 11609833972, 'step')");
  std::string rows = "!";
  for (int i = 0; i < 200; ++i) rows += static_cast<char>(i * 37);
  return {memory.bytes(), rows};
}

std::vector<std::string> dictionary() { return {"CREATE VIEW ", "CREATE TABLE ", "StringIds", "NVTX_EVENTS", "_V2"}; }

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

// Nsight Systems, SQLite export. Tables are found by name and read by the columns they have, each in one pass in the
// order of its rows; joins are made here, not by SQL. docs/format/import-nsys.md tells what becomes what.
#include "importers/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "importers/nsys_sqlite/calls.h"
#include "importers/nsys_sqlite/memory.h"
#include "importers/nsys_sqlite/ranges.h"
#include "importers/nsys_sqlite/readings.h"
#include "importers/nsys_sqlite/work.h"

namespace llmprof::importers {
namespace nsys_sqlite {
namespace {

using namespace nsys;

constexpr std::array kEventTables{"CUPTI_ACTIVITY_KIND_KERNEL",
                                  "CUPTI_ACTIVITY_KIND_MEMCPY",
                                  "CUPTI_ACTIVITY_KIND_MEMSET",
                                  "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                  "CUPTI_ACTIVITY_KIND_RUNTIME",
                                  "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                  "NVTX_EVENTS",
                                  "CUDA_GRAPH_NODE_EVENTS",
                                  "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                  "GPU_METRICS",
                                  "COMPOSITE_EVENTS",
                                  "PROFILER_OVERHEAD",
                                  "DIAGNOSTIC_EVENT",
                                  "CUDA_CALLCHAINS",
                                  "SAMPLING_CALLCHAINS"};
// What is read of the tables about the others.
constexpr std::array kTablesAbout{"StringIds",
                                  "META_DATA_EXPORT",
                                  "META_DATA_CAPTURE",
                                  "TARGET_INFO_GPU",
                                  "TARGET_INFO_CUDA_DEVICE",
                                  "TARGET_INFO_GPU_METRICS",
                                  "TARGET_INFO_SYSTEM_ENV",
                                  "TARGET_INFO_SESSION_START_TIME",
                                  "PROCESSES",
                                  "ThreadNames"};
// Tables about the others, by how their names begin: they hold no events.
constexpr std::array<std::string_view, 11> kAbout{
    "ENUM_",       "META_DATA_",     "TARGET_INFO_",  "ANALYSIS_",          "StringIds",           "PROCESSES",
    "ThreadNames", "ProcessStreams", "NVTX_PAYLOAD_", "GENERIC_EVENT_TYPE", "GENERIC_EVENT_SOURCE"};

int sniff(std::string_view head) {
  if (!head.starts_with(std::string_view("SQLite format 3\0", 16))) return 0;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  return has("CUPTI_ACTIVITY_KIND_") || has("META_DATA_EXPORT") || has("NVTX_EVENTS") ? 100 : 50;
}

Result<void> check_tables(Database& database) {
  LLMPROF_TRY(database.refuse_disguises(kEventTables));
  LLMPROF_TRY(database.refuse_disguises(kTablesAbout));
  const bool events = std::ranges::any_of(kEventTables, [&](const char* table) { return database.has(table); });
  const char* missing = !events && !database.has("META_DATA_EXPORT") ? "META_DATA_EXPORT" : nullptr;
  if (missing == nullptr && !database.has("StringIds")) missing = "StringIds";
  if (missing == nullptr) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("a SQLite database without table {}: this is no export of Nsight Systems", missing),
               "an export is made by: nsys export --type sqlite --output NAME.sqlite REPORT.nsys-rep"};
}

// What has rows and no use here.
void count_ignored(Database& database) {
  for (const std::string& table : database.tables()) {
    const bool known =
        std::ranges::any_of(kAbout, [&](std::string_view prefix) { return table.starts_with(prefix); }) ||
        std::ranges::any_of(kEventTables, [&](const char* name) { return database.find_table(name) == table; });
    if (!known) database.sink().lose(trace::Loss::kInputIgnored, database.size_of(table), "rows of table " + table);
  }
}

// The calls are let go of before the ranges come: both may be many.
Result<bool> read_device_work(Database& database, Strings& strings, Actors& actors, Devices& devices) {
  Launches launches;
  Graphs graphs(database, actors);
  std::vector<trace::Id> stack_ids;
  LLMPROF_TRY(read_calls(database, strings, actors, launches, stack_ids));
  LLMPROF_TRY(graphs.read_nodes());
  Work work(database, strings, actors, devices, graphs, launches, stack_ids);
  LLMPROF_TRY(work.read_kernels());
  LLMPROF_TRY(work.read_copies());
  LLMPROF_TRY(work.read_fills());
  LLMPROF_TRY(work.read_graph_launches());
  graphs.write();
  LLMPROF_TRY(read_allocations(database, actors, devices, launches));
  return work.found_any();
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::unique_ptr<Database> database, Database::open(input, sink));
  LLMPROF_TRY(check_tables(*database));
  LLMPROF_LET(const About about, read_about(*database));
  write_about(sink, about);
  Strings strings(*database);
  Actors actors(*database, strings);
  Devices devices(*database);
  LLMPROF_TRY(devices.read(about.driver));
  LLMPROF_LET(const bool any_work, read_device_work(*database, strings, actors, devices));
  if (!any_work) sink.lose(trace::Loss::kNoDeviceWork, 1);
  if (!database->has("CUPTI_ACTIVITY_KIND_RUNTIME")) LLMPROF_TRY(read_waits(*database, actors));
  LLMPROF_TRY(Ranges(*database, strings, actors).read());
  LLMPROF_TRY(read_samples(*database, strings, actors, about));
  LLMPROF_TRY(read_gpu_metrics(*database, devices));
  LLMPROF_TRY(read_diagnostics(*database));
  LLMPROF_TRY(read_overhead(*database));
  count_ignored(*database);
  return actors.write({about.host, about.rank, about.command});
}

}  // namespace
}  // namespace nsys_sqlite

extern const Importer kNsysSqlite;
const Importer kNsysSqlite{"nsys", "Nsight Systems, SQLite export", Role::kTrace, nsys_sqlite::sniff,
                           nsys_sqlite::parse};

}  // namespace llmprof::importers

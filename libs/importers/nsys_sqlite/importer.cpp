// Nsight Systems, SQLite export. Tables are found by name and read by the columns they have, each in one pass in the
// order of its rows; joins are made here, not by SQL. docs/format/import-nsys.md tells what becomes what.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/nsys_sqlite/host_calls.h"
#include "importers/nsys_sqlite/readings.h"

namespace llmprof::importers {
namespace nsys_sqlite {
namespace {

using namespace nsys;

constexpr const char* kEventTables[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
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
constexpr const char* kTablesAbout[] = {"StringIds",
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
  const auto has = [&](std::string_view word) { return base::contains(head, word); };
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

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::unique_ptr<Database> database, Database::open(input, sink));
  LLMPROF_TRY(check_tables(*database));
  LLMPROF_LET(const About about, read_about(*database));
  write_about(sink, about);
  Export from(*database);
  LLMPROF_TRY(from.devices.read(about.driver));
  LLMPROF_LET(const bool any_work, read_device_work(from));
  if (!any_work) sink.lose(trace::Loss::kNoDeviceWork, 1);
  if (!database->has("CUPTI_ACTIVITY_KIND_RUNTIME")) LLMPROF_TRY(read_waits(from));
  LLMPROF_TRY(read_ranges(from));
  LLMPROF_TRY(read_samples(from, about));
  LLMPROF_TRY(read_gpu_metrics(from));
  LLMPROF_TRY(read_diagnostics(*database));
  LLMPROF_TRY(read_overhead(*database));
  count_ignored(*database);
  return from.actors.write({about.host, about.rank, about.command});
}

}  // namespace
}  // namespace nsys_sqlite

extern const Importer kNsysSqlite;
const Importer kNsysSqlite{"nsys", "Nsight Systems, SQLite export", Role::kTrace, nsys_sqlite::sniff,
                           nsys_sqlite::parse};

// Reports of NVIDIA's profilers in their own binary forms, which only NVIDIA's programs read: the answer is the command
// that makes something readable of them.
namespace report_file {
namespace {

constexpr std::string_view kNsysMagic = "NVIDIA Tegra Profiler";  // .nsys-rep, formerly .qdrep
constexpr std::string_view kNcuMagic("NVR\0", 4);                 // .ncu-rep

int sniff(std::string_view head) { return head.starts_with(kNsysMagic) || head.starts_with(kNcuMagic) ? 100 : 0; }

std::string without_ending(const std::string& name) {
  const std::size_t slash = name.find_last_of('/'), dot = name.find_last_of('.');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash) ? name : name.substr(0, dot);
}

// As a word for a shell.
std::string word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:,=@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Result<void> parse(Input& input, Sink&) {
  LLMPROF_LET(const std::string_view head, input.head());
  const std::string& name = input.name();
  const std::string stem = without_ending(name);
  if (head.starts_with(kNcuMagic))
    return Error{ErrorCode::kUnsupported, "byte 0: a report of Nsight Compute, which only ncu itself can read",
                 fmt::format("make a table of it and import that: ncu --import {} --csv --page raw > {}", word(name),
                             word(stem + ".csv"))};
  const bool stream = name.ends_with(".qdstrm");  // what nsys leaves when it was stopped before writing its report
  const std::string report = stream ? stem + ".nsys-rep" : name;
  const std::string convert = stream ? fmt::format("QdstrmImporter -i {} && ", word(name)) : "";
  return Error{ErrorCode::kUnsupported,
               stream ? "byte 0: an unfinished recording of Nsight Systems"
                      : "byte 0: a report of Nsight Systems, which only nsys itself can read",
               fmt::format("export it and import that: {}nsys export --type sqlite --output {} {}", convert,
                           word(stem + ".sqlite"), word(report))};
}

}  // namespace
}  // namespace report_file

extern const Importer kNsysReport;
const Importer kNsysReport{"nsys-rep", "Nsight Systems or Nsight Compute report", Role::kTrace, report_file::sniff,
                           report_file::parse};

}  // namespace llmprof::importers

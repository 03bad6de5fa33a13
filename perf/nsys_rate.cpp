// How fast exports of Nsight Systems are read. Writes one with N kernels (two calls for each, as PyTorch makes them,
// and a range for every 50), in the schema of a real export, and reads it: by the importer alone into nothing, and by
// `llmprof import`. Usage: nsys_rate [N] [LLMPROF]
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "counting_sink.h"
#include "importers/importer.h"
#include "importers/input.h"

namespace {

using namespace llmprof;

constexpr std::int64_t kGlobalPid = (std::int64_t{1} << 48) | (std::int64_t{692} << 24);

class Export {
 public:
  explicit Export(const std::string& path) {
    check(sqlite3_open(path.c_str(), &database_));
    run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  }
  void run(const char* sql) { check(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr)); }
  // Rows that `fill` makes, given their number.
  template <class Fill>
  void insert(const char* sql, std::int64_t count, const Fill& fill) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr));
    for (std::int64_t i = 0; i < count; ++i) {
      int column = 0;
      for (const std::int64_t value : fill(i)) sqlite3_bind_int64(statement, ++column, value);
      sqlite3_step(statement);
      sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
  }
  void close() {
    run("COMMIT");
    check(sqlite3_close(database_));
  }

 private:
  static void check(int code) {
    if (code != SQLITE_OK) fmt::print(stderr, "nsys_rate: {}\n", sqlite3_errstr(code)), std::exit(2);
  }
  sqlite3* database_ = nullptr;
};

constexpr const char* kSchema = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1794708399392700330, '', '');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER, totalMemory INTEGER, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 132, 150109880320, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
 globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
 globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
 launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
 gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
 blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
 localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,
 sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
 category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
 domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER,
 int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
)";

void write_export(const std::string& path, std::int64_t kernels) {
  Export file(path);
  file.run(kSchema);
  file.run(
      "INSERT INTO StringIds VALUES (200, 'cudaLaunchKernel_v7000'), (201, 'cuKernelGetName'), (202, 'decode_step')");
  for (int i = 0; i < 60; ++i) {
    const std::string text = fmt::format("_Z{}gemm_kernel_{}ILi{}EEvPf", i < 10 ? 13 : 14, i, i);
    file.run(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", i, text).c_str());
  }
  using Row = std::vector<std::int64_t>;
  constexpr std::int64_t kBegin = 14'000'000'000, kStep = 9'731;
  file.insert("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,0,NULL)", 2 * kernels, [](std::int64_t i) {
    const std::int64_t start = kBegin + i / 2 * kStep + i % 2 * 5'100;
    return Row{start, start + 4'800 - i % 2 * 4'500, i % 2, kGlobalPid + 692, i + 1, 200 + i % 2};
  });
  file.insert(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,0,7,?,?,?,?,?,1,1,56,?,1,1,256,1,1,0,?,0,"
      "155713536,?,32768,NULL,0)",
      kernels, [](std::int64_t i) {
        const std::int64_t start = kBegin + i * kStep + 6'000 + i * 7 % 1'300;
        return Row{start,         start + 1'500 + i * 13 % 3'000,
                   2 * i + 1,     kGlobalPid,
                   i % 60,        i % 60,
                   i % 60,        i % 500,
                   i % 7 * 1'024, i};
      });
  file.insert("INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, textId, domainId) VALUES (?,?,59,?,202,0)",
              kernels / 50, [](std::int64_t i) {
                return Row{kBegin + i * 50 * kStep - 100, kBegin + (i + 1) * 50 * kStep - 200, kGlobalPid + 692};
              });
  file.close();
}

double cpu_s(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void read_alone(const std::string& path, std::int64_t kernels) {
  const double before_s = cpu_s(RUSAGE_SELF);
  auto input = importers::Input::open(path);
  if (!input) fmt::print(stderr, "nsys_rate: {}\n", input.error().message), std::exit(2);
  perf::CountingSink sink;
  const auto done = importers::find_importer("nsys")->parse(*input, sink);
  if (!done) fmt::print(stderr, "nsys_rate: {}\n", done.error().message), std::exit(2);
  sink.flush();
  const double took_s = cpu_s(RUSAGE_SELF) - before_s;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("importer alone: {:.2f} s CPU, {:.2f} M kernels/s ({} rows in all), at most {} MiB\n", took_s,
             static_cast<double>(kernels) / took_s / 1e6, sink.rows, usage.ru_maxrss / 1024);
}

void read_by_program(const std::string& path, const std::string& folder, std::int64_t kernels, const char* program) {
  const double before_s = cpu_s(RUSAGE_CHILDREN);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "import", path.c_str(), "-o", folder.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  fmt::print("llmprof import: {:.2f} s, {:.2f} s CPU, {:.2f} M kernels/s, largest process {} MiB, exit status {}\n",
             wall_s, cpu_s(RUSAGE_CHILDREN) - before_s, static_cast<double>(kernels) / wall_s / 1e6,
             usage.ru_maxrss / 1024, WEXITSTATUS(status));
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t kernels = argc > 1 ? std::max(std::atoll(argv[1]), 1LL) : 1'000'000;
  std::string folder = (std::filesystem::temp_directory_path() / "nsys_rate_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  const std::string path = folder + "/export.sqlite";
  write_export(path, kernels);
  fmt::print("export of {} kernels: {} MB\n", kernels, std::filesystem::file_size(path) / 1'000'000);
  read_alone(path, kernels);
  if (argc > 2) read_by_program(path, folder + "/run.llmprof", kernels, argv[2]);
  std::filesystem::remove_all(folder);
  return 0;
}

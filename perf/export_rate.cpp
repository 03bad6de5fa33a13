// export_rate RUN [FORMAT] [OUT]: writes a run (perf/synthetic_run makes one of any size) as a format, Perfetto unless
// told otherwise, and prints what it took: wall and CPU seconds, bytes per kernel, peak memory. Derived tables are not
// used, so that the export alone is measured.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "base/file.h"
#include "exporters/exporter.h"
#include "trace/run.h"

namespace {

using namespace llmprof;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

Result<void> measure(const std::string& folder, const exporters::Exporter& exporter, const std::string& output) {
  LLMPROF_LET(const trace::Run run, trace::Run::open(folder));
  LLMPROF_LET(const trace::ResultTable kernels, run.query("SELECT count(*) FROM kernel"));
  const exporters::Selection everything;
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_LET(const exporters::Written written,
              exporter.write({.run = run, .selection = everything, .output = output, .tables = {}}));
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::getrusage(RUSAGE_SELF, &after);
  const double cpu =
      seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) - seconds(before.ru_stime);
  const auto bytes = static_cast<double>(base::file_bytes(output));
  const auto count = static_cast<double>(kernels.rows[0][0].as_int());
  fmt::print(
      "{}: {:.0f} kernels, {} records, {:.1f} s wall, {:.1f} s CPU, {:.1f} MB, {:.1f} bytes per kernel with its "
      "launch and ranges, peak memory {} MiB\n",
      exporter.name, count, written.records, wall, cpu, bytes / 1e6, bytes / count, after.ru_maxrss / 1024);
  for (const std::string& note : written.notes) fmt::print("note: {}\n", note);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const exporters::Exporter* exporter = exporters::find_exporter(argc > 2 ? argv[2] : "perfetto");
  if (argc < 2 || exporter == nullptr) {
    fmt::print(stderr, "usage: export_rate RUN [FORMAT] [OUT]\n");
    return 1;
  }
  const std::string output = argc > 3 ? argv[3] : std::string(argv[1]) + std::string(exporter->extension);
  if (const auto measured = measure(argv[1], *exporter, output); !measured) {
    fmt::print(stderr, "export_rate: {}\n", measured.error().message);
    return 2;
  }
  return 0;
}

// view_rate RUN [WINDOWS]: how long `llmprof view` takes for a zoom. Builds the index of a run (perf/synthetic_run
// makes one of 10 M kernels), then asks for windows at random places, the same number at each zoom level from the whole
// run down to a microsecond, 1500 pixels wide, each up to the bytes that the server would send. Prints p50, p95 and the
// longest by wall time and by CPU time of this thread, and what the index takes.

#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "analyze/context.h"
#include "analyze/derive.h"
#include "base/json.h"
#include "pictures/page_data.h"
#include "record/open_run.h"
#include "view/run_index.h"

namespace {

using namespace llmprof;

double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}
double wall_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  std::vector<double> wall, cpu;
  std::size_t bytes = 0;
  std::int64_t slices = 0;
};

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

void print(const std::string& what, const Times& times) {
  fmt::print("{:>22} {:>8.1f} {:>8.1f} {:>8.1f} {:>10.1f} {:>8.1f} {:>8.1f} {:>10.2f} {:>12}\n", what,
             quantile(times.wall, 0.5), quantile(times.wall, 0.95), quantile(times.wall, 1), quantile(times.cpu, 0.5),
             quantile(times.cpu, 0.95), quantile(times.cpu, 1), static_cast<double>(times.bytes) / 1e6, times.slices);
}

void ask(view::RunIndex& index, pictures::Window window, Times& times) {
  const double wall = wall_ms(), cpu = cpu_ms();
  const pictures::Timeline timeline = index.timeline({.window = window, .width = 1500, .stage = ""});
  const std::string text = base::to_line(pictures::to_json(timeline));
  times.wall.push_back(wall_ms() - wall);
  times.cpu.push_back(cpu_ms() - cpu);
  times.bytes = std::max(times.bytes, text.size());
  times.slices = std::max(times.slices, timeline.slices_in_window);
}

void zoom(view::RunIndex& index, int windows) {
  std::mt19937_64 random(1);
  const pictures::Window whole = index.bounds();
  Times all;
  fmt::print("{:>22} {:>26} {:>28} {:>10} {:>12}\n", "", "wall ms: p50  p95  max", "CPU ms: p50  p95  max", "most MB",
             "most slices");
  for (std::int64_t length = whole.end_ns - whole.begin_ns; length >= 1000; length /= 4) {
    Times times;
    for (int i = 0; i < windows; ++i) {
      const auto room = static_cast<std::uint64_t>(whole.end_ns - whole.begin_ns - length + 1);
      const std::int64_t begin = whole.begin_ns + static_cast<std::int64_t>(random() % room);
      ask(index, {begin, begin + length}, times);
    }
    print(fmt::format("{:.6f} s", static_cast<double>(length) / 1e9), times);
    all.wall.insert(all.wall.end(), times.wall.begin(), times.wall.end());
    all.cpu.insert(all.cpu.end(), times.cpu.begin(), times.cpu.end());
    all.bytes = std::max(all.bytes, times.bytes);
    all.slices = std::max(all.slices, times.slices);
  }
  print("all", all);
}

Result<void> measure(const char* path, int windows) {
  LLMPROF_LET(trace::Run run, record::open_run(path, base::no_progress));
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, {}));
  LLMPROF_TRY(analyze::ensure_derived(run, analysis, base::no_progress));
  const double wall = wall_ms(), cpu = cpu_ms();
  LLMPROF_LET(view::RunIndex index, view::RunIndex::build(run, base::no_progress));
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "index of {} slices: {:.1f} MB, built in {:.2f} s (CPU of this thread {:.2f} s); peak of the process {:.0f} MB\n",
      index.slices(), static_cast<double>(index.bytes()) / 1e6, (wall_ms() - wall) / 1e3, (cpu_ms() - cpu) / 1e3,
      static_cast<double>(used.ru_maxrss) / 1e3);
  zoom(index, windows);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int windows = argc == 3 ? std::atoi(argv[2]) : 40;
  if (argc < 2 || windows < 1) {
    fmt::print(stderr, "usage: view_rate RUN [WINDOWS]\n");
    return 1;
  }
  if (const auto done = measure(argv[1], windows); !done) {
    fmt::print(stderr, "view_rate: {}\n", done.error().message);
    return 2;
  }
  return 0;
}

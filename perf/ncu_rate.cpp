// How fast CSV of Nsight Compute is read, per CPU second: perf/ncu_rate [MB]. Rows go nowhere; `llmprof import` writes
// them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "counting_sink.h"
#include "importers/importer.h"
#include "importers/input.h"

using namespace llmprof;

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

constexpr const char* kLeading =
    "\"{}\",\"1100\",\"python3.12\",\"127.0.0.1\",\"void at::vectorized_elementwise_kernel<8, "
    "at::CUDAFunctor_add<c10::BFloat16>>(int, T2, T3)\",\"1\",\"7\",\"(128, 1, 1)\",\"(64, 2, 1)\",\"0\",\"9.0\"";
constexpr const char* kTitles =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"CC\"";
// As in a full set on an H200: whole numbers with commas, rates, percentages, zeros, nothing.
constexpr const char* kValues[] = {"0",        "134,217,728", "17,476,266,666,666.67",  "0.37", "",
                                   "9,485.16", "0",           "996,180,266,666,666.75", "38",   "2,238"};

std::string a_row_per_kernel(std::size_t bytes) {
  std::string text = kTitles;
  for (int i = 0; i < 2200; ++i) text += fmt::format(",\"sm__metric_{}.sum\"", i);
  text += ",\"gpu__time_duration.sum\"\n\"\"";
  for (int i = 0; i < 10; ++i) text += ",\"\"";
  for (int i = 0; i < 2200; ++i) text += i % 3 == 0 ? ",\"byte\"" : ",\"\"";
  text += ",\"ns\"\n";
  for (int id = 0; text.size() < bytes; ++id) {
    text += fmt::format(fmt::runtime(kLeading), id);
    for (int i = 0; i < 2200; ++i) text += fmt::format(",\"{}\"", kValues[i % 10]);
    text += ",\"2,784\"\n";
  }
  return text;
}

std::string a_row_per_metric(std::size_t bytes) {
  std::string text = std::string(kTitles) + ",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  for (int id = 0; text.size() < bytes; ++id) {
    for (int i = 0; i < 50; ++i) {
      text += fmt::format(fmt::runtime(kLeading), id);
      text +=
          fmt::format(",\"Command line profiler metrics\",\"sm__metric_{}.sum\",\"byte\",\"{}\"\n", i, kValues[i % 10]);
    }
  }
  return text;
}

void measure(const char* what, std::string text) {
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  importers::Input input = importers::Input::of_text("ncu.csv", std::move(text));
  perf::CountingSink sink;
  const double begin = cpu_seconds();
  if (!importers::find_importer("ncu")->parse(input, sink)) std::abort();
  sink.flush();
  const double seconds = cpu_seconds() - begin;
  fmt::print("{}: {:.0f} MB, {:.0f} MB per CPU second, {:.1f} M values per CPU second (asked for: 100 MB/s)\n", what,
             megabytes, megabytes / seconds, static_cast<double>(sink.rows) / seconds / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 200) * 1'000'000;
  measure("a row per kernel, 2,201 metrics", a_row_per_kernel(bytes));
  measure("a row per metric", a_row_per_metric(bytes));
}

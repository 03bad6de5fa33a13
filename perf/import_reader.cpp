// The trace reader alone: file to events with all known arguments, none of them used. import_reader FILE [THREADS]
// Prints bytes, events, seconds of wall and CPU time, and peak memory in KiB.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "importers/chrome_json/reader.h"
#include "importers/testing_sink.h"

namespace {

using namespace llmprof::importers;

struct Counter : chrome_json::EventTaker {
  void take_header(const chrome_json::Header&) override {}
  void take(const chrome_json::Event& event) override {
    ++events;
    sum += static_cast<std::uint64_t>(event.ts_ns) + event.name.size() +
           static_cast<std::uint64_t>(event.args.correlation);
  }
  std::uint64_t events = 0, sum = 0;
};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  auto input = argc > 1 ? Input::open(argv[1]) : llmprof::Error{};
  if (!input) {
    std::fprintf(stderr, "import_reader FILE [THREADS]: %s\n", input.error().message.c_str());
    return 2;
  }
  Counter counter;
  MemorySink sink;
  const auto begin = std::chrono::steady_clock::now();
  const auto result = read_events(*input, sink, counter, {.threads = argc > 2 ? std::atoi(argv[2]) : 0});
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    return 2;
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%llu %llu %.6f %.6f %ld %llx\n", static_cast<unsigned long long>(input->file_bytes()),
              static_cast<unsigned long long>(counter.events), wall.count(),
              seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss,
              static_cast<unsigned long long>(counter.sum));
}

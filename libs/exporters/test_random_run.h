#pragma once
// For tests: a run of random kernels, copies, graph launches, ranges, operators and calls, with what a right export of
// it must add up to. Slices overlap in every way there is, begin and end together, and last no time at all.

#include <map>
#include <random>
#include <utility>

#include "trace/test_run.h"

namespace llmprof::exporters {

struct Sum {
  std::int64_t count = 0, ns = 0;
  bool operator==(const Sum&) const = default;
};

struct RandomRun {
  std::map<std::int64_t, Sum> streams;  // kernels, copies and graph launches by stream
  std::map<std::int64_t, Sum> threads;  // ranges, operators, calls and launches by thread id
  std::int64_t kernels = 0, ranges = 0, flows = 0, kernel_ns = 0;

  static constexpr std::int64_t kStart = 5'000'000'000;

  void write(const std::string& folder, unsigned seed, int rows) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    auto writer = trace::RunWriter::create(folder);
    ASSERT_TRUE(writer) << writer.error().message;
    const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
    writer->add(
        trace::ProcessRow{.id = 1, .pid = 4242, .executable = name("/usr/bin/serve \"x\""), .begin_ns = kStart});
    for (int i = 1; i <= 2; ++i)
      writer->add(trace::ThreadRow{.id = i, .process_id = 1, .tid = 4241 + i, .begin_ns = kStart});
    writer->add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Test GPU"), .units = 2});
    writer->add(trace::ClockSyncRow{.ts_ns = kStart, .wall_ns = 1'700'000'000'000'000'000, .error_ns = 10});
    const char* const names[] = {"gemm<a, b>", "soft;max", "new\nline \"quoted\" \\ \x01", "\xC3\xA4\xE2\x82\xAC",
                                 "plain"};
    for (int i = 1; i <= rows; ++i) {
      const std::int64_t begin = kStart + below(rows * 4), end = begin + below(12), stream = 7 + below(2);
      const std::int64_t thread = 1 + below(2), launch = begin - below(20) - 10, launch_end = launch + below(8);
      const auto text = name(names[below(5)]);
      const bool launched = below(3) != 0;
      const auto maybe = [&](std::int64_t value) { return launched ? trace::OptionalInt(value) : std::nullopt; };
      switch (below(5)) {
        case 0:
          writer->add(trace::CopyRow{.id = i,
                                     .begin_ns = begin,
                                     .end_ns = end,
                                     .direction = name("host_to_device"),
                                     .bytes = 64,
                                     .device_id = 1,
                                     .stream = stream,
                                     .thread_id = thread,
                                     .launch_begin_ns = maybe(launch),
                                     .launch_end_ns = maybe(launch_end)});
          break;
        case 1:
          writer->add(trace::GraphLaunchRow{.id = i,
                                            .begin_ns = begin,
                                            .end_ns = end,
                                            .graph = 1,
                                            .device_id = 1,
                                            .stream = stream,
                                            .thread_id = thread,
                                            .launch_begin_ns = maybe(launch),
                                            .launch_end_ns = maybe(launch_end)});
          break;
        default:
          writer->add(trace::KernelRow{.id = i,
                                       .begin_ns = begin,
                                       .end_ns = end,
                                       .name = text,
                                       .device_id = 1,
                                       .stream = stream,
                                       .thread_id = thread,
                                       .launch_begin_ns = maybe(launch),
                                       .launch_end_ns = maybe(launch_end),
                                       .grid_x = 2,
                                       .grid_y = 1,
                                       .grid_z = 1});
          ++kernels;
          kernel_ns += end - begin;
      }
      add(streams[stream], begin, end);
      if (launched) add(threads[thread], launch, launch_end), ++flows;
      const std::int64_t range_begin = kStart + below(rows * 4), range_end = range_begin + 1 + below(30);
      if (below(2) == 0) {
        writer->add(trace::RangeRow{.id = i,
                                    .begin_ns = range_begin,
                                    .end_ns = range_end,
                                    .name = text,
                                    .kind = name("push_pop"),
                                    .process_id = 1,
                                    .thread_id = thread});
        ++ranges;
      } else {
        writer->add(trace::OpRow{.id = i,
                                 .begin_ns = range_begin,
                                 .end_ns = range_end,
                                 .name = text,
                                 .thread_id = thread,
                                 .shapes = name(below(2) == 0 ? "[[2, 3]]" : "not [ JSON")});
      }
      add(threads[thread], range_begin, range_end);
    }
    const auto finished = writer->finish({.command = {"serve"}, .environment = "{}", .source = "test"});
    ASSERT_TRUE(finished) << finished.error().message;
  }

 private:
  static void add(Sum& sum, std::int64_t begin, std::int64_t end) {
    ++sum.count;
    sum.ns += end - begin;
  }
};

}  // namespace llmprof::exporters

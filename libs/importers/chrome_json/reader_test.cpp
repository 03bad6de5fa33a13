#include "importers/chrome_json/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "importers/chrome_json/decimal.h"
#include "importers/memory_sink.h"

namespace llmprof::importers::chrome_json {
namespace {

using trace::Loss;

// Keeps what it is given; texts as copies.
struct Kept : EventTaker {
  struct One {
    Event event;
    std::string category, name, pid, tid, raw, dims, types, label;
  };
  void take_header(const Header& header) override {
    ++headers;
    base_time_ns = header.base_time_ns;
    device_properties = header.device_properties;
    distributed_info = header.distributed_info;
    other = header.other;
  }
  void take(const Event& e) override {
    headers_before_events = headers;
    events.push_back({e, std::string(e.category), std::string(e.name), std::string(e.pid.text), std::string(e.tid.text),
                      std::string(e.args.raw), std::string(e.args.dims), std::string(e.args.types),
                      std::string(e.args.name)});
  }
  int headers = 0, headers_before_events = 0;
  std::optional<std::int64_t> base_time_ns;
  std::string device_properties, distributed_info, other;
  std::vector<One> events;
};

struct Read {
  Kept kept;
  MemorySink sink;
  Result<void> result;
  std::int64_t lost(Loss loss) const { return sink.lost(loss); }
};

Read read(std::string text) {
  Read read;
  Input input = Input::of_text("trace.json", std::move(text));
  read.result = read_events(input, read.sink, read.kept);
  read.sink.flush();
  return read;
}

TEST(ChromeJson, ObjectFormWithMembersOnBothSides) {
  const Read got = read(R"({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000,
    "deviceProperties": [{"id": 0, "name": "a ] } b"}], "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "k\u00e9\n\"q\"", "pid": 0, "tid": 7, "ts": 3850981959615.767, "dur": 1.408,
     "args": {"External id": 5123, "queued": 0, "device": 0, "stream": 7, "correlation": 18366, "grid": [1, 2, 3],
              "block": [256, 1, 1], "Input Dims": [[2, 128], [], "]"], "Input type": ["long int"], "unknown": {"a": [1]}}},
    {"ph": "M", "name": "process_name", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "args": {"name": "CPU"}}
  ], "distributedInfo": {"rank": 1}, "traceName": "x"})");
  ASSERT_TRUE(got.result) << got.result.error().message;
  ASSERT_EQ(got.kept.events.size(), 2u);
  const Kept::One& kernel = got.kept.events[0];
  EXPECT_EQ(kernel.event.phase, 'X');
  EXPECT_EQ(kernel.category, "kernel");
  EXPECT_EQ(kernel.name, "k\xC3\xA9\n\"q\"");
  EXPECT_EQ(kernel.event.ts_ns, 3850981959615767);
  EXPECT_EQ(kernel.event.dur_ns, 1408);
  EXPECT_EQ(kernel.event.args.external_id, 5123);
  EXPECT_EQ(kernel.event.args.correlation, 18366);
  EXPECT_EQ(kernel.event.args.grid, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(kernel.event.args.block, (std::array<std::int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(kernel.dims, "[[2, 128], [], \"]\"]");
  EXPECT_EQ(kernel.types, "[\"long int\"]");
  EXPECT_EQ(kernel.event.args.context, kUnknown);
  EXPECT_EQ(got.kept.events[1].pid, "Spans");
  EXPECT_EQ(got.kept.events[1].tid, "PyTorch Profiler");
  EXPECT_EQ(got.kept.events[1].label, "CPU");
  EXPECT_EQ(got.kept.headers, 2);
  EXPECT_EQ(got.kept.headers_before_events, 1);
  EXPECT_EQ(got.kept.base_time_ns, 1790857026000000000);
  EXPECT_EQ(got.kept.device_properties, "[{\"id\": 0, \"name\": \"a ] } b\"}]");
  EXPECT_EQ(got.kept.distributed_info, "{\"rank\": 1}");
  EXPECT_EQ(got.kept.other, "{\"schemaVersion\":1,\"traceName\":\"x\"}");
  EXPECT_TRUE(got.sink.losses.empty());
}

}  // namespace
}  // namespace llmprof::importers::chrome_json

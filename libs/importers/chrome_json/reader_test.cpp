#include "importers/chrome_json/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "importers/chrome_json/scalars.h"
#include "importers/testing_sink.h"

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

// An array of events in the object form, so that a missing end is told from Chrome's array form.
Read read_array(const std::string& events) { return read("{\"traceEvents\": [" + events + "], \"a\": 1}"); }
constexpr const char* kGood = R"({"ph": "X", "name": "good", "ts": 1, "dur": 2, "pid": 1, "tid": 1})";

TEST(ChromeJson, ArrayForm) {
  const Read got = read(std::string("[") + kGood + ",\n" + kGood + "]\n");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 2u);
  EXPECT_TRUE(got.sink.losses.empty());
}

TEST(ChromeJson, ArrayFormMayLeaveOutItsEnd) {  // so says the description of the format
  for (const char* end : {"", ",", ",\n"}) {
    const Read got = read(std::string("[") + kGood + end);
    ASSERT_TRUE(got.result);
    EXPECT_EQ(got.kept.events.size(), 1u);
    EXPECT_TRUE(got.sink.losses.empty());
  }
}

TEST(ChromeJson, NestedTraceEvents) {
  const Read got =
      read(std::string(R"({"a": [1, {"traceEvents": [2]}], "data": {"traceEvents": [)") + kGood + "]}, \"b\": 2}");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
  EXPECT_TRUE(got.sink.losses.empty());
  EXPECT_EQ(got.kept.other, "{\"a\":[1, {\"traceEvents\": [2]}],\"b\":2}");
}

TEST(ChromeJson, NoEventsAtAll) {
  const Read got = read("{\"schemaVersion\": 1, \"traceEvents\": []}");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.headers, 2);
  EXPECT_TRUE(got.kept.events.empty());
}

TEST(ChromeJson, ByteOrderMark) {
  const Read got = read(std::string("\xEF\xBB\xBF[") + kGood + "]");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
}

TEST(ChromeJson, OtherEncodingsAreNamed) {
  const auto wide = [](bool little) {
    std::string text = little ? "\xFF\xFE" : "\xFE\xFF";
    for (const char c : std::string("[{}]")) text += little ? std::string{c, '\0'} : std::string{'\0', c};
    return text;
  };
  EXPECT_EQ(read(wide(true)).result.error().message, "byte 0: the text is in UTF-16 LE");
  EXPECT_EQ(read(wide(false)).result.error().message, "byte 0: the text is in UTF-16 BE");
  EXPECT_EQ(read(wide(true).substr(2)).result.error().message, "byte 0: the text is in UTF-16 LE");
  EXPECT_EQ(read(std::string("[\0\0\0", 4)).result.error().message, "byte 0: the text is in UTF-32 LE");
  EXPECT_EQ(read(wide(true)).result.error().hint, "convert it: iconv -f UTF-16 -t UTF-8");
}

TEST(ChromeJson, WhatIsNoTrace) {
  EXPECT_EQ(read("").result.error().message, "byte 0: a trace in JSON begins with { or [");
  EXPECT_EQ(read("  \n 5").result.error().message, "byte 4: a trace in JSON begins with { or [");
  EXPECT_EQ(read("{\"a\": [1, 2]}").result.error().message, "byte 13: the JSON object holds no traceEvents");
  EXPECT_EQ(read("{\"traceEvents\": null}").result.error().message, "byte 21: the JSON object holds no traceEvents");
  EXPECT_EQ(read("{\"schemaVersion\": 1, \"dev").result.error().message,
            "byte 25: the file ends before any traceEvents");
  EXPECT_EQ(read("[{\"a\": 1}, {\"b\": 2}]").result.error().message,
            "byte 1: none of the 2 objects is a trace event (they have no ph)");
}

TEST(ChromeJson, InvalidUtf8) {
  const Read got = read_array(
      "{\"ph\": \"X\", \"name\": \"a\xFF"
      "b\xC3\xA9\", \"args\": {\"x\": \"\xFF\"}}, " +
      std::string(kGood));
  ASSERT_TRUE(got.result);
  ASSERT_EQ(got.kept.events.size(), 2u);
  EXPECT_EQ(got.kept.events[0].name,
            "a\xEF\xBF\xBD"
            "b\xC3\xA9");
  EXPECT_EQ(got.kept.events[0].raw, "{\"x\": \"\xEF\xBF\xBD\"}");
  EXPECT_EQ(got.kept.events[1].name, "good");
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 1);
  EXPECT_EQ(got.sink.details[0], "input_repaired 1: texts with bytes that JSON does not allow, at byte 37");
}

TEST(ChromeJson, ControlBytesStayButNulDoesNot) {
  const Read got = read_array("{\"ph\": \"X\", \"name\": \"a\tb\nc\"}, {\"ph\": \"X\", \"name\": \"a" +
                              std::string(1, '\0') + "b\"}");
  ASSERT_TRUE(got.result);
  ASSERT_EQ(got.kept.events.size(), 2u);
  EXPECT_EQ(got.kept.events[0].name, "a\tb\nc");
  EXPECT_EQ(got.kept.events[1].name,
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 2);
}

TEST(ChromeJson, Escapes) {
  const Read got = read_array(R"({"ph":"X","name":"\ud83d\ude00 \ud83d \ude00 \u0000 \u00e9 \/ \q C:\Users"},
                                 {"ph":"X","name":"\\\""})");
  ASSERT_EQ(got.kept.events.size(), 2u);
  // U+1F600, then two lone surrogates and NUL as U+FFFD; unknown escapes and a \U as they stand
  EXPECT_EQ(got.kept.events[0].name,
            "\xF0\x9F\x98\x80 \xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD \xC3\xA9 / \\q C:\\Users");
  EXPECT_EQ(got.kept.events[1].name, "\\\"");
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 1);
}

TEST(ChromeJson, NumbersThatAreNotFinite) {
  const Read got = read_array(R"({"ph":"X","ts":NaN,"dur":Infinity,"pid":-inf,"tid":1e999,"args":{"stream":nan,"x":inf,
                                  "correlation":null,"y":-Infinity,"z":true,"device":0x10}})");
  ASSERT_EQ(got.kept.events.size(), 1u);
  const Event& event = got.kept.events[0].event;
  EXPECT_EQ(event.ts_ns, kUnknown);
  EXPECT_EQ(event.dur_ns, kUnknown);
  EXPECT_EQ(event.pid.number, kUnknown);
  EXPECT_EQ(event.tid.number, kUnknown);
  EXPECT_EQ(event.args.stream, kUnknown);
  EXPECT_EQ(event.args.correlation, kUnknown);
  EXPECT_EQ(event.args.device, 16);
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 7);  // NaN Infinity -inf 1e999 nan inf -Infinity; null and true are JSON
}

TEST(ChromeJson, TimesAreExact) {
  const auto ts = [](const std::string& text) {
    const Read got = read_array("{\"ph\":\"X\",\"ts\":" + text + "}");
    return got.kept.events.empty() ? 0 : got.kept.events[0].event.ts_ns;
  };
  EXPECT_EQ(ts("0"), 0);
  EXPECT_EQ(ts("3850981959615.767"), 3850981959615767);
  EXPECT_EQ(ts("\"3850981959615.767\""), 3850981959615767);
  EXPECT_EQ(ts("3850981959615.7"), 3850981959615700);
  EXPECT_EQ(ts("3850981959615"), 3850981959615000);
  EXPECT_EQ(ts("235992.71299999999"), 235992713);  // as JAX writes it
  EXPECT_EQ(ts("0.0005"), 1);
  EXPECT_EQ(ts("0.00049999999999999999999999"), 0);
  EXPECT_EQ(ts("-1.5"), -1500);
  EXPECT_EQ(ts("-0.0005"), -1);
  EXPECT_EQ(ts("1.5e3"), 1500000);
  EXPECT_EQ(ts("15E-1"), 1500);
  EXPECT_EQ(ts("9007199254740993"), 9007199254740993000);  // 2^53 + 1
  EXPECT_EQ(ts("9223372036854775.807"), INT64_MAX);
  EXPECT_EQ(ts("9223372036854775.808"), kUnknown);
  EXPECT_EQ(ts("1e-400"), 0);
  EXPECT_EQ(ts("[1]"), kUnknown);
}

TEST(ChromeJson, Decimals) {
  EXPECT_EQ(integer("18446744073709551615"), -1);  // an id keeps its bits
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("0xff"), 255);
  EXPECT_EQ(integer("12.0"), 12);
  EXPECT_EQ(integer("1e3"), 1000);
  for (const char* bad :
       {"", "-", ".", "e5", "1e", "1e+", "0x", "0xg", "1 2", "--1", "18446744073709551616", "1e99999999999"})
    EXPECT_EQ(integer(bad), std::nullopt) << bad;
  EXPECT_EQ(scaled(std::string(400, '0') + "7", 0), 7);
  EXPECT_EQ(scaled("0." + std::string(400, '0') + "7e401", 0), 7);
  EXPECT_EQ(scaled("12345678901234567890123e-5", 0), 123456789012345679);
}

TEST(ChromeJson, Identifiers) {
  const Read got =
      read_array(R"({"ph":"s","id":18366},{"ph":"f","id":"0x1f"},{"ph":"b","id":"one"},{"ph":"e","id":"one"},
                                 {"ph":"b","id":"two"},{"ph":"b","id2":{"local":"0x1"}})");
  ASSERT_EQ(got.kept.events.size(), 6u);
  EXPECT_EQ(got.kept.events[0].event.id, 18366);
  EXPECT_EQ(got.kept.events[1].event.id, 31);
  EXPECT_EQ(got.kept.events[2].event.id, got.kept.events[3].event.id);
  EXPECT_NE(got.kept.events[2].event.id, got.kept.events[4].event.id);
  EXPECT_NE(got.kept.events[5].event.id, kUnknown);
}

TEST(ChromeJson, UnescapedQuoteCostsOneEvent) {
  const std::string bad[] = {
      R"({"ph": "X", "name": "say "hi" now", "pid": 1, "args": {"a": [1, 2]}})",
      R"({"ph": "X", "name": "one " quote", "pid": 1, "args": {"a": [1, 2]}})",
      R"({"ph": "X", "name": "open, "pid": 1, "args": {"a": [1, 2]}})",
      R"({"ph": "X", "name": ""twice"", "pid": 1, "args": {"a": [1, 2]}})",
      R"({"ph": "X", "name": "lost"", "pid": 1, "args": {"a": "]}"}})",
  };
  for (const std::string& event : bad) {
    const Read got = read_array(std::string(kGood) + "," + event + "," + kGood + "," + event + ",\n" + kGood);
    ASSERT_TRUE(got.result) << event;
    EXPECT_EQ(got.kept.events.size(), 3u) << event;
    EXPECT_EQ(got.lost(Loss::kInputDamaged), 2) << event;
    EXPECT_EQ(got.lost(Loss::kInputTruncated), 0) << event;
    EXPECT_EQ(got.kept.other, "{\"a\":1}") << event;
  }
}

TEST(ChromeJson, BracketsThatDoNotMatchCostOneEvent) {
  const std::string bad[] = {
      R"({"ph": "X", "args": {"a": 1})",        R"({"ph": "X", "args": {"a": 1}}})",
      R"({"ph": "X", "args": {"a": [1}})",      R"({"ph": "X", "args": {"a": 1]}})",
      R"({"ph": "X", "args": {"a": [1, [2]}})",
  };
  for (const std::string& event : bad) {
    const Read got = read_array(std::string(kGood) + "," + event + "," + kGood + "," + event + ",\n" + kGood);
    ASSERT_TRUE(got.result) << event;
    EXPECT_GE(got.kept.events.size(), 3u) << event;  // an event with one bracket too many is read
    EXPECT_EQ(got.lost(Loss::kInputDamaged), 2) << event;
    EXPECT_EQ(got.kept.events.back().name, "good") << event;
  }
}

TEST(ChromeJson, WhatIsNoEventIsCounted) {
  const Read got = read_array(
      std::string(kGood) +
      R"(, 5, "text", null, [1, {"ph": "X"}], {"no": "phase"}, {"ph" "X"}, {"ph":"X" "a":1}, {ph: 1}, {}, )" + kGood);
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 2u);
  EXPECT_EQ(got.lost(Loss::kInputDamaged), 8);  // all but {}
}

TEST(ChromeJson, TruncatedAnywhere) {
  const std::string events = std::string(kGood) + ",\n" +
                             R"({"ph": "X", "name": "a \" } b", "args": {"Input Dims": [[1, 2]]}})" + ",\n" + kGood;
  const std::string whole = "{\"a\": 1, \"traceEvents\": [" + events + "], \"b\": {\"c\": 2}}";
  const std::size_t first = whole.find('[') + 1, last = whole.size();
  std::size_t before = 0;
  for (std::size_t size = first; size < last; ++size) {
    const Read got = read(whole.substr(0, size));
    ASSERT_TRUE(got.result) << size;
    EXPECT_EQ(got.lost(Loss::kInputTruncated), 1) << size;
    EXPECT_EQ(got.lost(Loss::kInputDamaged), 0) << size;
    EXPECT_GE(got.kept.events.size(), before) << size;
    before = got.kept.events.size();
  }
  EXPECT_EQ(before, 3u);
  EXPECT_EQ(read(whole).lost(Loss::kInputTruncated), 0);
}

TEST(ChromeJson, TrailingCommas) {
  const Read got = read_array(R"({"ph": "X", "name": "good", "args": {"a": 1,},},)");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 2);
  EXPECT_EQ(got.kept.other, "{\"a\":1}");
}

TEST(ChromeJson, TheLastOfSeveralKeysWins) {
  const Read got =
      read_array(R"({"ph":"B","name":"a","ph":"X","name":"b","args":{"stream":1,"device":2},"args":{"stream":3}})");
  ASSERT_EQ(got.kept.events.size(), 1u);
  EXPECT_EQ(got.kept.events[0].event.phase, 'X');
  EXPECT_EQ(got.kept.events[0].name, "b");
  EXPECT_EQ(got.kept.events[0].event.args.stream, 3);
  EXPECT_EQ(got.kept.events[0].event.args.device, kUnknown);
}

TEST(ChromeJson, ArgsThatAreNoObject) {
  const Read got = read_array(
      R"({"ph":"X","args":[1,{"stream":2}],"name":"a"},{"ph":"X","args":"text","name":"b"},{"ph":"X","args":null})");
  ASSERT_EQ(got.kept.events.size(), 3u);
  EXPECT_EQ(got.kept.events[0].raw, "[1,{\"stream\":2}]");
  EXPECT_EQ(got.kept.events[0].event.args.stream, kUnknown);
  EXPECT_EQ(got.kept.events[1].name, "b");
  EXPECT_TRUE(got.sink.losses.empty());
}

TEST(ChromeJson, ConcatenatedFiles) {
  const std::string one = std::string("[") + kGood + "]\n";
  const Read got = read(one + one);
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
  EXPECT_EQ(got.lost(Loss::kInputDamaged), 1);
  EXPECT_EQ(got.sink.details[0],
            "input_damaged 1: content behind the end of the trace, at byte " + std::to_string(one.size()));
}

TEST(ChromeJson, TooDeep) {
  EXPECT_EQ(read(std::string(1'000'000, '[')).result.error().message, "byte 257: brackets in more than 256 levels");
  EXPECT_EQ(read("{\"a\": " + std::string(1'000'000, '[')).result.error().message,
            "byte 261: brackets in more than 256 levels");
  const Read got = read_array("{\"ph\": \"X\", \"args\": " + std::string(250, '[') + std::string(250, ']') + "}");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
}

TEST(ChromeJson, TooLong) {
  const std::string begin = "[{\"ph\": \"X\", \"name\": \"";
  EXPECT_EQ(read(begin + std::string(70u << 20, 'x') + "\"}]").result.error().message,
            "byte 1: a text or an event of more than 64 MiB");
  EXPECT_EQ(read("{\"a\": \"" + std::string(70u << 20, 'x') + "\"}").result.error().message,
            "byte 67108871: a text or an event of more than 64 MiB");
  const Read got = read(begin + std::string(30u << 20, 'x') + "\"}, " + kGood + "]");
  ASSERT_TRUE(got.result);
  ASSERT_EQ(got.kept.events.size(), 2u);
  EXPECT_EQ(got.kept.events[0].name.size(), 30u << 20);
}

TEST(ChromeJson, LargeMembersBesideTheEventsAreLeftOut) {
  const Read got = read("{\"stackFrames\": {\"1\": \"" + std::string(3u << 20, 'x') + "\"}, \"traceEvents\": [" +
                        kGood + "], \"b\": 1}");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.other, "{\"b\":1}");
  EXPECT_EQ(got.lost(Loss::kInputIgnored), 1);
}

TEST(ChromeJson, AQuoteLostInTheHeaderCostsItsLine) {  // PyTorch does not escape what add_metadata is given
  const Read got =
      read("{\n\"id\": \"1\",\n\"note\": \"quotes /\" and / and\",\n\"config\": {\"a\": 2},\n\"traceEvents\": [\n" +
           std::string(kGood) + "\n]}");
  ASSERT_TRUE(got.result);
  EXPECT_EQ(got.kept.events.size(), 1u);
  EXPECT_EQ(got.kept.other, "{\"id\":\"1\",\"config\":{\"a\": 2}}");
  EXPECT_EQ(got.lost(Loss::kInputRepaired), 1);
}

// Many chunks, several threads: in the order of the file, with offsets that point at the event.
TEST(ChromeJson, OrderAndOffsets) {
  std::string text = "[\n";
  for (int i = 0; i < 60'000; ++i) {
    text += "{\"ph\": \"X\", \"name\": \"" + std::string(static_cast<std::size_t>(i % 97), '"' - 2) +
            (i % 13 == 0 ? "\\\"" : "") + "\", \"ts\": " + std::to_string(i) + ", \"args\": {\"Input Dims\": [[" +
            std::to_string(i) + "], []]}},\n";
    if (i % 20'000 == 7) text += "{\"ph\": \"X\", \"name\": \"lost \" quote\"},\n";
  }
  const Read got = read(text + "{}]");
  ASSERT_TRUE(got.result);
  ASSERT_EQ(got.kept.events.size(), 60'000u);
  for (std::size_t i = 0; i < got.kept.events.size(); ++i) {
    ASSERT_EQ(got.kept.events[i].event.ts_ns, static_cast<std::int64_t>(i) * 1000);
    ASSERT_EQ(text.substr(got.kept.events[i].event.offset, 7), "{\"ph\": ");
    ASSERT_EQ(got.kept.events[i].dims, "[[" + std::to_string(i) + "], []]");
  }
  EXPECT_EQ(got.lost(Loss::kInputDamaged), 3);
}

// Sums over a file, for comparison with Python's json module (parse_float=Decimal) on the same.
struct Sums : EventTaker {
  void take_header(const Header&) override {}
  void take(const Event& event) override {
    const auto add = [](std::uint64_t& sum, std::int64_t value) {
      if (value != kUnknown) sum += static_cast<std::uint64_t>(value);
    };
    ++events;
    add(ts, event.ts_ns), add(dur, event.dur_ns), add(correlation, event.args.correlation);
    add(grid, event.args.grid[0]), add(address, event.args.address);
    names += event.name.size();
    dims += event.args.dims.empty() ? 0 : 1;
  }
  std::uint64_t events = 0, ts = 0, dur = 0, correlation = 0, names = 0, dims = 0, grid = 0, address = 0;
};

Sums sums_of(const std::string& name, std::size_t chunk_bytes, MemorySink& sink) {
  Sums sums;
  auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/" + name);
  EXPECT_TRUE(input);
  EXPECT_TRUE(read_events(*input, sink, sums, {.chunk_bytes = chunk_bytes}));
  sink.flush();
  return sums;
}

TEST(ChromeJson, RealTraceAgreesWithPython) {
  for (const std::size_t chunk_bytes : {1u << 10, 64u << 10, 8u << 20}) {
    MemorySink sink;
    const Sums full = sums_of("kineto_llama_full.json.gz", chunk_bytes, sink);
    EXPECT_EQ(full.events, 13336u);
    EXPECT_EQ(full.ts, 14463207524732448645u);  // 51356695672151551877 modulo 2^64
    EXPECT_EQ(full.dur, 865119600u);
    EXPECT_EQ(full.correlation, 36592551u);
    EXPECT_EQ(full.names, 649125u);
    EXPECT_EQ(full.dims, 2697u);
    EXPECT_EQ(full.grid, 54526u);
    EXPECT_EQ(full.address, 216367791427310720u);
    EXPECT_TRUE(sink.losses.empty());
  }
}

TEST(ChromeJson, RealTraceOfJax) {
  MemorySink sink;
  const Sums jax = sums_of("kineto_jax.json.gz", 512 << 10, sink);
  EXPECT_EQ(jax.events, 140u);  // and {} at the end
  EXPECT_EQ(jax.ts, 14189433009u);
  EXPECT_EQ(jax.dur, 185605747u);
  EXPECT_EQ(jax.names, 3341u);
  EXPECT_TRUE(sink.losses.empty());
}

TEST(ChromeJson, RealTraceThatIsNoValidJson) {
  MemorySink sink;
  EXPECT_EQ(sums_of("kineto_odd_names.json.gz", 512 << 10, sink).events, 188u);  // grep -c '"ph"'
  EXPECT_EQ(sink.losses, (std::map<Loss, std::int64_t>{{Loss::kInputRepaired, 1}}));
}

TEST(ChromeJson, StopsWhenAsked) {
  Kept kept;
  MemorySink sink;
  sink.stop_after = 0;
  Input input = Input::of_text("trace.json", std::string("[") + kGood + "]");
  const Result<void> result = read_events(input, sink, kept);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace llmprof::importers::chrome_json

// Chrome JSON, speedscope, folded and pprof, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include <cmath>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "exporters/exporter.h"
#include "exporters/json_text.h"
#include "exporters/test_proto.h"
#include "exporters/test_random_run.h"

namespace llmprof::exporters {
namespace {

using ::testing::HasSubstr;

std::string written_as(const std::string& format, const trace::Run& run) {
  const std::string file = run.folder() + "." + format;
  const Selection everything;
  const auto written =
      find_exporter(format)->write({.run = run, .selection = everything, .output = file, .tables = {}});
  EXPECT_TRUE(written) << written.error().message;
  auto bytes = base::read_file(file, 1u << 30);
  EXPECT_TRUE(bytes);
  return bytes ? *bytes : "";
}

std::int64_t nanoseconds(const base::Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

TEST(JsonText, TimesAreExact) {
  const auto text = [](std::int64_t ns) {
    std::string out;
    append_microseconds(out, ns);
    return out;
  };
  EXPECT_EQ(text(0), "0.000");
  EXPECT_EQ(text(1), "0.001");
  EXPECT_EQ(text(-1), "-0.001");
  EXPECT_EQ(text(3850981959615767), "3850981959615.767");
  EXPECT_EQ(text(INT64_MIN), "-9223372036854775.808");
  std::string none;
  append_real(none, std::nan(""));
  EXPECT_EQ(none, "null");
}

TEST(ChromeJson, EveryKernelAndRangeComesBack) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    trace::TestFolder folder;
    RandomRun made;
    made.write(folder / "x.llmprof", seed, 300);
    const auto run = trace::Run::open(folder / "x");
    ASSERT_TRUE(run);
    const auto json = base::parse_json(written_as("chrome", *run), "x.json");
    ASSERT_TRUE(json) << json.error().message;
    EXPECT_EQ((*json)["baseTimeNanoseconds"], 1'700'000'000'000'000'000 - RandomRun::kStart);
    std::int64_t kernels = 0, kernel_ns = 0, ranges = 0, begun = 0, ended = 0;
    std::map<std::int64_t, Sum> streams;
    for (const base::Json& event : (*json)["traceEvents"]) {
      const std::string category = event.value("cat", "");
      if (event["ph"] == "s") ++begun;
      if (event["ph"] == "f") ++ended;
      if (event["ph"] != "X") continue;
      const std::int64_t ns = nanoseconds(event["dur"]);
      if (category == "kernel") {
        ++kernels;
        kernel_ns += ns;
        EXPECT_EQ(event["args"]["grid"], base::Json({2, 1, 1}));
      }
      if (category == "user_annotation") ++ranges;
      if (category == "kernel" || category == "gpu_memcpy" || category == "graph_launch") {
        Sum& sum = streams[event["tid"].get<std::int64_t>()];
        ++sum.count;
        sum.ns += ns;
      }
      if (category == "cpu_op") {
        const base::Json& dims = event["args"]["Input Dims"];
        EXPECT_TRUE(dims == base::Json::parse("[[2, 3]]") || dims == "not [ JSON") << dims;
      }
    }
    EXPECT_EQ(kernels, made.kernels);
    EXPECT_EQ(kernel_ns, made.kernel_ns);
    EXPECT_EQ(ranges, made.ranges);
    EXPECT_EQ(streams, made.streams);
    EXPECT_EQ(begun, made.flows);
    EXPECT_EQ(ended, made.flows);
  }
}

// Frames must close in the order in which they opened, and times must not go back: speedscope refuses anything else.
std::int64_t check_evented(const base::Json& profile, std::size_t frames) {
  std::vector<base::Json> open;
  std::int64_t last = profile["startValue"], slices = 0;
  for (const base::Json& event : profile["events"]) {
    EXPECT_LT(event["frame"].get<std::size_t>(), frames);
    EXPECT_GE(event["at"].get<std::int64_t>(), last);
    last = event["at"];
    if (event["type"] == "O") {
      open.push_back(event["frame"]);
      ++slices;
    } else if (open.empty() || open.back() != event["frame"]) {
      ADD_FAILURE() << "a frame closes that is not the innermost";
      break;
    } else {
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_LE(last, profile["endValue"].get<std::int64_t>());
  return slices;
}

TEST(Speedscope, ProfilesAddUpAndNest) {
  trace::TestFolder folder;
  RandomRun made;
  made.write(folder / "x.llmprof", 3, 400);
  const auto run = trace::Run::open(folder / "x");
  ASSERT_TRUE(run);
  const auto json = base::parse_json(written_as("speedscope", *run), "x.json");
  ASSERT_TRUE(json) << json.error().message;
  const std::size_t frames = (*json)["shared"]["frames"].size();
  std::int64_t slices = 0, expected = 0;
  for (const base::Json& profile : (*json)["profiles"]) {
    EXPECT_EQ(profile["unit"], "nanoseconds");
    if (profile["type"] == "evented") {
      slices += check_evented(profile, frames);
    } else {
      ASSERT_EQ(profile["samples"].size(), profile["weights"].size());
      EXPECT_EQ(profile["name"], "GPU time by stack");
      EXPECT_EQ(profile["endValue"], made.kernel_ns);
    }
  }
  for (const auto& [stream, sum] : made.streams) expected += sum.count;
  for (const auto& [thread, sum] : made.threads) expected += sum.count;
  EXPECT_EQ(slices, expected);
}

// Two stacks, one of Python frames, one without; a sample; a copy.
void write_stacks(const std::string& folder) {
  auto writer = trace::RunWriter::create(folder);
  ASSERT_TRUE(writer);
  const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
  writer->add(trace::DeviceRow{.id = 1, .kind = name("gpu"), .name = name("Test GPU")});
  writer->add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 5, .name = name("main")});
  writer->add(
      trace::FrameRow{.id = 1, .kind = name("python"), .function = name("step;one"), .file = name("a.py"), .line = 10});
  writer->add(
      trace::FrameRow{.id = 2, .kind = name("python"), .function = name("main"), .file = name("a.py"), .line = 3});
  writer->add(trace::StackRow{.stack_id = 1, .depth = 0, .frame_id = 1});
  writer->add(trace::StackRow{.stack_id = 1, .depth = 1, .frame_id = 2});
  writer->add(trace::OpRow{.id = 1, .begin_ns = 1, .end_ns = 9, .name = name("aten::mm"), .thread_id = 1});
  for (int i = 1; i <= 3; ++i)
    writer->add(trace::KernelRow{.id = i,
                                 .begin_ns = 10 * i,
                                 .end_ns = 10 * i + 7,
                                 .name = name("gemm"),
                                 .device_id = 1,
                                 .stream = 7,
                                 .thread_id = 1,
                                 .stack_id = i < 3 ? trace::OptionalId(1) : std::nullopt,
                                 .op_id = i < 3 ? trace::OptionalId(1) : std::nullopt});
  writer->add(trace::SampleRow{.id = 1, .ts_ns = 5, .thread_id = 1, .stack_id = 1, .weight_ns = 1000});
  writer->add(trace::CopyRow{.id = 1,
                             .begin_ns = 1,
                             .end_ns = 2,
                             .direction = name("host_to_device"),
                             .bytes = 4096,
                             .device_id = 1,
                             .stack_id = 1});
  ASSERT_TRUE(writer->finish({.command = {"serve"}, .environment = "{}", .source = "test"}));
}

TEST(Folded, StacksThenOperatorThenKernel) {
  trace::TestFolder folder;
  write_stacks(folder / "x.llmprof");
  const auto run = trace::Run::open(folder / "x");
  ASSERT_TRUE(run);
  EXPECT_EQ(written_as("folded", *run),
            "cpu_time;main;step:one 1000\n"
            "gpu_time;[GPU] gemm 7\n"
            "gpu_time;main;step:one;aten::mm;[GPU] gemm 14\n");
}

std::string unzipped(const std::string& packed) {
  std::string out(1 << 20, '\0');
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(packed.data()));
  state.avail_in = static_cast<std::uint32_t>(packed.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state.avail_out = static_cast<std::uint32_t>(out.size());
  EXPECT_EQ(isal_inflate_stateless(&state), ISAL_DECOMP_OK);
  out.resize(state.total_out);
  return out;
}

TEST(Pprof, SamplesLocationsAndTextsAgree) {
  trace::TestFolder folder;
  write_stacks(folder / "x.llmprof");
  const auto run = trace::Run::open(folder / "x");
  ASSERT_TRUE(run);
  const std::string bytes = unzipped(written_as("pprof", *run));
  const auto fields = proto_fields(bytes);
  std::vector<std::string> texts;
  std::map<std::uint64_t, std::uint64_t> names, lines;  // of functions; of locations
  for (const ProtoField& field : fields) {
    const auto inner = field.wire == 2 && field.number != 6 ? proto_fields(field.bytes) : std::vector<ProtoField>{};
    if (field.number == 6) texts.emplace_back(field.bytes);
    if (field.number == 5) names[find_field(inner, 1)->value] = find_field(inner, 2)->value;
    if (field.number == 4) {
      const auto line = proto_fields(find_field(inner, 4)->bytes);
      lines[find_field(inner, 1)->value] = find_field(line, 2) != nullptr ? find_field(line, 2)->value : 0;
    }
  }
  ASSERT_FALSE(texts.empty());
  EXPECT_EQ(texts[0], "");
  std::map<std::string, std::int64_t> totals;  // "leaf … root type" -> value
  std::vector<std::string> types;
  for (const ProtoField& field : fields)
    if (field.number == 1) types.push_back(texts.at(find_field(proto_fields(field.bytes), 1)->value));
  EXPECT_EQ(types,
            (std::vector<std::string>{"gpu_time", "kernels", "cpu_time", "cpu_kernel_time", "copied", "allocated"}));
  for (const ProtoField& field : fields) {
    if (field.number != 2) continue;
    const auto sample = proto_fields(field.bytes);
    std::string stack;
    for (std::string_view left = find_field(sample, 1)->bytes; !left.empty();) {
      const std::uint64_t location = take_varint(left);
      stack +=
          texts.at(names.at(location)) + (lines.at(location) > 0 ? ":" + std::to_string(lines.at(location)) : "") + "|";
    }
    std::size_t type = 0;
    for (std::string_view left = find_field(sample, 2)->bytes; !left.empty(); ++type) {
      const auto value = static_cast<std::int64_t>(take_varint(left));
      if (value != 0) totals[stack + types.at(type)] += value;
    }
    EXPECT_EQ(type, types.size());
  }
  const std::map<std::string, std::int64_t> expected{{"[GPU] gemm|aten::mm|step;one:10|main:3|gpu_time", 14},
                                                     {"[GPU] gemm|aten::mm|step;one:10|main:3|kernels", 2},
                                                     {"[GPU] gemm|gpu_time", 7},
                                                     {"[GPU] gemm|kernels", 1},
                                                     {"step;one:10|main:3|cpu_time", 1000},
                                                     {"[GPU] copy host_to_device|step;one:10|main:3|copied", 4096}};
  EXPECT_EQ(totals, expected);
}

}  // namespace
}  // namespace llmprof::exporters

// Small traces, good and bad.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "importers/chrome_json/lookup.h"
#include "importers/chrome_json/named_ranges.h"
#include "importers/chrome_json/operators.h"
#include "importers/chrome_json/work.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::importers::chrome_json {
namespace {

using namespace trace;
using ::testing::ElementsAre;
using ::testing::Pair;

struct Imported {
  explicit Imported(const std::string& events, const std::string& header = "") {
    Input input = Input::of_text("t.json", "{" + header + "\"traceEvents\": [\n" + events + "\n]}");
    const Result<void> parsed = find_importer("kineto")->parse(input, sink);
    EXPECT_TRUE(parsed) << parsed.error().message;
    sink.flush();
  }
  MemorySink sink;
};

std::string event(const std::string& category, const std::string& name, double ts, double dur,
                  const std::string& args = "") {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":7,"tid":8,"ts":)" +
         std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) + R"(,"args":{)" + args + "}}";
}

TEST(KinetoRows, LaunchBeforeOrBehindItsKernel) {
  const std::string call = event("cuda_runtime", "cudaLaunchKernel", 10, 2, R"("correlation":5)");
  const std::string kernel = event("kernel", "k", 20, 3, R"("correlation":5,"device":1,"stream":7)");
  for (const std::string& text : {call + "," + kernel, kernel + "," + call}) {
    const Imported run(text);
    ASSERT_EQ(run.sink.rows<KernelRow>().size(), 1U);
    const KernelRow row = run.sink.rows<KernelRow>().front();
    EXPECT_EQ(row.begin_ns, 20'000);
    EXPECT_EQ(row.end_ns, 23'000);
    EXPECT_EQ(row.launch_begin_ns, 10'000);
    EXPECT_EQ(row.launch_end_ns, 12'000);
    EXPECT_EQ(row.thread_id, run.sink.rows<ThreadRow>().front().id);
    EXPECT_EQ(run.sink.rows<DeviceRow>().front().ordinal, 1);
  }
}

// The runtime's call contains the driver's: one launch, the outer.
TEST(KinetoRows, RuntimeAndDriverShareANumber) {
  const Imported run(event("cuda_runtime", "cudaLaunchKernel", 10, 5, R"("correlation":5)") + "," +
                     event("cuda_driver", "cuLaunchKernel", 11, 2, R"("correlation":5)") + "," +
                     event("kernel", "k", 20, 3, R"("correlation":5)"));
  EXPECT_EQ(run.sink.rows<ApiRow>().size(), 2U);
  ASSERT_EQ(run.sink.rows<KernelRow>().size(), 1U);
  EXPECT_EQ(run.sink.rows<KernelRow>().front().launch_begin_ns, 10'000);
}

TEST(KinetoRows, KernelsWithoutLaunch) {
  const Imported run(event("kernel", "a", 20, 3, R"("correlation":5)") + "," + event("kernel", "b", 30, 3));
  EXPECT_EQ(run.sink.rows<KernelRow>().size(), 2U);
  EXPECT_EQ(run.sink.lost(Loss::kLaunchLost), 2);
  for (const KernelRow& row : run.sink.rows<KernelRow>()) EXPECT_EQ(row.thread_id, 0);
}

// A number that is used again is of the call that came last.
TEST(KinetoRows, CorrelationUsedAgain) {
  const auto pair = [](double at) {
    return event("kernel", "k", at + 5, 1, R"("correlation":5)") + "," +
           event("cuda_runtime", "cudaLaunchKernel", at, 1, R"("correlation":5)");
  };
  const Imported run(pair(10) + "," + pair(30));
  std::map<std::int64_t, std::int64_t> launches;
  for (const KernelRow& row : run.sink.rows<KernelRow>()) launches[row.begin_ns] = row.launch_begin_ns.value_or(0);
  EXPECT_THAT(launches, ElementsAre(Pair(15'000, 10'000), Pair(35'000, 30'000)));
}

TEST(KinetoRows, BadTimes) {
  const Imported run(event("kernel", "negative", 20, -3) + "," + event("kernel", "before", -20, 3) + "," +
                         event("kernel", "zero", 0, 3) + "," + event("kernel", "huge", 4e15, 1e15) + "," +
                         R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5},)" +
                         event("kernel", "good", 20, 0),
                     R"("schemaVersion": 1, )");
  EXPECT_EQ(run.sink.rows<KernelRow>().size(), 1U);
  EXPECT_EQ(run.sink.lost(Loss::kBadTime), 5);
}

TEST(KinetoRows, RangesNestInAnyOrder) {
  const Imported run(event("cat", "inner", 20, 5) + "," + event("cat", "outer", 10, 50) + "," +
                     event("cat", "beside", 60, 5) + "," + event("cat", "twin", 10, 50));
  std::map<std::string, int> depths;
  for (const RangeRow& row : run.sink.rows<RangeRow>()) {
    depths[std::string(run.sink.text(row.name))] = row.depth;
    EXPECT_EQ(run.sink.text(row.kind), "push_pop");
    EXPECT_EQ(run.sink.text(row.source), "kineto");
    EXPECT_EQ(run.sink.text(row.category), "cat");
  }
  EXPECT_THAT(depths, ElementsAre(Pair("beside", 0), Pair("inner", 2), Pair("outer", 0), Pair("twin", 1)));
  EXPECT_EQ(run.sink.lost(Loss::kNoDeviceWork), 1);
}

TEST(KinetoRows, BeginAndEnd) {
  const auto at = [](char phase, int ts, const std::string& more = "") {
    return std::string(R"({"ph":")") + phase + R"(","name":"r","pid":1,"tid":2,"ts":)" + std::to_string(ts) + more +
           "}";
  };
  const Imported run(at('E', 1) + "," + at('B', 2) + "," + at('B', 3) + "," + at('E', 4) + "," +
                     at('b', 5, R"(,"id":9,"cat":"c")") + "," + at('e', 8, R"(,"id":9,"cat":"c")") + "," +
                     at('e', 9, R"(,"id":9,"cat":"c")") + "," + at('i', 10) + "," + at('s', 10) + "," + at('O', 11));
  EXPECT_EQ(run.sink.lost(Loss::kUnbalancedPop), 2);
  EXPECT_EQ(run.sink.lost(Loss::kOpenRange), 1);
  EXPECT_EQ(run.sink.lost(Loss::kInputIgnored), 2);  // a flow of nobody's, an object
  std::map<std::string, std::vector<std::int64_t>> kinds;
  for (const RangeRow& row : run.sink.rows<RangeRow>()) {
    auto& times = kinds[std::string(run.sink.text(row.kind))];
    times.push_back(row.begin_ns), times.push_back(row.end_ns);
    EXPECT_EQ(row.closed, row.begin_ns != 2000);
  }
  EXPECT_THAT(kinds, ElementsAre(Pair("mark", ElementsAre(10'000, 10'000)),
                                 Pair("push_pop", ElementsAre(2000, 10'000, 3000, 4000)),
                                 Pair("start_end", ElementsAre(5000, 8000))));
}

TEST(KinetoRows, AnnotationsOfTheGpuAreNoSecondRanges) {
  const Imported run(event("user_annotation", "step", 10, 50, R"("External id":3)") + "," +
                     event("gpu_user_annotation", "step", 20, 60, R"("External id":3)") + "," +
                     event("gpu_user_annotation", "alone", 20, 60, R"("External id":4)"));
  std::map<std::string, std::string> sources;
  for (const RangeRow& row : run.sink.rows<RangeRow>())
    sources[std::string(run.sink.text(row.name))] = run.sink.text(row.source);
  EXPECT_THAT(sources, ElementsAre(Pair("alone", "kineto_gpu"), Pair("step", "kineto")));
  EXPECT_EQ(run.sink.rows<RangeRow>().size(), 2U);
}

// Python functions in any order, and behind the operators that they called.
TEST(KinetoRows, StacksOfFunctionsInAnyOrder) {
  const Imported run(event("cpu_op", "aten::add", 25, 1) + "," + event("python_function", "b.py(2): inner", 20, 10) +
                         "," + event("python_function", "a.py(1): outer", 10, 50) + "," +
                         event("kernel", "k", 40, 1, R"("correlation":5)") + "," +
                         event("cuda_runtime", "cudaLaunchKernel", 35, 1, R"("correlation":5)"),
                     R"("schemaVersion": 1, "with_stack": 1, )");
  std::map<Id, std::string> frames;
  for (const FrameRow& row : run.sink.rows<FrameRow>()) frames[row.id] = run.sink.text(row.function);
  std::map<Id, std::string> stacks;
  for (const StackRow& row : run.sink.rows<StackRow>()) stacks[row.stack_id] += frames.at(row.frame_id) + " ";
  ASSERT_TRUE(run.sink.rows<OpRow>().front().stack_id && run.sink.rows<KernelRow>().front().stack_id);
  EXPECT_EQ(stacks.at(*run.sink.rows<OpRow>().front().stack_id), "inner outer ");
  EXPECT_EQ(stacks.at(*run.sink.rows<KernelRow>().front().stack_id), "outer ");
}

// Freed in the recording but allocated before; the rest of what was there; one that stays.
TEST(KinetoRows, MemoryThatWasThereBefore) {
  const auto memory = [](int ts, int bytes, int address, int total) {
    return R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":7,"tid":8,"ts":)" + std::to_string(ts) +
           R"(,"args":{"Bytes":)" + std::to_string(bytes) + R"(,"Addr":)" + std::to_string(address) +
           R"(,"Device Id":0,"Device Type":1,"Total Allocated":)" + std::to_string(total) + "}}";
  };
  const Imported run(memory(10, 64, 1, 1064) + "," + memory(11, -200, 2, 864) + "," + memory(12, -64, 1, 800) + "," +
                     memory(13, 8, 1, 808));
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> rows;
  for (const AllocationRow& row : run.sink.rows<AllocationRow>())
    rows[row.bytes] = {row.begin_ns, row.end_ns.value_or(0)};
  EXPECT_THAT(rows, ElementsAre(Pair(8, Pair(13'000, 0)), Pair(64, Pair(10'000, 12'000)),
                                Pair(200, Pair(10'000, 11'000)), Pair(800, Pair(10'000, 0))));
  EXPECT_EQ(run.sink.rows<TelemetryRow>().size(), 4U);
}

TEST(KinetoRows, Counters) {
  const Imported run(R"({"ph":"C","name":"memory","pid":1,"ts":5,"args":{"used":7.5,"free":2,"text":"x"}})");
  std::map<std::string, double> values;
  for (const MetricRow& row : run.sink.rows<MetricRow>()) values[std::string(run.sink.text(row.labels))] = row.value;
  EXPECT_THAT(values, ElementsAre(Pair("free", 2), Pair("used", 7.5)));
}

TEST(KinetoRows, LanesThatAreTexts) {
  const Imported run(R"({"ph":"X","name":"r","pid":"server","tid":"loop","ts":5,"dur":1})");
  EXPECT_EQ(run.sink.text(run.sink.rows<ProcessRow>().front().executable), "server");
  EXPECT_EQ(run.sink.text(run.sink.rows<ThreadRow>().front().name), "loop");
}

TEST(KinetoRows, ShapesWereNotRecorded) {
  const Imported run(event("cpu_op", "aten::mm", 10, 5, R"("External id":3)") + "," +
                     event("kernel", "k", 20, 3, R"("External id":3)"));
  EXPECT_TRUE(run.sink.rows<GemmRow>().empty());
  ASSERT_EQ(run.sink.rows<NoteRow>().size(), 1U);
  EXPECT_EQ(run.sink.text(run.sink.rows<NoteRow>().front().subject), "shapes");
}

TEST(KinetoRows, TimesSince1970WithoutABase) {
  const Imported run(event("kernel", "k", 1.7e15, 3));
  EXPECT_EQ(run.sink.clock.wall_of_zero_ns, 0);
}

Arguments inputs(std::string_view dims, std::string_view types = "", std::string_view strides = "",
                 std::string_view concrete = "") {
  Arguments args;
  args.dims = dims, args.types = types, args.strides = strides, args.concrete = concrete;
  return args;
}

std::string product(std::string_view op, const Arguments& args) {
  const auto p = product_of(op, args);
  if (!p) return "none";
  return std::to_string(p->m) + "x" + std::to_string(p->n) + "x" + std::to_string(p->k) + "x" +
         std::to_string(p->batch) + " " + std::string(p->type_a) + ">" + std::string(p->type_c) + " " + p->transpose_a +
         p->transpose_b;
}

TEST(KinetoShapes, Products) {
  const std::string_view two = R"(["c10::Half", "c10::Half"])", three = R"(["float", "float", "float"])";
  EXPECT_EQ(product("aten::mm", inputs("[[2, 3], [3, 5]]", two)), "2x5x3x1 float16>float16 nn");
  EXPECT_EQ(product("aten::mm", inputs("[[2, 3], [3, 5]]", two, "[[1, 2], [1, 3]]")), "2x5x3x1 float16>float16 tt");
  EXPECT_EQ(product("aten::addmm", inputs("[[5], [2, 3], [3, 5]]", three)), "2x5x3x1 float32>float32 nn");
  EXPECT_EQ(product("aten::bmm", inputs("[[4, 2, 3], [4, 3, 5]]", two)), "2x5x3x4 float16>float16 nn");
  EXPECT_EQ(product("aten::linear", inputs("[[7, 2, 3], [5, 3], []]", two)), "14x5x3x1 float16>float16 nt");
  EXPECT_EQ(product("aten::matmul", inputs("[[7, 2, 3], [3, 5]]", two)), "14x5x3x1 float16>float16 nn");
  EXPECT_EQ(product("aten::_int_mm", inputs("[[2, 3], [3, 5]]", R"(["signed char", "signed char"])")),
            "2x5x3x1 int8>int32 nn");
  EXPECT_EQ(
      product("aten::_scaled_mm", inputs("[[2, 3], [3, 5], [], []]", R"(["c10::Float8_e4m3fn", "c10::Float8_e4m3fn"])",
                                         "", R"(["", "", "", "", "", "", "15", "False"])")),
      "2x5x3x1 float8_e4m3>bfloat16 nn");
  EXPECT_EQ(product("aten::_grouped_mm", inputs("[[20, 3], [4, 3, 5], [4]]", two)), "20x5x3x1 float16>float16 nn");
}

TEST(KinetoShapes, WhatDoesNotFit) {
  EXPECT_EQ(product("aten::mm", inputs("")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[2, 3], [4, 5]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[2, 3]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[2, 0], [0, 5]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[-2, 3], [3, 5]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[1000000000000, 1000000000000], [1000000000000, 1000000000000]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[99999999999999999999, 3], [3, 5]]")), "none");
  EXPECT_EQ(product("aten::mm", inputs("[[[[[2, 3], [3")), "none");
  EXPECT_EQ(product("aten::matmul", inputs("[[7, 2, 3], [1, 3, 5]]")), "none");  // spread: not known what is computed
  EXPECT_EQ(product("aten::conv2d", inputs("[[2, 3], [3, 5]]")), "none");
}

TEST(KinetoShapes, AttentionInBothOrders) {
  const auto heads_first = attention_of("aten::_scaled_dot_product_flash_attention",
                                        inputs("[[2, 16, 5, 64], [2, 4, 9, 64], [2, 4, 9, 32]]", R"(["c10::Half"])", "",
                                               R"(["", "", "", "0.", "True"])"));
  ASSERT_TRUE(heads_first);
  EXPECT_EQ(std::tuple(heads_first->heads, heads_first->kv_heads, heads_first->queries, heads_first->keys),
            std::tuple(16, 4, 5, 9));
  EXPECT_EQ(heads_first->value_size, 32);
  EXPECT_EQ(heads_first->causal, true);
  const auto tokens_first =
      attention_of("aten::_flash_attention_forward", inputs("[[2, 5, 16, 64], [2, 9, 4, 64], [2, 9, 4, 64]]"));
  ASSERT_TRUE(tokens_first);
  EXPECT_EQ(std::tuple(tokens_first->heads, tokens_first->kv_heads, tokens_first->queries, tokens_first->keys),
            std::tuple(16, 4, 5, 9));
  EXPECT_FALSE(tokens_first->causal);
  // Sequences of different lengths in one: how many queries each has is not known.
  EXPECT_FALSE(attention_of("aten::_flash_attention_forward", inputs("[[50, 16, 64], [90, 4, 64], [90, 4, 64]]")));
}

TEST(KinetoModules, BlocksAndLeaves) {
  Modules modules;
  const auto add = [&](const char* name, std::uint32_t outer) {
    const std::uint32_t id = modules.module(std::string("nn.Module: ") + name);
    modules.called_in(id, outer);
    return id;
  };
  const std::uint32_t model = add("Net_0", Modules::kNone), body = add("Body_0", model), head = add("Linear_4", model);
  const std::uint32_t first = add("Block_0", body), second = add("Block_1", body);
  const std::uint32_t a = add("Linear_0", first), b = add("Linear_1", first), c = add("Linear_2", second);
  modules.name_all();
  EXPECT_EQ(modules.name(model), "");
  EXPECT_EQ(modules.name(body), "");
  EXPECT_EQ(modules.name(head), "Linear");
  EXPECT_EQ(modules.name(second), "Block.1");
  EXPECT_EQ(modules.name(a), "Linear_0");
  EXPECT_EQ(modules.name(b), "Linear_1");
  EXPECT_EQ(modules.name(c), "Linear");
  EXPECT_EQ(modules.module("torch/nn/modules/linear.py(1): forward"), Modules::kNone);
}

TEST(KinetoIdMap, IsAMap) {
  IdMap<int> map(1000);
  std::map<std::int64_t, int> expected;
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t key = static_cast<std::int64_t>(random() % 500) * 4096;
    if (random() % 3 == 0) {
      map.erase(key);
      expected.erase(key);
    } else if (int* const value = map.insert(key, i)) {
      EXPECT_EQ(*value, expected.emplace(key, i).first->second);
    }
    EXPECT_EQ(map.size(), expected.size());
  }
  for (const auto& [key, value] : expected) EXPECT_EQ(*map.find(key), value);
  EXPECT_EQ(map.find(kUnknown), nullptr);
}

TEST(KinetoIdMap, HoldsNoMoreThanItMay) {
  IdMap<int> map(3);
  for (int key = 0; key < 3; ++key) EXPECT_NE(map.insert(key, key), nullptr);
  EXPECT_EQ(map.insert(9, 9), nullptr);
  EXPECT_NE(map.insert(1, 5), nullptr);
  EXPECT_EQ(*map.find(1), 1);
}

TEST(KinetoCopies, Directions) {
  EXPECT_EQ(copy_direction("Memcpy HtoD (Pinned -> Device)"), "host_to_device");
  EXPECT_EQ(copy_direction("Memcpy DtoH (Device -> Pageable)"), "device_to_host");
  EXPECT_EQ(copy_direction("Memcpy PtoP (Device -> Device)"), "peer");
  EXPECT_EQ(copy_direction("MemcpyD2D"), "device_to_device");
  EXPECT_EQ(copy_direction("Memset (Device)"), "fill");
  EXPECT_EQ(copy_direction("Memcpy"), "");
}

}  // namespace
}  // namespace llmprof::importers::chrome_json

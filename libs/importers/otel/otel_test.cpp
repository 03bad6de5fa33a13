// By hand, by OTLP's JSON and the attributes of vLLM and SGLang.
#include <gmock/gmock.h>

#include <map>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;

std::string attribute(std::string_view key, std::string_view value) {
  return R"({"key":")" + std::string(key) + R"(","value":{)" + std::string(value) + "}}";
}
std::string text(std::string_view key, std::string_view value) {
  return attribute(key, R"("stringValue":")" + std::string(value) + "\"");
}
std::string number(std::string_view key, std::string_view value) {
  return attribute(key, R"("intValue":")" + std::string(value) + "\"");
}
std::string real(std::string_view key, std::string_view value) { return attribute(key, R"("doubleValue":)" + std::string(value)); }
// A span from `begin` to `end`, in milliseconds behind second 1,700,000,000.
std::string span(std::string_view name, std::string_view id, std::string_view parent, int begin, int end,
                 const std::string& attributes, const std::string& events = "") {
  return R"({"traceId":"0a","spanId":")" + std::string(id) + R"(","parentSpanId":")" + std::string(parent) + R"(","name":")" +
         std::string(name) + R"(","startTimeUnixNano":")" + std::to_string(1'700'000'000'000'000'000 + begin * 1'000'000LL) +
         R"(","endTimeUnixNano":")" + std::to_string(1'700'000'000'000'000'000 + end * 1'000'000LL) + R"(","attributes":[)" +
         attributes + R"(],"events":[)" + events + "]}";
}
std::string scheduled(int at, std::string_view bid, int size, std::string_view mode) {
  return R"({"name":"schedule","timeUnixNano":")" + std::to_string(1'700'000'000'000'000'000 + at * 1'000'000LL) +
         R"(","attributes":[)" + text("bid", bid) + "," + number("batch_size", std::to_string(size)) + "," +
         text("forward_mode", mode) + "]}";
}
std::string document(const std::string& spans) {
  return R"({"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{},"spans":[)" + spans + "]}]}]}";
}

TEST(Otel, VllmRequests) {
  const std::string content = document(span("llm_request", "00000000000000aa", "", 0, 120,
      text("gen_ai.request.id", "cmpl-1") + "," + number("gen_ai.usage.prompt_tokens", "16") + "," +
      number("gen_ai.usage.completion_tokens", "5") + "," + real("gen_ai.latency.time_in_queue", "0.01") + "," +
      real("gen_ai.latency.time_to_first_token", "0.04") + "," + real("gen_ai.latency.e2e", "0.12") + "," +
      real("gen_ai.latency.time_in_model_prefill", "0.025")));
  EXPECT_EQ(sniff(content)->name, "otel");
  const Imports imports("otel", content + "\n");
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.facts.tool, "OpenTelemetry, vLLM");
  EXPECT_EQ(imports.sink.clock.wall_of_zero_ns, 0);
  const auto row = imports.sink.rows<trace::RequestRow>().at(0);
  EXPECT_EQ(imports.name(row.name), "cmpl-1");
  EXPECT_TRUE(row.arrival_seen);
  EXPECT_EQ(row.arrival_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(row.first_token_ns, 1'700'000'000'040'000'000);
  EXPECT_EQ(row.last_token_ns, 1'700'000'000'120'000'000);
  EXPECT_FALSE(row.scheduled_ns.has_value());  // queueing is on the engine's clock: a figure, not a moment
  EXPECT_EQ(row.output_tokens, 5);
  std::map<std::string, std::string> keys;
  for (const auto& figure : imports.sink.rows<trace::ReportedFigureRow>()) {
    keys[imports.name(figure.metric)] = imports.name(figure.key);
    EXPECT_EQ(figure.request_id, row.id);
  }
  EXPECT_EQ(keys, (std::map<std::string, std::string>{{"gen_ai.latency.e2e", "e2e_arrival"},
                                                      {"gen_ai.latency.time_in_queue", "queue"},
                                                      {"gen_ai.latency.time_in_model_prefill", "prefill"},
                                                      {"gen_ai.latency.time_to_first_token", "ttft_arrival"}}));
}

// Two requests: each prefilled alone, then two decodes together. Children are written before their parents.
std::string sglang() {
  std::string spans;
  for (const char* id : {"1", "2"}) {
    const std::string request = std::string("a") + id, thread = std::string("b") + id;
    const int begin = id[0] == '1' ? 10 : 30;
    spans += span("prefill_forward", std::string("c") + id, thread, begin, begin + 15, "", scheduled(begin, std::string("p") + id, 1, "prefill")) + ",";
    spans += span("decode_loop", std::string("d") + id, thread, 50, 60, number("decode_ct", "0"), scheduled(50, "q1", 2, "decode")) + ",";
    spans += span("decode_loop", std::string("e") + id, thread, 60, 70, number("decode_ct", "1"), scheduled(60, "q2", 2, "decode")) + ",";
    spans += span("scheduler", thread, request, 5, 75, text("host_id", "h") + "," + number("pid", "42") + "," + text("thread_label", "Scheduler")) + ",";
    spans += span(" Req r", request, "", 0, 80, text("rid", std::string("r") + id) + "," + text("module", "sglang::request") + "," +
                  number("gen_ai.usage.prompt_tokens", "8") + "," + number("gen_ai.usage.completion_tokens", "3") + "," +
                  number("gen_ai.usage.cached_tokens", "2") + "," + real("gen_ai.latency.time_in_model_prefill", "0.02")) + ",";
  }
  spans.pop_back();
  return document(spans);
}

TEST(Otel, SglangBatchesNameTheirRequests) {
  const Imports imports("otel", sglang());
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.losses.size(), 0u);
  const auto requests = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(imports.name(requests[1].name), "r2");
  EXPECT_EQ(requests[0].scheduled_ns, 1'700'000'000'010'000'000);
  EXPECT_EQ(requests[0].cached_tokens, 2);
  const auto ranges = imports.sink.rows<trace::RangeRow>();
  ASSERT_EQ(ranges.size(), 4u);  // p1, p2, q1, q2
  std::map<std::string, std::int64_t> members;
  for (const auto& mark : imports.sink.rows<trace::RequestEventRow>()) {
    EXPECT_EQ(imports.name(mark.event), "member");
    const auto range = *std::ranges::find(ranges, mark.range_id.value_or(0), &trace::RangeRow::id);
    EXPECT_EQ(range.begin_ns, mark.ts_ns);
    members[imports.name(range.category) + " " + imports.name(range.name)] += mark.tokens;
  }
  EXPECT_EQ(members, (std::map<std::string, std::int64_t>{{"batch p1 schedule prefill bs=1", 6},
                                                          {"batch p2 schedule prefill bs=1", 6},
                                                          {"batch q1 schedule decode bs=2", 2},
                                                          {"batch q2 schedule decode bs=2", 2}}));
  EXPECT_EQ(imports.sink.rows<trace::ThreadRow>().size(), 1u);
  EXPECT_EQ(imports.sink.rows<trace::ProcessRow>().at(0).pid, 42);
  // The same attribute as vLLM's, another meaning: no common key.
  EXPECT_EQ(imports.sink.rows<trace::ReportedFigureRow>().at(0).key.id, 0u);
}

TEST(Otel, WhatIsNotOfRequests) {
  EXPECT_THAT(Imports("otel", document("")).error(), HasSubstr("byte 0: holds no spans"));
  EXPECT_THAT(Imports("otel", document(span("GET /", "01", "", 0, 1, ""))).error(), HasSubstr("none of a request"));
  const Imports mixed("otel", document(span("GET /", "01", "", 0, 1, "") + "," + span("llm_request", "02", "01", 5, 3, "") + "," +
                                       span("llm_request", "03", "01", 0, 3, "")));
  ASSERT_EQ(mixed.error(), "");
  EXPECT_EQ(mixed.sink.rows<trace::RequestRow>().size(), 1u);
  EXPECT_EQ(mixed.sink.lost(trace::Loss::kInputIgnored), 1);
  EXPECT_EQ(mixed.sink.lost(trace::Loss::kInputDamaged), 1);
}

}  // namespace
}  // namespace llmprof::importers

// Real files of aiperf 0.13 (tests/imports), numbers by Python's json module; others by hand.
#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;

TEST(Aiperf, RecordsOfRequests) {
  const std::string text = import_text("aiperf_records.jsonl.gz");
  EXPECT_EQ(sniff(text)->name, "aiperf");
  const Imports imports("aiperf", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.clock.wall_of_zero_ns, 0);
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(std::ranges::count_if(rows, &trace::RequestRow::warm_up), 1);
  const auto& row = rows[1];
  EXPECT_EQ(imports.name(row.name), "2543b6fd-f0a1-41d1-be96-fae8690507ae");
  EXPECT_EQ(row.sent_ns, 1795120211749840033);
  EXPECT_EQ(row.first_token_ns.value_or(0) - *row.sent_ns, 53'619'795);
  EXPECT_EQ(row.last_token_ns.value_or(0) - *row.sent_ns, 144'166'024);
  EXPECT_EQ(row.end_ns, 1795120211894155760);
  EXPECT_EQ(row.prompt_tokens, 32);
  EXPECT_EQ(row.output_tokens, 16);  // counted again by aiperf; the server said 8
  EXPECT_EQ(imports.sink.rows<trace::RequestTokenRow>().size(), 56u);
  double ttft = 0;
  int samples = 0;
  const auto figures = imports.sink.rows<trace::ReportedFigureRow>();
  for (const auto& figure : figures) {
    EXPECT_EQ(imports.name(figure.statistic), "sample");
    if (imports.name(figure.metric) != "time_to_first_token") continue;
    ttft += figure.value, ++samples;
    EXPECT_EQ(imports.name(figure.unit), "ms");
    EXPECT_EQ(imports.name(figure.key), "ttft_sent");
  }
  EXPECT_EQ(figures.size(), 192u);
  EXPECT_EQ(samples, 6);  // warm-up is in no figure
  EXPECT_NEAR(ttft / samples, 53.2332495, 1e-6);
}

TEST(Aiperf, Aggregate) {
  const std::string text = import_text("aiperf_aggregate.json.gz");
  EXPECT_EQ(sniff(text)->name, "aiperf");
  const Imports imports("aiperf", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.facts.tool, "aiperf 0.13.0");
  EXPECT_EQ(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).model), "tiny");
  const auto figures = imports.sink.rows<trace::ReportedFigureRow>();
  EXPECT_EQ(figures.size(), 653u);
  const auto find = [&](std::string_view metric, std::string_view statistic) {
    return *std::ranges::find_if(figures, [&](const auto& figure) {
      return imports.name(figure.metric) == metric && imports.name(figure.statistic) == statistic;
    });
  };
  EXPECT_NEAR(find("time_to_first_token", "mean").value, 53.2332495, 1e-9);
  EXPECT_NEAR(find("request_throughput", "value").value, 13.087491152201606, 1e-12);
  // The same word, two meanings: aiperf's inter-token latency is what vLLM calls TPOT.
  EXPECT_EQ(imports.name(find("inter_token_latency", "mean").key), "tpot");
  EXPECT_EQ(imports.name(find("inter_chunk_latency", "p99").key), "message_gap");
  EXPECT_TRUE(imports.sink.rows<trace::RequestRow>().empty());
}

TEST(Aiperf, FailedAndCancelledRequests) {
  const Imports imports(
      "aiperf",
      R"({"metadata":{"x_request_id":"a","request_start_ns":1000,"request_end_ns":3000,"benchmark_phase":"profiling","was_cancelled":true},)"
      R"("metrics":{"error_isl":{"value":32,"unit":"tokens"}},"error":{"type":"Timeout","message":"late"}})" "\n"
      R"({"metadata":{"x_request_id":"b","request_end_ns":3000},"metrics":{},"error":null})" "\n");
  ASSERT_EQ(imports.error(), "");
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(imports.name(rows[0].status), "aborted");
  EXPECT_EQ(imports.name(rows[0].error), "Timeout: late");
  EXPECT_EQ(rows[0].prompt_tokens, 32);
  EXPECT_FALSE(rows[0].first_token_ns.has_value());
  EXPECT_EQ(imports.sink.lost(trace::Loss::kInputDamaged), 1);
}

TEST(GenaiPerf, RawRecords) {
  const std::string text = R"j({"service_kind": "openai", "endpoint": "v1/chat/completions", "experiments": [{"experiment":
{"mode": "concurrency", "value": 2}, "requests": [{"timestamp": 1000, "request_inputs": {}, "response_timestamps": [1500, 2000, 2600],
"response_outputs": [{"response": "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"},
{"response": "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"}, {"response":
"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"}]},
{"timestamp": 5000, "response_timestamps": [], "response_outputs": []}], "window_boundaries": [1, 2]}], "version": "0.0.16"})j";
  EXPECT_EQ(sniff(text)->name, "genai-perf");
  const Imports imports("genai-perf", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).name), "concurrency 2");
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].first_token_ns, 2000);  // the first with text
  EXPECT_EQ(rows[0].last_token_ns, 2000);
  EXPECT_EQ(rows[0].end_ns, 2600);
  EXPECT_EQ(rows[0].prompt_tokens, 7);
  EXPECT_EQ(rows[0].output_tokens, 1);
  EXPECT_EQ(imports.name(rows[1].status), "error");
  EXPECT_THAT(Imports("genai-perf", "{\"experiments\": 3}").error(), HasSubstr("byte 0: holds no results of genai-perf"));
}

TEST(GenaiPerf, Aggregate) {
  const std::string text = R"({"request_throughput": {"unit": "requests/sec", "avg": 2.5}, "request_latency":
{"unit": "ms", "avg": 10.0, "p50": 9.0, "std": 1.0}, "input_config": {"model": ["m"]}})";
  EXPECT_EQ(sniff(text)->name, "genai-perf");
  const Imports imports("genai-perf", text);
  EXPECT_EQ(imports.sink.rows<trace::ReportedFigureRow>().size(), 4u);
  EXPECT_EQ(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).model), "m");
}

}  // namespace
}  // namespace llmprof::importers

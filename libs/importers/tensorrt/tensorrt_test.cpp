// By hand, by the schemas of trtllm-bench and trtexec.
#include <gmock/gmock.h>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;

TEST(TrtllmBench, Report) {
  const std::string text = R"({"engine": {"model": "m", "model_path": "/home/x/m", "version": "1.1", "backend": "Pytorch"},
"machine": {"name": "H", "memory.total": 139.8, "clocks.mem": 3.2}, "world_info": {"tp_size": 2, "world_size": 2},
"request_info": {"num_requests": 3, "avg_input_length": 128.0}, "performance": {"total_latency_ms": 100.0,
"request_throughput_req_s": 30.0, "request_latency_percentiles_ms": {"p50": 40.0, "minimum": 30.0, "average": 41.0}},
"streaming_metrics": {"avg_ttft_ms": 5.0, "tpot_percentiles": {"p99": 2.0}}, "dataset": {}})";
  EXPECT_EQ(sniff(text)->name, "trtllm-bench");
  const Imports imports("trtllm-bench", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.facts.tool, "trtllm-bench, TensorRT-LLM 1.1");
  EXPECT_THAT(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).settings), testing::Not(HasSubstr("/home")));
  std::string all;
  for (const auto& row : imports.sink.rows<trace::ReportedFigureRow>())
    all += imports.name(row.metric) + "/" + imports.name(row.statistic) + "(" + imports.name(row.key) + ") ";
  EXPECT_EQ(all,
            "num_requests/value(finished_requests) avg_input_length/mean(prompt_tokens) total_latency_ms/value(duration) "
            "request_throughput_req_s/value(requests_per_s) avg_ttft_ms/mean(ttft_submitted) "
            "request_latency_percentiles_ms/p50(e2e_submitted) request_latency_percentiles_ms/min(e2e_submitted) "
            "request_latency_percentiles_ms/mean(e2e_submitted) tpot_percentiles/p99(tpot) ");
}

TEST(TrtllmBench, Requests) {
  const std::string text = R"([{"id": 7, "num_input_tokens": 128, "error_tokens": 0, "start_timestamp": 1000, "first_token_timestamp": 1500,
"end_timestamp": 3000, "decode_iteration": 3, "output": "x", "output_tokens": 4}, {"id": 8, "num_input_tokens": 5,
"start_timestamp": 2000, "first_token_timestamp": -1, "end_timestamp": -1, "decode_iteration": 0}])";
  EXPECT_EQ(sniff(text)->name, "trtllm-bench");
  const Imports imports("trtllm-bench", text);
  ASSERT_EQ(imports.error(), "");
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(imports.name(rows[0].name), "7");
  EXPECT_EQ(rows[0].first_token_ns, 1500);
  EXPECT_EQ(rows[0].last_token_ns, 3000);
  EXPECT_EQ(rows[0].output_tokens, 4);
  EXPECT_FALSE(rows[1].first_token_ns.has_value());
  EXPECT_EQ(imports.name(rows[1].status), "unfinished");
}

TEST(Trtexec, ProfileWithNamesThatAreNotEscaped) {
  const std::string text =
      "[\n  { \"count\" : 100 }\n, { \"name\" : \"a \"b\" \\ c\", \"timeMs\" : 12.5, \"averageMs\" : 0.125, \"medianMs\" : 0.12, "
      "\"percentage\" : 80.0 }\n, { \"name\" : \"d\", \"timeMs\" : 3, \"averageMs\" : 0.03, \"medianMs\" : 0.02, \"percentage\" : 20 }\n]\n";
  EXPECT_EQ(sniff(text)->name, "trtexec");
  const Imports imports("trtexec", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.lost(trace::Loss::kInputDamaged), 0);
  const auto rows = imports.sink.rows<trace::SummaryRow>();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(imports.name(rows[0].name), "a \"b\" \\ c");
  EXPECT_EQ(imports.name(rows[0].kind), "layer");
  EXPECT_EQ(rows[0].calls, 100);
  EXPECT_EQ(rows[0].device_ns, 12.5e6);
  const auto figures = imports.sink.rows<trace::ReportedFigureRow>();
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(imports.name(figures[1].statistic), "median");
  EXPECT_TRUE(imports.sink.rows<trace::KernelRow>().empty());  // sums of layers are no kernels
}

TEST(Trtexec, TimesOfQueries) {
  const std::string text =
      R"([{ "startEnqMs" : 0, "endEnqMs" : 0.1, "startH2dMs" : 0, "endH2dMs" : 0, "startComputeMs" : 0.05, "endComputeMs" : 1.05,)"
      R"( "startD2hMs" : 1.05, "endD2hMs" : 1.25, "h2dMs" : 0, "computeMs" : 1, "d2hMs" : 0.2, "latencyMs" : 1.2 }])";
  EXPECT_EQ(sniff(text)->name, "trtexec");
  const Imports imports("trtexec", text);
  ASSERT_EQ(imports.error(), "");
  const auto ranges = imports.sink.rows<trace::RangeRow>();
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(imports.name(ranges[0].name), "enqueue");
  EXPECT_EQ(ranges[0].begin_ns, 0);
  EXPECT_EQ(ranges[0].end_ns, 100'000);
  EXPECT_TRUE(imports.sink.rows<trace::KernelRow>().empty());
  EXPECT_EQ(imports.sink.rows<trace::ReportedFigureRow>().size(), 4u);
}

TEST(Trtexec, LayersInBothForms) {
  const Imports names("trtexec", R"({"Layers": ["a", "b", 3], "Bindings": ["input", "output"]})");
  ASSERT_EQ(names.error(), "");
  EXPECT_EQ(names.sink.rows<trace::SummaryRow>().size(), 2u);
  EXPECT_EQ(names.name(names.sink.rows<trace::NoteRow>().at(0).text), "binding input");
  EXPECT_EQ(names.sink.lost(trace::Loss::kInputDamaged), 1);
  const std::string text = R"({"Layers": [{"Name": "mm", "LayerType": "gemm", "TacticName": "t", "Inputs": [], "Outputs": []}],
"I/O Tensors": [{"Name": "ids", "IOMode": "Input", "DataType": "Int32", "Dimensions": [1, 128], "Location": "Device"}]})";
  EXPECT_EQ(sniff(text)->name, "trtexec");
  const Imports detailed("trtexec", text);
  EXPECT_THAT(detailed.name(detailed.sink.rows<trace::SummaryRow>().at(0).shapes), HasSubstr("\"type\":\"gemm\""));
  EXPECT_EQ(detailed.name(detailed.sink.rows<trace::NoteRow>().at(0).text), "I/O tensor ids: Input, Int32 [1,128], Device");
  EXPECT_THAT(Imports("trtexec", "{}").error(), HasSubstr("byte 0: holds no profile"));
}

}  // namespace
}  // namespace llmprof::importers

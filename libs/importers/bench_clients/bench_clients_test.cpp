// Files written by hand by the tools' schemas, expectations computed beside them; a real one of SGLang, numbers by Python.
#include <gmock/gmock.h>

#include <map>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::HasSubstr;
using trace::Loss;

// Two requests: 3 messages of 3 tokens; 2 messages of 4 tokens.
constexpr std::string_view kServe =
    R"({"date":"20260822-101500","backend":"openai-chat","label":null,"model_id":"m","num_prompts":3,"request_rate":"inf",)"
    R"("burstiness":1.0,"max_concurrency":2,"duration":1.5,"completed":2,"failed":1,"total_input_tokens":30,)"
    R"("total_output_tokens":7,"request_throughput":1.33,"request_goodput":null,"output_throughput":4.67,)"
    R"("total_token_throughput":24.67,"input_lens":[10,20,5],"output_lens":[3,4,0],"ttfts":[0.05,0.1,0.0],)"
    R"("itls":[[0.01,0.02],[0.3],[]],"start_times":[101.25,101.5,102.0],"generated_texts":["","",""],)"
    R"("errors":["","","refused"],"mean_ttft_ms":75.0,"median_ttft_ms":75.0,"std_ttft_ms":25.0,"p99_ttft_ms":99.5,)"
    R"("p99.9_itl_ms":300.0,"cluster":"a"})";

std::string figures(const Imports& imports) {
  std::string out;
  for (const auto& row : imports.sink.rows<trace::ReportedFigureRow>()) {
    out += imports.name(row.metric) + "/" + imports.name(row.statistic) + "=" + std::to_string(row.value) + imports.name(row.unit) +
           (row.key.id == 0 ? "" : "(" + imports.name(row.key) + ")") + " ";
  }
  return out;
}

TEST(BenchClients, VllmServeWithDetails) {
  EXPECT_EQ(sniff(kServe)->name, "vllm-bench");
  const Imports imports("vllm-bench", std::string(kServe));
  ASSERT_EQ(imports.error(), "");
  EXPECT_FALSE(imports.sink.clock.wall_of_zero_ns.has_value());
  const auto experiment = imports.sink.rows<trace::ExperimentRow>().at(0);
  EXPECT_EQ(imports.name(experiment.tool), "vllm-bench");
  EXPECT_EQ(imports.name(experiment.name), "rate inf, concurrency 2");
  EXPECT_EQ(imports.name(experiment.model), "m");
  EXPECT_THAT(imports.name(experiment.settings), HasSubstr("\"cluster\":\"a\""));
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].sent_ns, 101'250'000'000);
  EXPECT_FALSE(rows[0].arrival_seen);  // waiting for --max-concurrency is not in the file
  EXPECT_TRUE(rows[0].placed);
  EXPECT_EQ(rows[0].first_token_ns, 101'300'000'000);
  EXPECT_EQ(rows[0].last_token_ns, 101'330'000'000);
  EXPECT_EQ(rows[0].prompt_tokens, 10);
  EXPECT_EQ(rows[0].output_tokens, 3);
  EXPECT_EQ(imports.name(rows[0].status), "finished");
  EXPECT_EQ(rows[1].last_token_ns, 101'900'000'000);
  EXPECT_FALSE(rows[2].first_token_ns.has_value());
  EXPECT_FALSE(rows[2].end_ns.has_value());
  EXPECT_EQ(imports.name(rows[2].status), "error");
  EXPECT_EQ(imports.name(rows[2].error), "refused");
  const auto messages = imports.sink.rows<trace::RequestTokenRow>();
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[1].ts_ns, 101'310'000'000);
  EXPECT_EQ(messages[1].number, 1);
  EXPECT_EQ(messages[0].tokens, 1);
  EXPECT_EQ(messages[3].tokens, 0);  // 2 messages, 4 tokens: which held how many is unknown
  const std::string all = figures(imports);
  EXPECT_THAT(all, HasSubstr("ttft/mean=75.000000ms(ttft_sent) "));
  EXPECT_THAT(all, HasSubstr("itl/p99.9=300.000000ms(message_gap) "));
  EXPECT_THAT(all, HasSubstr("failed/value=1.000000requests(failed_requests) "));
  EXPECT_THAT(all, testing::Not(HasSubstr("goodput")));  // null: not asked for
}

TEST(BenchClients, AppendedResultsAreExperimentsOfTheirOwn) {
  std::string second(kServe);
  second.replace(second.find("\"inf\""), 5, "4.5");
  const Imports imports("vllm-bench", std::string(kServe) + "\n" + second + "\n");
  ASSERT_EQ(imports.error(), "");
  const auto experiments = imports.sink.rows<trace::ExperimentRow>();
  ASSERT_EQ(experiments.size(), 2u);
  EXPECT_EQ(imports.name(experiments[1].name), "rate 4.5, concurrency 2");
  std::map<trace::Id, int> requests;
  for (const auto& row : imports.sink.rows<trace::RequestRow>()) ++requests[row.experiment_id.value_or(0)];
  EXPECT_EQ(requests, (std::map<trace::Id, int>{{experiments[0].id, 3}, {experiments[1].id, 3}}));
}

TEST(BenchClients, LatencyAndThroughput) {
  const Imports latency("vllm-bench", R"({"avg_latency": 1.5, "latencies": [1.0, 2.0], "percentiles": {"10": 1.1, "99": 1.99}})");
  ASSERT_EQ(latency.error(), "");
  EXPECT_EQ(figures(latency), "latencies/mean=1.500000s latencies/sample=1.000000s latencies/sample=2.000000s "
                              "latencies/p10=1.100000s latencies/p99=1.990000s ");
  EXPECT_TRUE(latency.sink.rows<trace::RequestRow>().empty());
  const std::string text =
      R"({"elapsed_time": 2.0, "num_requests": 4, "total_num_tokens": 100, "requests_per_second": 2.0, "tokens_per_second": 50.0})";
  EXPECT_EQ(sniff(text)->name, "vllm-bench");
  EXPECT_THAT(figures(Imports("vllm-bench", text)), HasSubstr("tokens_per_second/value=50.000000tokens/s(total_tokens_per_s)"));
}

TEST(BenchClients, SglangSaysNotWhenRequestsWereSent) {
  const std::string text =
      R"({"tag": null, "backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null,)"
      R"( "sharegpt_output_len": null, "server_info": {"x": NaN}, "duration": 2.0, "completed": 1, "total_input_tokens": 8,)"
      R"( "total_output_tokens": 2, "total_output_tokens_retokenized": 3, "request_throughput": 0.5, "total_throughput": 5.0,)"
      R"( "mean_e2e_latency_ms": 70.0, "p95_itl_ms": 20.0, "accept_length": null, "input_lens": [8], "output_lens": [2],)"
      R"( "ttfts": [0.05], "itls": [[0.02]], "cached_tokens": [4], "errors": [""]})";
  EXPECT_EQ(sniff(text)->name, "sglang-bench");
  const Imports imports("sglang-bench", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).name), "rate inf");
  const auto row = imports.sink.rows<trace::RequestRow>().at(0);
  EXPECT_EQ(imports.name(row.source), "sglang-bench");
  EXPECT_FALSE(row.placed);
  EXPECT_EQ(row.first_token_ns.value_or(0) - row.sent_ns.value_or(-1), 50'000'000);
  EXPECT_EQ(row.cached_tokens, 4);
  EXPECT_THAT(figures(imports), HasSubstr("e2e_latency/mean=70.000000ms(e2e_sent) itl/p95=20.000000ms(message_gap) "));
  EXPECT_THAT(imports.name(imports.sink.rows<trace::NoteRow>().at(0).text), HasSubstr("does not say when its 1 requests"));
}

// A real file of SGLang 0.5.23.
TEST(BenchClients, SglangRealFile) {
  const std::string text = import_text("sglang_bench.jsonl.gz");
  EXPECT_EQ(sniff(text)->name, "sglang-bench");
  const Imports imports("sglang-bench", text);
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.name(imports.sink.rows<trace::ExperimentRow>().at(0).name), "rate inf, concurrency 2");
  const auto rows = imports.sink.rows<trace::RequestRow>();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].first_token_ns, 92'019'307);
  EXPECT_EQ(rows[0].last_token_ns, 148'001'297);
  EXPECT_EQ(rows[1].output_tokens, 5);
  EXPECT_FALSE(rows[1].placed);
  EXPECT_EQ(imports.sink.rows<trace::RequestTokenRow>().size(), 15u);
  EXPECT_TRUE(imports.sink.losses.empty());
  EXPECT_THAT(figures(imports), HasSubstr("tpot/mean=24.692677ms(tpot) "));
}

TEST(BenchClients, WhatIsDamaged) {
  EXPECT_THAT(Imports("vllm-bench", "{}").error(), HasSubstr("byte 0: holds no results"));
  EXPECT_THAT(Imports("vllm-bench", "{\"ttfts\": [").error(), HasSubstr("byte 0: not valid JSON"));
  std::string lists(kServe);
  lists.replace(lists.find("[3,4,0]"), 7, "[3,4]");
  EXPECT_EQ(Imports("vllm-bench", lists).sink.lost(Loss::kInputDamaged), 3);
  std::string negative(kServe);
  negative.replace(negative.find("[0.05,"), 6, "[-0.5,");
  const Imports one("vllm-bench", negative);
  EXPECT_EQ(one.sink.lost(Loss::kInputDamaged), 1);
  EXPECT_EQ(one.sink.rows<trace::RequestRow>().size(), 2u);
  // A torn line costs itself alone.
  const std::string torn(kServe.substr(0, 300));
  const Imports rest("vllm-bench", std::string(kServe) + "\n" + torn + "\n" + std::string(kServe) + "\n");
  EXPECT_EQ(rest.sink.rows<trace::ExperimentRow>().size(), 2u);
  EXPECT_EQ(rest.sink.lost(Loss::kInputDamaged), 1);
}

}  // namespace
}  // namespace llmprof::importers

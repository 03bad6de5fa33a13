// Traces of requests and measured runs: what is accepted must be served to its end, whatever it asks for.

#include <cmath>

#include "fuzz.h"
#include "serving/metrics.h"
#include "serving/simulate.h"

namespace llmprof::fuzz {
namespace {

using namespace serving;

struct Cost : serving::StepCost {
  serving::StepTime of(const serving::Batch& batch) override {
    return {10 + static_cast<double>(batch.padded_tokens), 5};
  }
};

void check_simulation(const Workload& workload, bool async_scheduling) {
  EngineRules rules;
  rules.block_size = 4;
  rules.num_gpu_blocks = 17;
  rules.max_num_batched_tokens = 24;
  rules.max_num_seqs = 4;
  rules.async_scheduling = async_scheduling;
  rules.policy = async_scheduling ? Policy::kPriority : Policy::kFcfs;
  Cost cost;
  const auto run = simulate(rules, workload, cost);
  require(run.has_value());
  for (const RequestResult& request : run->requests) {
    if (request.rejection != Rejection::kNone) continue;
    require(request.arrival_ns <= request.scheduled_ns && request.first_token_ns <= request.last_token_ns);
  }
  const Metrics metrics = metrics_of(*run);
  require(metrics.completed + metrics.rejected == static_cast<std::int64_t>(workload.requests.size()));
  require(std::isfinite(metrics.ttft_ns.mean) && metrics.ttft_ns.mean >= 0);
}

void run(std::string_view input) {
  if (const auto workload = parse_trace(input, "input")) {
    require(!workload->requests.empty() && workload->content_tokens > 0);
    for (const bool async_scheduling : {false, true}) check_simulation(*workload, async_scheduling);
  } else {
    require(!workload.error().message.empty());
  }
  if (const auto measured = parse_measured(input, "input")) {
    for (const MeasuredRequest& each : *measured) require(each.last_token_s >= each.queued_s);
  }
}

std::vector<std::string> seeds() {
  return {
      "{\"timestamp\": 0, \"input_length\": 30, \"output_length\": 9, \"hash_ids\": [3]}\n"
      "{\"timestamp\": 1, \"input_length\": 31, \"output_length\": 8, \"hash_ids\": [3], \"priority\": 1}\n"
      "{\"timestamp\": 1.5, \"input_length\": 7, \"output_length\": 20}\n",
      "{\"request_id\": \"r-0\", \"input_toks\": 10, \"output_toks\": 5, \"arrival_time\": 1000, \"queued_ts\": 5, "
      "\"scheduled_ts\": 5.1, \"first_token_ts\": 5.2, \"last_token_ts\": 6}\n"};
}

std::vector<std::string> dictionary() {
  return {"\"timestamp\": ",
          "\"input_length\": ",
          "\"output_length\": ",
          "\"hash_ids\": [",
          "\"priority\": ",
          "1e308",
          "-1",
          "null",
          "16777216",
          "18446744073709551615"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

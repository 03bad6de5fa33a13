// Results of vLLM bench and of SGLang bench_serving.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("vllm-bench", input);
  check_importer("sglang-bench", input);
}

std::vector<std::string> seeds() {
  return {
      R"j({"model_id":"m","request_rate":"inf","burstiness":1.0,"num_prompts":2,"max_concurrency":2,"duration":1.5,"completed":2,"total_output_tokens":7,
"request_throughput":1.3,"total_token_throughput":24.6,"input_lens":[10,20],"output_lens":[3,4],"ttfts":[0.05,0.1],"itls":[[0.01,0.02],[0.3]],
"start_times":[101.25,101.5],"errors":["","x"],"mean_ttft_ms":75.0,"p99_itl_ms":99.5})j",
      R"j({"avg_latency": 1.5, "latencies": [1.0, 2.0], "percentiles": {"10": 1.1, "99": 1.99}})j",
      R"j({"tag": null, "request_rate": Infinity, "server_info": {"x": NaN}, "total_output_tokens": 2, "request_throughput": 0.5,
"total_throughput": 5.0, "output_lens": [2], "ttfts": [0.05], "itls": [[0.02]], "cached_tokens": [4]})j"};
}

std::vector<std::string> dictionary() {
  return {"\"ttfts\": [", "\"itls\": [[", "\"start_times\": [", "Infinity", "-Infinity", "NaN", "1e308", "-1", "_ms\"", "\"p99.9_", "\n{"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

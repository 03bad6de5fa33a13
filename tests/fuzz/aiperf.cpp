// Files of aiperf and genai-perf.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("aiperf", input);
  check_importer("genai-perf", input);
}

std::vector<std::string> seeds() {
  return {
      R"j({"metadata":{"x_request_id":"a","request_start_ns":1000,"request_end_ns":3000,"benchmark_phase":"warmup","was_cancelled":true},
"metrics":{"time_to_first_token":{"value":0.1,"unit":"ms"},"inter_chunk_latency":{"value":[0.1],"unit":"ms"}},"error":{"type":"T","message":"l"}})j",
      R"j({"aiperf_version":"1","request_latency":{"unit":"ms","avg":1,"p50":1},"input_config":{"models":{"items":[{"name":"m"}]}},"run_info":{"cli_command":"c"}})j",
      R"j({"experiments":[{"experiment":{"mode":"c","value":1},"requests":[{"timestamp":1,"response_timestamps":[2],"response_outputs":
[{"response":"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":{\"completion_tokens\":1}}"}]}]}],"version":"1"})j"};
}

std::vector<std::string> dictionary() {
  return {"\"metrics\": {", "\"value\": [", "\"unit\": \"ms\"", "9223372036854775807", "1e308", "-1", "data: {"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

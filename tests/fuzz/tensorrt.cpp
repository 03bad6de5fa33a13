// Files of trtllm-bench and trtexec.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("trtllm-bench", input);
  check_importer("trtexec", input);
}

std::vector<std::string> seeds() {
  return {
      R"j({"engine":{"model":"m","version":"1"},"world_info":{},"request_info":{"num_requests":3},"performance":{"total_latency_ms":1,
"request_latency_percentiles_ms":{"p50":4,"minimum":3}},"streaming_metrics":{"avg_ttft_ms":5}})j",
      R"j([{"id":7,"num_input_tokens":1,"start_timestamp":1000,"first_token_timestamp":1500,"end_timestamp":3000,"decode_iteration":3,"output_tokens":4}])j",
      R"j([
  { "count" : 100 }
, { "name" : "a "b"", "timeMs" : 12.5, "averageMs" : 0.125, "medianMs" : 0.12, "percentage" : 80.0 }
])j",
      R"j([{"startEnqMs":0,"endEnqMs":0.1,"startComputeMs":0.05,"endComputeMs":1.05,"computeMs":1,"latencyMs":1.2}])j",
      R"j({"Layers":["a",{"Name":"mm","LayerType":"g","Inputs":[]}],"Bindings":["i"],"I/O Tensors":[{"Name":"x","Dimensions":[1]}]})j"};
}

std::vector<std::string> dictionary() {
  return {"\"name\" : \"", "\", \"timeMs\"", "\"startComputeMs\":", "9223372036854775807", "1e308", "-1"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

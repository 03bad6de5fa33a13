// Spans of OpenTelemetry.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("otel", input);
}

std::vector<std::string> seeds() {
  return {
      R"j({"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"aa","name":"llm_request","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":
"1700000001000000000","attributes":[{"key":"gen_ai.latency.time_to_first_token","value":{"doubleValue":0.04}},{"key":"gen_ai.usage.prompt_tokens",
"value":{"intValue":"16"}}]}]}]}]})j",
      R"j({"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"c1","parentSpanId":"b1","name":"decode_loop","startTimeUnixNano":"17","attributes":[],
"events":[{"name":"schedule","timeUnixNano":"18","attributes":[{"key":"bid","value":{"stringValue":"q"}},{"key":"forward_mode","value":{"stringValue":"decode"}}]}]},
{"spanId":"b1","parentSpanId":"a1","name":"s","startTimeUnixNano":"16","attributes":[{"key":"thread_label","value":{"stringValue":"S"}},{"key":"pid","value":{"intValue":"4"}}]},
{"spanId":"a1","name":"R","startTimeUnixNano":"15","attributes":[{"key":"rid","value":{"stringValue":"r"}},{"key":"module","value":{"stringValue":"sglang::request"}}]}]}]}]})j"};
}

std::vector<std::string> dictionary() {
  return {"\"spans\":[", "\"parentSpanId\":\"a1\"", "\"intValue\":\"", "\"doubleValue\":", "9223372036854775807", "1e308", "-1"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz

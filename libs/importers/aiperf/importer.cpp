// aiperf and genai-perf: the aggregate (profile_export_aiperf.json, *_genai_perf.json) and the records of requests
// (profile_export.jsonl of aiperf, profile_export.json of genai-perf).
#include "importers/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "importers/experiment.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace aiperf {
namespace {

using base::Json;

constexpr std::string_view kHint = "give profile_export.jsonl or profile_export_aiperf.json of aiperf, or those of genai-perf";

bool has(std::string_view head, std::string_view key) { return base::contains(head, fmt::format("\"{}\"", key)); }

int sniff_aiperf(std::string_view head) {
  if (has(head, "request_start_ns") && has(head, "metadata")) return 95;
  return has(head, "aiperf_version") || (has(head, "benchmark_id") && has(head, "request_latency")) ? 95 : 0;
}
int sniff_genai_perf(std::string_view head) {
  if (has(head, "experiments") && (has(head, "service_kind") || has(head, "response_timestamps"))) return 90;
  return has(head, "request_latency") && has(head, "request_throughput") && has(head, "unit") && has(head, "avg") ? 60 : 0;
}

// By tag; units stand in the file. Others are kept without a key.
constexpr std::array kMeanings = {
    Meaning{"time_to_first_token", "ttft_sent", "", "send to the first message with text or reasoning"},
    Meaning{"time_to_first_output_token", "", "", "send to the first message with text that is no reasoning"},
    Meaning{"time_to_second_token", "", "", "first message to the second"},
    Meaning{"inter_token_latency", "tpot", "",
            "(request latency - time to first token) / (output tokens - 1, or less the first message's tokens where the server "
            "says them); vLLM calls this TPOT"},
    Meaning{"inter_chunk_latency", "message_gap", "", "between one message and the next; vLLM calls this ITL"},
    Meaning{"request_latency", "e2e_sent", "", "send to the last message with content"},
    Meaning{"request_throughput", "requests_per_s", "", "valid requests / benchmark duration"},
    Meaning{"request_count", "finished_requests", "", "valid requests"},
    Meaning{"error_request_count", "failed_requests", "", "requests that ended with an error"},
    Meaning{"output_token_throughput", "output_tokens_per_s", "", "output tokens / benchmark duration, ramp and drain included"},
    Meaning{"output_token_throughput_per_user", "", "", "1 / inter-token latency of a request"},
    Meaning{"total_token_throughput", "total_tokens_per_s", "", "(prompt + output tokens) / benchmark duration"},
    Meaning{"e2e_output_token_throughput", "", "", "output tokens / request latency of a request"},
    Meaning{"prefill_throughput_per_user", "", "", "prompt tokens / time to first token of a request"},
    Meaning{"output_sequence_length", "output_tokens", "", "output and reasoning, counted again by the client's tokenizer"},
    Meaning{"input_sequence_length", "prompt_tokens", "", "counted by the client's tokenizer"},
    Meaning{"total_osl", "total_output_tokens", "", "output_sequence_length of all requests"},
    Meaning{"total_isl", "total_prompt_tokens", "", "input_sequence_length of all requests"},
    Meaning{"usage_completion_tokens", "", "", "output tokens as the server's usage says"},
    Meaning{"usage_prompt_tokens", "", "", "prompt tokens as the server's usage says"},
    Meaning{"goodput", "goodput", "", "requests within all limits / benchmark duration"},
    Meaning{"good_request_count", "", "", "requests within all limits"},
    Meaning{"good_request_fraction", "", "", "requests within all limits / all, errors included"},
    Meaning{"benchmark_duration", "duration", "", "first send to the last response"},
};

double ns_of(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  return unit == "s" || unit == "sec" || unit == "seconds" ? 1e9 : 0;
}

// A metric of the table with the file's unit, or one that the table does not know.
Meaning meaning_in(std::string_view tag, const Json& block) {
  const Meaning* known = meaning_of(kMeanings, tag);
  Meaning meaning = known != nullptr ? *known : Meaning{tag, "", "", ""};
  meaning.unit = text(block, "unit");
  return meaning;
}

class Reader {
 public:
  Reader(std::string_view tool, Input& input, Sink& sink) : tool_(tool), values_(input, sink), sink_(sink) {}

  Result<void> read() {
    sink_.set_clock({0, "the client's wall clock"});
    Json value;
    for (;;) {
      LLMPROF_LET(const bool more, values_.next(value));
      if (!more) break;
      if (member(value, "metadata") != nullptr && member(value, "metrics") != nullptr) {
        take_record(value);
      } else if (member(value, "experiments") != nullptr) {
        take_raw(value);
      } else if (!take_aggregate(value)) {
        sink_.lose(trace::Loss::kInputIgnored, 1, "objects of other kinds", values_.where());
      }
    }
    if (taken_ == 0) return values_.refuse(fmt::format("holds no results of {}", tool_), kHint);
    if (uncounted_ > 0)
      sink_.note("requests", fmt::format("Of {} requests the file says no numbers of tokens.", uncounted_));
    sink_.set_facts({.tool = version_.empty() ? std::string(tool_) : fmt::format("{} {}", tool_, version_), .command = command_});
    return {};
  }

 private:
  Experiment& of_requests() {
    if (!requests_) requests_.emplace(sink_, tool_, "requests", "", Json());
    return *requests_;
  }

  bool take_aggregate(const Json& value) {
    std::int64_t blocks = 0;
    for (const auto& [tag, block] : value.items()) blocks += number(block, "avg") && block.contains("unit") ? 1 : 0;
    if (blocks == 0) return false;
    ++taken_;
    version_ = text(value, "aiperf_version").substr(0, 40);
    if (const Json* run = member(value, "run_info")) command_ = text(*run, "cli_command");
    const Json* config = member(value, "input_config");
    Experiment experiment(sink_, tool_, "aggregate", model_of(config), settings_of(value, {}));
    for (const auto& [tag, block] : value.items()) {
      if (!number(block, "avg")) continue;
      const Meaning meaning = meaning_in(tag, block);
      const bool distribution = member(block, "p50") != nullptr || member(block, "std") != nullptr;
      for (const auto& [name, figure] : block.items()) {
        if (name == "unit") continue;
        experiment.figure(meaning, name != "avg" ? std::string_view(name).substr(0, 8) : distribution ? "mean" : "value", &figure);
      }
    }
    return true;
  }

  // aiperf: models.items[0].name; before: endpoint.model_names[0]; genai-perf: model[0] or model_names[0].
  static std::string_view model_of(const Json* config) {
    if (config == nullptr) return "";
    const auto first = [](const Json& list) -> std::string_view {
      if (list.empty()) return "";
      if (list[0].is_string()) return list[0].get_ref<const std::string&>();
      return text(list[0], "name");
    };
    const Json *models = member(*config, "models"), *endpoint = member(*config, "endpoint");
    for (const Json* list : {models == nullptr ? nullptr : &array(*models, "items"),
                             endpoint == nullptr ? nullptr : &array(*endpoint, "model_names"), &array(*config, "model"),
                             &array(*config, "model_names")}) {
      if (list != nullptr && !first(*list).empty()) return first(*list);
    }
    return "";
  }

  // A line of profile_export.jsonl.
  void take_record(const Json& record) {
    const Json &about = *member(record, "metadata"), &metrics = *member(record, "metrics");
    const auto start = whole(about, "request_start_ns");
    if (!start || *start <= 0) return sink_.lose(trace::Loss::kInputDamaged, 1, "requests without a begin", values_.where());
    ++taken_;
    const auto ns = [&](std::string_view tag) -> std::optional<std::int64_t> {
      const Json* block = member(metrics, tag);
      const auto value = block == nullptr ? std::nullopt : number(*block, "value");
      const double unit_ns = block == nullptr ? 0 : ns_of(text(*block, "unit"));
      return value && *value >= 0 && unit_ns > 0 ? to_ns(*value, unit_ns) : std::nullopt;
    };
    const auto tokens = [&](std::string_view tag) {
      const Json* block = member(metrics, tag);
      return block == nullptr ? std::int64_t{0} : to_ns(std::max(number(*block, "value").value_or(0), 0.0), 1).value_or(0);
    };
    ClientRequest request;
    request.name = text(about, "x_request_id");
    request.sent_ns = *start;
    request.first_ns = ns("time_to_first_token");
    request.last_ns = ns("request_latency");
    if (const auto end = whole(about, "request_end_ns"); end && *end >= *start) request.end_ns = *end - *start;
    request.prompt_tokens = tokens("input_sequence_length");
    if (request.prompt_tokens == 0) request.prompt_tokens = tokens("error_isl");
    request.output_tokens = tokens("output_sequence_length");
    request.warm_up = text(about, "benchmark_phase") == "warmup";
    const Json *cancelled = member(about, "was_cancelled"), *error = member(record, "error");
    if (cancelled != nullptr && *cancelled == true) request.status = "aborted";
    std::string words;
    if (error != nullptr) words = error->is_object() ? fmt::format("{}: {}", text(*error, "type"), text(*error, "message")) : base::to_line(*error);
    request.error = words;
    take_gaps(metrics, request);
    const trace::Id row = of_requests().request(request);
    if (!metrics.is_object() || request.warm_up) return;
    for (const auto& [tag, block] : metrics.items()) {
      if (number(block, "value")) requests_->figure(meaning_in(tag, block), "sample", member(block, "value"), row);
    }
  }

  static void take_gaps(const Json& metrics, ClientRequest& request) {
    if (!request.first_ns) return;
    request.messages_ns.push_back(*request.first_ns);
    const Json* block = member(metrics, "inter_chunk_latency");
    const double unit_ns = block == nullptr ? 0 : ns_of(text(*block, "unit"));
    if (unit_ns == 0) return;
    double sum = static_cast<double>(*request.first_ns);
    for (const Json& gap : array(*block, "value")) {
      sum += std::max(as_number(gap).value_or(0), 0.0) * unit_ns;
      if (const auto moment = to_ns(sum, 1)) request.messages_ns.push_back(*moment);
    }
  }

  // profile_export.json of genai-perf: what was received, as it came.
  void take_raw(const Json& document) {
    version_ = text(document, "version").substr(0, 40);
    for (const Json& each : array(document, "experiments")) {
      const Json* facts = member(each, "experiment");
      const std::string name = facts == nullptr ? "requests"
                                                : fmt::format("{} {:g}", text(*facts, "mode"), number(*facts, "value").value_or(0));
      Experiment experiment(sink_, tool_, name, "", Json());
      for (const Json& request : array(each, "requests")) take_raw_request(request, experiment);
    }
  }

  void take_raw_request(const Json& json, Experiment& experiment) {
    const auto sent = whole(json, "timestamp");
    const Json &times = array(json, "response_timestamps"), &answers = array(json, "response_outputs");
    if (!sent || *sent <= 0) return sink_.lose(trace::Loss::kInputDamaged, 1, "requests without a begin", values_.where());
    ++taken_;
    ClientRequest request;
    request.sent_ns = *sent;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto moment = times[i].is_number_integer() ? std::optional(times[i].get<std::int64_t>()) : std::nullopt;
      if (!moment || *moment < *sent) {
        sink_.lose(trace::Loss::kInputDamaged, 1, "responses before their request", values_.where());
        continue;
      }
      request.end_ns = *moment - *sent;
      if (i < answers.size() && take_answer(text(answers[i], "response"), request)) request.messages_ns.push_back(*moment - *sent);
    }
    if (!request.messages_ns.empty()) request.first_ns = request.messages_ns.front(), request.last_ns = request.messages_ns.back();
    if (times.empty()) request.status = "error", request.error = "no response";
    if (request.output_tokens == 0) ++uncounted_;
    experiment.request(request);
  }

  // Whether "data: {…}" lines hold output; the usage, where one says it.
  static bool take_answer(std::string_view response, ClientRequest& request) {
    bool output = false;
    while (!response.empty()) {
      std::string_view line = response.substr(0, response.find('\n'));
      response.remove_prefix(std::min(line.size() + 1, response.size()));
      if (line.starts_with("data:")) line.remove_prefix(5);
      const std::size_t brace = line.find('{');
      if (brace == std::string_view::npos) continue;
      const Result<Json> parsed = base::parse_json(line.substr(brace), "");
      if (!parsed) continue;
      if (const Json* usage = member(*parsed, "usage")) {
        request.output_tokens = std::max(whole(*usage, "completion_tokens").value_or(0), request.output_tokens);
        request.prompt_tokens = std::max(whole(*usage, "prompt_tokens").value_or(0), request.prompt_tokens);
      }
      for (const Json& choice : array(*parsed, "choices")) {
        const Json* delta = member(choice, "delta");
        if (delta == nullptr) delta = member(choice, "message");
        output = output || !text(choice, "text").empty() ||
                 (delta != nullptr && (!text(*delta, "content").empty() || !text(*delta, "reasoning_content").empty()));
      }
    }
    return output;
  }

  std::string_view tool_;
  JsonValues values_;
  Sink& sink_;
  std::optional<Experiment> requests_;
  std::int64_t taken_ = 0, uncounted_ = 0;
  std::string version_, command_;
};

Result<void> parse_aiperf(Input& input, Sink& sink) { return Reader("aiperf", input, sink).read(); }
Result<void> parse_genai_perf(Input& input, Sink& sink) { return Reader("genai-perf", input, sink).read(); }

}  // namespace
}  // namespace aiperf

extern const Importer kAiperf, kGenaiPerf;
const Importer kAiperf{"aiperf",          "aiperf, aggregate JSON or records of requests, JSON Lines",
                       Role::kReadings,   aiperf::sniff_aiperf,
                       aiperf::parse_aiperf, false};
const Importer kGenaiPerf{"genai-perf",       "genai-perf, aggregate or records of requests, JSON",
                          Role::kReadings,    aiperf::sniff_genai_perf,
                          aiperf::parse_genai_perf, false};

}  // namespace llmprof::importers

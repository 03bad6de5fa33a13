// Results of vLLM's `bench serve`, `bench latency` and `bench throughput`, and of SGLang's bench_serving: one JSON object
// an experiment, several where results were appended.
#include "importers/importer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "importers/experiment.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace bench_clients {
namespace {

using base::Json;

constexpr std::string_view kVllm = "vllm-bench", kSglang = "sglang-bench";
constexpr std::string_view kHint =
    "write it with vllm bench serve --save-result --save-detailed, or sglang.bench_serving --output-file F --output-details";

bool has(std::string_view head, std::initializer_list<std::string_view> keys) {
  return std::ranges::all_of(
      keys, [&](std::string_view key) { return base::contains(head, fmt::format("\"{}\"", key)); });
}

bool is_serve(const Json& result) { return member(result, "request_throughput") && member(result, "total_output_tokens"); }
bool is_sglang(const Json& result) {
  return member(result, "total_throughput") != nullptr || member(result, "total_output_tokens_retokenized") != nullptr;
}

int sniff_vllm(std::string_view head) {
  if (has(head, {"request_throughput", "total_token_throughput"}) || has(head, {"burstiness", "num_prompts"})) return 90;
  if (has(head, {"avg_latency", "latencies", "percentiles"})) return 90;
  return has(head, {"elapsed_time", "num_requests", "total_num_tokens", "tokens_per_second"}) ? 90 : 0;
}
int sniff_sglang(std::string_view head) {
  return has(head, {"request_throughput", "total_throughput"}) || has(head, {"sharegpt_output_len", "dataset_name"}) ? 90 : 0;
}

// Statistics: mean_ttft_ms, p99_itl_ms, … Both tools start their clock behind the semaphore of --max-concurrency.
constexpr std::array kLatencies = {
    Meaning{"ttft", "ttft_sent", "ms",
            "send to the first message with choices (empty text counts); waiting for --max-concurrency is not in it"},
    Meaning{"tpot", "tpot", "ms", "(end - first message) / (output tokens - 1); requests of one token are left out"},
    Meaning{"itl", "message_gap", "ms", "between one message with choices and the next; a message may hold several tokens"},
    Meaning{"e2el", "e2e_sent", "ms", "send to the last message with choices"},
};
constexpr std::array kSglangLatencies = {
    Meaning{"ttft", "ttft_sent", "ms", "send to the first text that is not empty; waiting for --max-concurrency is not in it"},
    Meaning{"tpot", "tpot", "ms", "(end - first text) / (output tokens - 1); requests of one token are left out"},
    Meaning{"itl", "message_gap", "ms",
            "between one message and the next; SGLang's own /generate: divided by its new tokens and repeated for each"},
    Meaning{"e2e_latency", "e2e_sent", "ms", "send to the last line of the answer"},
};

constexpr std::string_view kDuration = "first send to the end of all requests, ramp and drain included";
// Figures of a whole experiment, by both tools' names.
constexpr std::array kFigures = {
    Meaning{"duration", "duration", "s", kDuration},
    Meaning{"completed", "finished_requests", "requests", "requests that ended without an error"},
    Meaning{"failed", "failed_requests", "requests", "requests that ended with an error; they are in no latency"},
    Meaning{"total_input_tokens", "total_prompt_tokens", "tokens", "prompts of completed requests, as the client counted them"},
    Meaning{"total_output_tokens", "total_output_tokens", "tokens", "as the server's usage says, else counted again by the client"},
    Meaning{"total_output_tokens_retokenized", "", "tokens", "counted again by the client's tokenizer"},
    Meaning{"total_input_text_tokens", "", "tokens", ""},
    Meaning{"total_input_vision_tokens", "", "tokens", ""},
    Meaning{"request_throughput", "requests_per_s", "requests/s", "completed / duration"},
    Meaning{"request_goodput", "goodput", "requests/s", "completed within all limits of --goodput / duration"},
    Meaning{"input_throughput", "prompt_tokens_per_s", "tokens/s", "prompt tokens / duration"},
    Meaning{"output_throughput", "output_tokens_per_s", "tokens/s", "output tokens / duration, ramp and drain included"},
    Meaning{"total_token_throughput", "total_tokens_per_s", "tokens/s", "(prompt + output tokens) / duration"},
    Meaning{"total_throughput", "total_tokens_per_s", "tokens/s", "(prompt + output tokens) / duration"},
    Meaning{"max_output_tokens_per_s", "", "tokens/s", "most in one second"},
    Meaning{"max_concurrent_requests", "", "requests", "most under way in one second"},
    Meaning{"concurrency", "concurrency", "requests", "sum of the requests' times / duration"},
    Meaning{"accept_length", "acceptance_length", "tokens", "tokens per step of the target model, by speculation"},
    Meaning{"rtfx", "", "", ""},
    Meaning{"spec_decode_acceptance_rate", "", "%", "draft tokens that were accepted"},
    Meaning{"spec_decode_acceptance_length", "acceptance_length", "tokens", "tokens per step of the target model"},
    Meaning{"spec_decode_num_drafts", "", "drafts", ""},
    Meaning{"spec_decode_draft_tokens", "", "tokens", ""},
    Meaning{"spec_decode_accepted_tokens", "", "tokens", ""},
    Meaning{"probe_completed", "", "requests", "probes that ended without an error"},
    Meaning{"probe_failed", "", "requests", "probes that ended with an error"},
    Meaning{"probe_median_e2el_ms", "", "ms", "median of the probes"},
    Meaning{"probe_p99_e2el_ms", "", "ms", "99th percentile of the probes"},
    Meaning{"probe_max_e2el_ms", "", "ms", "longest of the probes"},
};

constexpr Meaning kBatch{"latencies", "", "s", "one batch from begin to end, no server and no queue"};
constexpr std::array kThroughput = {
    Meaning{"elapsed_time", "duration", "s", "all prompts given to the engine at once, to the last one's end"},
    Meaning{"num_requests", "finished_requests", "requests", ""},
    Meaning{"total_num_tokens", "total_tokens", "tokens", "prompt + output"},
    Meaning{"requests_per_second", "requests_per_s", "requests/s", "requests / elapsed time"},
    Meaning{"tokens_per_second", "total_tokens_per_s", "tokens/s", "(prompt + output tokens) / elapsed time"},
};

// "p99.9_itl_ms" -> "p99.9" and the meaning of itl; nullptr: no statistic of a latency.
const Meaning* latency_of(std::string_view key, std::span<const Meaning> table, std::string_view& statistic) {
  if (!key.ends_with("_ms")) return nullptr;
  key.remove_suffix(3);
  const std::size_t cut = key.find('_');
  if (cut == std::string_view::npos) return nullptr;
  statistic = key.substr(0, cut);
  const bool known = statistic == "mean" || statistic == "median" || statistic == "std" || statistic == "max" ||
                     (statistic.starts_with('p') && base::parse_number<double>(statistic.substr(1)));
  return known ? meaning_of(table, key.substr(cut + 1)) : nullptr;
}

// "rate 16, concurrency 8": what one varies between experiments.
std::string load_of(const Json& result) {
  const auto shown = [&](std::string_view key) -> std::string {
    const Json* value = member(result, key);
    if (value == nullptr || value->is_structured()) return "";
    return value->is_string() ? value->get<std::string>().substr(0, 60) : fmt::format("{:g}", as_number(*value).value_or(0));
  };
  std::string rate = shown("request_rate"), out;
  if (rate == "Infinity") rate = "inf";
  for (const auto& [name, value] : {std::pair{"tag", shown("tag")}, {"label", shown("label")}, {"rate", rate},
                                    {"concurrency", shown("max_concurrency")}}) {
    if (!value.empty()) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, value);
  }
  return out.empty() ? "results" : out;
}

class Reader {
 public:
  Reader(Input& input, Sink& sink) : values_(input, sink), sink_(sink) {}

  Result<void> read() {
    sink_.set_clock({std::nullopt, "the client's monotonic clock"});
    Json result;
    for (;;) {
      LLMPROF_LET(const bool more, values_.next(result));
      if (!more) break;
      take(result);
    }
    if (experiments_ == 0) return values_.refuse("holds no results of a benchmark of vLLM or SGLang", kHint);
    Experiment::note_unplaced(sink_, unplaced_);
    if (unclear_ > 0) {
      sink_.note("requests", fmt::format("Of {} requests the number of messages is not that of output tokens: how many tokens "
                                         "each message held is unknown.", unclear_));
    }
    sink_.set_facts({.tool = sglang_ ? "SGLang bench_serving" : "vLLM bench"});
    return {};
  }

 private:
  void take(const Json& result) {
    if (is_serve(result)) return take_serve(result);
    if (member(result, "avg_latency") != nullptr && member(result, "latencies") != nullptr) return take_latency(result);
    if (member(result, "elapsed_time") != nullptr && member(result, "total_num_tokens") != nullptr) return take_throughput(result);
    sink_.lose(trace::Loss::kInputIgnored, 1, "objects that are no results", values_.where());
  }

  void take_serve(const Json& result) {
    const bool sglang = is_sglang(result);
    sglang_ = sglang_ || sglang;
    ++experiments_;
    const std::span<const Meaning> latencies = sglang ? std::span<const Meaning>(kSglangLatencies) : kLatencies;
    Json settings = Json::object();
    std::vector<std::pair<const Meaning*, std::pair<std::string_view, const Json*>>> figures;
    for (const auto& [key, value] : result.items()) {
      std::string_view statistic = "value";
      const Meaning* meaning = meaning_of(kFigures, key);
      if (meaning == nullptr) meaning = latency_of(key, latencies, statistic);
      if (meaning != nullptr) {
        figures.emplace_back(meaning, std::pair{statistic, &value});
      } else if (!value.is_structured() && !value.is_null()) {
        settings[key] = value;
      }
    }
    const std::string_view model = text(result, "model_id");
    Experiment experiment(sink_, sglang ? kSglang : kVllm, load_of(result), model, settings);
    for (const auto& [meaning, figure] : figures) experiment.figure(*meaning, figure.first, figure.second);
    take_requests(result, experiment);
    unclear_ += experiment.unclear_messages();
  }

  // Lists with an element per request, in one order.
  void take_requests(const Json& result, Experiment& experiment) {
    const Json &ttfts = array(result, "ttfts"), &itls = array(result, "itls"), &starts = array(result, "start_times");
    const Json &inputs = array(result, "input_lens"), &outputs = array(result, "output_lens");
    const Json &errors = array(result, "errors"), &cached = array(result, "cached_tokens");
    const std::size_t count = ttfts.size();
    if (count == 0) return;
    if (itls.size() != count || outputs.size() != count || (!starts.empty() && starts.size() != count)) {
      return sink_.lose(trace::Loss::kInputDamaged, static_cast<std::int64_t>(count),
                        "requests whose lists differ in length", values_.where());
    }
    const auto at = [](const Json& list, std::size_t i) -> std::optional<double> {
      return i < list.size() ? as_number(list[i]) : std::nullopt;
    };
    for (std::size_t i = 0; i < count; ++i) {
      ClientRequest request;
      if (const auto start = at(starts, i)) request.sent_ns = to_ns(*start, 1e9);
      request.prompt_tokens = std::llround(std::clamp(at(inputs, i).value_or(0), 0.0, 1e15));
      request.output_tokens = std::llround(std::clamp(at(outputs, i).value_or(0), 0.0, 1e15));
      if (const auto tokens = at(cached, i)) request.cached_tokens = std::llround(std::clamp(*tokens, 0.0, 1e15));
      if (i < errors.size() && errors[i].is_string()) request.error = errors[i].get_ref<const std::string&>();
      if (!take_messages(at(ttfts, i), itls[i], request)) {
        sink_.lose(trace::Loss::kInputDamaged, 1, "requests with times that are none", values_.where());
        continue;
      }
      if (!request.sent_ns) ++unplaced_;
      experiment.request(request);
    }
  }

  static bool take_messages(std::optional<double> ttft, const Json& gaps, ClientRequest& request) {
    if (!ttft || *ttft < 0 || !gaps.is_array()) return false;
    if (*ttft == 0 && gaps.empty()) return true;  // nothing came
    double sum = *ttft;
    request.first_ns = to_ns(sum, 1e9);
    if (!request.first_ns) return false;
    request.messages_ns.push_back(*request.first_ns);
    for (const Json& gap : gaps) {
      const std::optional<double> seconds = as_number(gap);
      if (!seconds || *seconds < 0) return false;
      sum += *seconds;
      const auto moment = to_ns(sum, 1e9);
      if (!moment) return false;
      request.messages_ns.push_back(*moment);
    }
    request.last_ns = request.messages_ns.back();
    if (request.error.empty()) request.end_ns = request.last_ns;
    return true;
  }

  void take_latency(const Json& result) {
    ++experiments_;
    Experiment experiment(sink_, kVllm, "latency", "", settings_of(result, std::array{std::string_view("avg_latency")}));
    experiment.figure(kBatch, "mean", member(result, "avg_latency"));
    for (const Json& sample : array(result, "latencies")) experiment.figure(kBatch, "sample", &sample);
    if (const Json* percentiles = member(result, "percentiles"); percentiles != nullptr && percentiles->is_object()) {
      for (const auto& [percent, value] : percentiles->items())
        experiment.figure(kBatch, "p" + percent.substr(0, 8), &value);
    }
  }

  void take_throughput(const Json& result) {
    ++experiments_;
    static constexpr std::array<std::string_view, 5> kNames = {"elapsed_time", "num_requests", "total_num_tokens",
                                                               "requests_per_second", "tokens_per_second"};
    Experiment experiment(sink_, kVllm, "throughput", "", settings_of(result, kNames));
    for (const Meaning& meaning : kThroughput) experiment.figure(meaning, "value", member(result, meaning.metric));
  }

  JsonValues values_;
  Sink& sink_;
  bool sglang_ = false;
  std::int64_t experiments_ = 0, unplaced_ = 0, unclear_ = 0;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace bench_clients

extern const Importer kVllmBench, kSglangBench;
const Importer kVllmBench{"vllm-bench",  "vLLM bench serve, latency or throughput, JSON",
                          Role::kReadings, bench_clients::sniff_vllm,
                          bench_clients::parse, false};
const Importer kSglangBench{"sglang-bench",  "SGLang bench_serving, JSON Lines",
                            Role::kReadings, bench_clients::sniff_sglang,
                            bench_clients::parse, false};

}  // namespace llmprof::importers

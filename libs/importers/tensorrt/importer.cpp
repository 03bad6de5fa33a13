// TensorRT: trtllm-bench (--report_json, --request_json) and trtexec (--exportProfile, --exportTimes, --exportLayerInfo).
#include "importers/importer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/json.h"
#include "base/strings.h"
#include "importers/experiment.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace tensorrt {
namespace {

using base::Json;

constexpr std::string_view kBenchHint = "write it with trtllm-bench throughput --report_json FILE --request_json FILE";
constexpr std::string_view kExecHint = "write it with trtexec --exportProfile, --exportTimes or --exportLayerInfo=FILE";

bool has(std::string_view head, std::string_view key) { return base::contains(head, fmt::format("\"{}\"", key)); }

int sniff_bench(std::string_view head) {
  if (has(head, "request_info") && has(head, "world_info") && has(head, "performance")) return 95;
  return has(head, "num_input_tokens") && has(head, "start_timestamp") && has(head, "decode_iteration") ? 95 : 0;
}
int sniff_exec(std::string_view head) {
  if (has(head, "startEnqMs") || (has(head, "averageMs") && has(head, "percentage"))) return 95;
  return has(head, "Layers") && (has(head, "Bindings") || has(head, "I/O Tensors") || has(head, "LayerType")) ? 90 : 0;
}

// Of the report, by section and name. Percentiles: the value at int(n p) of the sorted ones.
struct Section {
  std::string_view name;
  std::span<const Meaning> figures;
};
constexpr std::array kRequestInfo = {
    Meaning{"num_requests", "finished_requests", "requests", ""},
    Meaning{"avg_num_concurrent_requests", "concurrency", "requests", "sum of the requests' times / total latency"},
    Meaning{"avg_input_length", "prompt_tokens", "tokens", "of a request; the mean"},
    Meaning{"avg_output_length", "output_tokens", "tokens", "of a request; the mean"},
};
constexpr std::array kPerformance = {
    Meaning{"total_latency_ms", "duration", "ms", "first submission to the last end"},
    Meaning{"avg_request_latency_ms", "e2e_submitted", "ms", "submission to LLM API to the last token; the mean"},
    Meaning{"request_throughput_req_s", "requests_per_s", "requests/s", "requests / total latency"},
    Meaning{"system_output_throughput_tok_s", "output_tokens_per_s", "tokens/s", "output tokens / total latency"},
    Meaning{"system_total_throughput_tok_s", "total_tokens_per_s", "tokens/s", "(prompt + output tokens) / total latency"},
    Meaning{"output_throughput_per_user_tok_s", "", "tokens/s", "output tokens of a request / its time; the mean"},
    Meaning{"output_throughput_per_gpu_tok_s", "", "tokens/s", "output tokens / total latency / GPUs"},
};
constexpr std::array kStreaming = {
    Meaning{"token_output_speed_tok_s", "", "tokens/s", "(output tokens - 1) / time behind the first token; the mean"},
    Meaning{"avg_ttft_ms", "ttft_submitted", "ms", "submission to LLM API to the first token; the mean"},
    Meaning{"avg_tpot_ms", "tpot", "ms", "(end - first token) / (output tokens - 1); the mean"},
};
constexpr std::array kSections = {Section{"request_info", kRequestInfo}, Section{"performance", kPerformance},
                                  Section{"streaming_metrics", kStreaming}};
constexpr std::array kDistributions = {
    Meaning{"request_latency_percentiles_ms", "e2e_submitted", "ms", "submission to LLM API to the last token"},
    Meaning{"ttft_percentiles", "ttft_submitted", "ms", "submission to LLM API to the first token"},
    Meaning{"tpot_percentiles", "tpot", "ms", "(end - first token) / (output tokens - 1)"},
    Meaning{"gen_tps_percentiles", "", "tokens/s", "(output tokens - 1) / time behind the first token"},
    Meaning{"num_draft_tokens_percentiles", "", "tokens", "draft tokens of a request"},
    Meaning{"num_accepted_draft_tokens_percentiles", "", "tokens", "draft tokens of a request that were accepted"},
    Meaning{"draft_acceptance_rate_percentiles", "", "", "accepted draft tokens / draft tokens of a request"},
    Meaning{"acceptance_length_percentiles", "acceptance_length", "tokens", "output tokens / steps of a request"},
};

std::string_view statistic_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {
      std::pair{"minimum", "min"}, {"maximum", "max"}, {"average", "mean"}};
  for (const auto& [theirs, ours] : kNames) {
    if (name == theirs) return ours;
  }
  return name.substr(0, 8);
}

class BenchReader {
 public:
  BenchReader(Input& input, Sink& sink) : values_(input, sink), sink_(sink) {}

  Result<void> read() {
    sink_.set_clock({std::nullopt, "trtllm-bench's monotonic clock"});
    Json value;
    for (;;) {
      LLMPROF_LET(const bool more, values_.next(value));
      if (!more) break;
      if (member(value, "request_info") != nullptr && member(value, "performance") != nullptr) {
        take_report(value);
      } else if (member(value, "start_timestamp") != nullptr && member(value, "num_input_tokens") != nullptr) {
        take_request(value);
      } else {
        sink_.lose(trace::Loss::kInputIgnored, 1, "objects that are neither a report nor a request", values_.where());
      }
    }
    if (taken_ == 0) return values_.refuse("holds neither a report nor requests of trtllm-bench", kBenchHint);
    sink_.set_facts({.tool = version_.empty() ? "trtllm-bench" : "trtllm-bench, TensorRT-LLM " + version_});
    return {};
  }

 private:
  void take_report(const Json& report) {
    ++taken_;
    Json settings = Json::object();
    for (const char* part : {"engine", "machine", "world_info", "dataset"}) {
      const Json* facts = member(report, part);
      if (facts == nullptr || !facts->is_object()) continue;
      static constexpr std::array<std::string_view, 2> kPaths = {"model_path", "engine_dir"};
      settings.update(settings_of(*facts, kPaths));
    }
    const Json* engine = member(report, "engine");
    const std::string_view model = engine == nullptr ? "" : text(*engine, "model");
    if (engine != nullptr) version_ = text(*engine, "version").substr(0, 60);
    Experiment experiment(sink_, "trtllm-bench", "report", model, settings);
    for (const Section& section : kSections) {
      const Json* figures = member(report, section.name);
      for (const Meaning& meaning : section.figures) {
        if (figures == nullptr) continue;
        experiment.figure(meaning, meaning.metric.starts_with("avg_") ? "mean" : "value", member(*figures, meaning.metric));
      }
    }
    for (const char* part : {"performance", "streaming_metrics", "decoding_stats"}) {
      if (const Json* figures = member(report, part)) take_distributions(*figures, experiment);
    }
  }

  static void take_distributions(const Json& figures, Experiment& experiment) {
    for (const Meaning& meaning : kDistributions) {
      const Json* statistics = member(figures, meaning.metric);
      if (statistics == nullptr || !statistics->is_object()) continue;
      for (const auto& [name, value] : statistics->items()) experiment.figure(meaning, statistic_of(name), &value);
    }
  }

  void take_request(const Json& value) {
    const auto start = whole(value, "start_timestamp"), end = whole(value, "end_timestamp");
    if (!start || *start < 0) return sink_.lose(trace::Loss::kInputDamaged, 1, "requests without a begin", values_.where());
    ++taken_;
    if (!requests_) requests_.emplace(sink_, "trtllm-bench", "requests", "", Json());
    ClientRequest request;
    const std::string id = fmt::format("{}", whole(value, "id").value_or(-1));
    if (id != "-1") request.name = id;
    request.sent_ns = *start;
    const auto since = [&](std::optional<std::int64_t> moment) -> std::optional<std::int64_t> {
      return moment && *moment > 0 && *moment >= *start ? std::optional(*moment - *start) : std::nullopt;
    };
    request.first_ns = since(whole(value, "first_token_timestamp"));
    request.last_ns = request.end_ns = since(end);
    request.prompt_tokens = whole(value, "num_input_tokens").value_or(0);
    auto tokens = whole(value, "output_tokens");
    if (!tokens) tokens = whole(value, "num_total_output_tokens");
    request.output_tokens = tokens.value_or(0);
    if (whole(value, "error_tokens").value_or(0) > 0) request.error = "error_tokens";
    if (!request.end_ns) request.status = "unfinished";
    const trace::Id row = requests_->request(request);
    static constexpr Meaning kIterations{"decode_iteration", "", "steps", "steps that gave it tokens, less one"};
    requests_->figure(kIterations, "sample", member(value, "decode_iteration"), row);
  }

  JsonValues values_;
  Sink& sink_;
  std::optional<Experiment> requests_;
  std::int64_t taken_ = 0;
  std::string version_;
};

// Names of layers are written as they are: what would end the string is escaped here.
std::string with_escaped_names(std::string_view content) {
  constexpr std::string_view kBegin = "\"name\" : \"", kEnd = "\", \"timeMs\"";
  std::string out;
  for (;;) {
    const std::size_t begin = content.find(kBegin);
    const std::size_t line_end = std::min(content.find('\n', std::min(begin, content.size())), content.size());
    const std::size_t end = begin == std::string_view::npos ? begin : content.substr(0, line_end).rfind(kEnd);
    if (begin == std::string_view::npos) return out += content;
    out += content.substr(0, begin + kBegin.size());
    if (end == std::string_view::npos || end < begin + kBegin.size()) {
      content.remove_prefix(begin + kBegin.size());
      continue;
    }
    for (const char c : content.substr(begin + kBegin.size(), end - begin - kBegin.size())) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    content.remove_prefix(end);
  }
}

constexpr std::array kTimes = {
    Meaning{"h2dMs", "", "ms", "one query's inputs to the GPU, between events of its stream"},
    Meaning{"computeMs", "", "ms", "one query's work on the GPU, between events of its stream"},
    Meaning{"d2hMs", "", "ms", "one query's outputs to the host, between events of its stream"},
    Meaning{"latencyMs", "", "ms", "one query: H2D + compute + D2H, no server and no queue"},
};
constexpr Meaning kMedian{"medianMs", "", "ms", ""};

class ExecReader {
 public:
  ExecReader(Input& input, Sink& sink) : values_(input, sink), sink_(sink) {}

  Result<void> read() {
    sink_.set_clock({std::nullopt, "trtexec: milliseconds since the begin of its measurement"});
    Json value;
    for (;;) {
      LLMPROF_LET(const bool more, values_.next(value));
      if (!more) break;
      take(value);
    }
    if (taken_ == 0) return values_.refuse("holds no profile, times or layers of trtexec", kExecHint);
    sink_.set_facts({.tool = "trtexec"});
    return {};
  }

 private:
  void take(const Json& value) {
    if (member(value, "timeMs") != nullptr) return take_layer(value);
    if (member(value, "startComputeMs") != nullptr) return take_query(value);
    if (member(value, "Layers") != nullptr) return take_engine(value);
    if (const auto count = whole(value, "count"); count && value.size() == 1) {
      count_ = *count;
      return;
    }
    sink_.lose(trace::Loss::kInputIgnored, 1, "objects of other kinds", values_.where());
  }

  Experiment& experiment(std::string_view name) {
    if (!experiment_) experiment_.emplace(sink_, "trtexec", name, "", Json());
    return *experiment_;
  }

  void take_layer(const Json& value) {
    const auto total = number(value, "timeMs");
    if (!total) return sink_.lose(trace::Loss::kInputDamaged, 1, "layers without a time", values_.where());
    ++taken_;
    trace::SummaryRow row{.id = sink_.new_id(), .name = sink_.name(text(value, "name")), .kind = sink_.name("layer")};
    if (count_) row.calls = *count_;
    row.self_device_ns = row.device_ns = *total * 1e6;
    sink_.add(row);
    const Meaning median{text(value, "name"), "", "ms", "of the layer's executions, between events of its stream"};
    experiment("layers").figure(median, "median", member(value, "medianMs"));
  }

  void take_query(const Json& value) {
    ++taken_;
    add_enqueue(value);
    for (const Meaning& meaning : kTimes) experiment("times").figure(meaning, "sample", member(value, meaning.metric));
  }

  // The only part of a query that the host does itself; the others are times between events of a stream.
  void add_enqueue(const Json& value) {
    if (queries_++ == 0) {
      process_ = sink_.new_id(), thread_ = sink_.new_id();
      sink_.add(trace::ProcessRow{.id = process_});
      sink_.add(trace::ThreadRow{.id = thread_, .process_id = process_});
    }
    const auto begin = number(value, "startEnqMs"), end = number(value, "endEnqMs");
    const auto begin_ns = begin ? to_ns(*begin, 1e6) : std::nullopt, end_ns = end ? to_ns(*end, 1e6) : std::nullopt;
    if (!begin_ns || !end_ns) return;
    trace::RangeRow row{.id = sink_.new_id(), .begin_ns = *begin_ns, .end_ns = *end_ns};
    row.name = sink_.name("enqueue");
    row.kind = sink_.name("start_end");
    row.process_id = process_, row.thread_id = thread_;
    row.source = sink_.name("trtexec");
    sink_.add(row);
  }

  void take_engine(const Json& value) {
    ++taken_;
    for (const Json& layer : array(value, "Layers")) {
      const bool detailed = layer.is_object();
      const std::string_view name = detailed           ? text(layer, "Name")
                                    : layer.is_string() ? std::string_view(layer.get_ref<const std::string&>())
                                                        : std::string_view();
      if (name.empty()) {
        sink_.lose(trace::Loss::kInputDamaged, 1, "layers without a name", values_.where());
        continue;
      }
      trace::SummaryRow row{.id = sink_.new_id(), .name = sink_.name(name), .kind = sink_.name("layer")};
      if (detailed) {
        const std::string type = detailed ? base::to_line(Json({{"type", text(layer, "LayerType")},
                                                                {"tactic", text(layer, "TacticName")},
                                                                {"inputs", array(layer, "Inputs")},
                                                                {"outputs", array(layer, "Outputs")}}))
                                          : "";
        row.shapes = sink_.name(type.substr(0, 16 << 10));
      }
      sink_.add(row);
    }
    for (const Json& name : array(value, "Bindings")) {
      if (name.is_string()) sink_.note("trtexec", fmt::format("binding {}", name.get_ref<const std::string&>()));
    }
    for (const Json& tensor : array(value, "I/O Tensors")) {  // TensorRT 11
      const Json* dimensions = member(tensor, "Dimensions");
      sink_.note("trtexec", fmt::format("I/O tensor {}: {}, {} {}, {}", text(tensor, "Name"), text(tensor, "IOMode"),
                                        text(tensor, "DataType"),
                                        dimensions == nullptr ? "of unknown dimensions" : base::to_line(*dimensions).substr(0, 200),
                                        text(tensor, "Location")));
    }
  }

  JsonValues values_;
  Sink& sink_;
  std::optional<Experiment> experiment_;
  std::optional<std::int64_t> count_;
  trace::Id process_ = 0, thread_ = 0;
  std::int64_t taken_ = 0, queries_ = 0;
};

Result<void> parse_bench(Input& input, Sink& sink) { return BenchReader(input, sink).read(); }

// A profile has a line per layer and is small; the others are read as they come.
Result<void> parse_exec(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string_view head, input.head());
  if (!has(head, "averageMs")) return ExecReader(input, sink).read();
  LLMPROF_LET(std::string content, input.read_all(64 << 20));
  Input repaired = Input::of_text(input.name(), with_escaped_names(content));
  return ExecReader(repaired, sink).read();
}

}  // namespace
}  // namespace tensorrt

extern const Importer kTrtllmBench, kTrtexec;
const Importer kTrtllmBench{"trtllm-bench",  "trtllm-bench, report or requests, JSON",
                            Role::kReadings, tensorrt::sniff_bench,
                            tensorrt::parse_bench, false};
const Importer kTrtexec{"trtexec", "trtexec, profile, times or layers, JSON", Role::kSummary, tensorrt::sniff_exec,
                        tensorrt::parse_exec, false};

}  // namespace llmprof::importers

// OpenTelemetry spans (OTLP JSON, a document or a line per export): vLLM's llm_request, and SGLang's --enable-trace, whose
// events name the batch a request was scheduled in.
#include "importers/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "importers/experiment.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace otel {
namespace {

using base::Json;

constexpr std::string_view kHint = "give spans as OTLP JSON: the file exporter of an OpenTelemetry collector writes it";
constexpr std::size_t kMostSpans = 2'000'000, kMostEvents = 4'000'000;  // SGLang's, held until the file ends

int sniff(std::string_view head) { return base::contains(head, "\"resourceSpans\"") ? 95 : 0; }

// OTLP: [{"key": "a", "value": {"intValue": "3"}}].
const Json* attribute(const Json& object, std::string_view name) {
  for (const Json& each : array(object, "attributes")) {
    if (text(each, "key") == name) return member(each, "value");
  }
  return nullptr;
}
std::string_view text_attribute(const Json& object, std::string_view name) {
  const Json* value = attribute(object, name);
  return value == nullptr ? std::string_view() : text(*value, "stringValue");
}
// 64-bit numbers are texts in OTLP JSON; some writers give numbers.
std::optional<std::int64_t> integer(const Json& object, std::string_view name) {
  if (const auto number = whole(object, name)) return number;
  return base::parse_number<std::int64_t>(text(object, name));
}
std::optional<double> number_attribute(const Json& object, std::string_view name) {
  const Json* value = attribute(object, name);
  if (value == nullptr) return std::nullopt;
  if (const auto real = number(*value, "doubleValue")) return real;
  if (const auto number = integer(*value, "intValue")) return static_cast<double>(*number);
  return std::nullopt;
}
std::int64_t count_attribute(const Json& object, std::string_view name) {
  return to_ns(std::max(number_attribute(object, name).value_or(0), 0.0), 1).value_or(0);
}
std::uint64_t span_number(std::string_view id) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), value, 16);
  return error == std::errc{} && end == id.data() + id.size() ? value : std::hash<std::string_view>{}(id);
}

// The same attributes, two meanings.
constexpr std::array kVllmTimes = {
    Meaning{"gen_ai.latency.time_in_queue", "queue", "s", "queued in the engine to first scheduled, the engine's clock"},
    Meaning{"gen_ai.latency.time_to_first_token", "ttft_arrival", "s", "arrival at the front end to the first token there"},
    Meaning{"gen_ai.latency.e2e", "e2e_arrival", "s", "arrival at the front end to the last token there"},
    Meaning{"gen_ai.latency.time_in_model_prefill", "prefill", "s", "first scheduled to the first token, the engine's clock"},
    Meaning{"gen_ai.latency.time_in_model_decode", "decode", "s", "first token to the last, the engine's clock"},
    Meaning{"gen_ai.latency.time_in_model_inference", "inference", "s", "first scheduled to the last token, the engine's clock"},
};
constexpr std::array kSglangTimes = {
    Meaning{"gen_ai.latency.time_to_first_token", "ttft_arrival", "s", "arrival at the server to the first token there"},
    Meaning{"gen_ai.latency.e2e", "e2e_arrival", "s", "arrival at the server to its end there"},
    Meaning{"gen_ai.latency.time_in_model_prefill", "", "s", "handed to the scheduler to the first token: queueing is in it"},
    Meaning{"gen_ai.latency.time_in_model_decode", "", "s", "first token to the end of the request"},
    Meaning{"gen_ai.latency.time_in_model_inference", "", "s", "handed to the scheduler to the end of the request"},
};

struct Event {  // of a span of SGLang: the request was scheduled in a batch, or lost its KV cache
  std::uint64_t span = 0;
  std::int64_t ts_ns = 0, batch_size = 0;
  trace::Name batch, mode;
  bool retract = false;
  trace::Id request = 0, thread = 0, process = 0;
};
struct Lane {
  trace::Id process = 0, thread = 0;
};
struct Served {  // a request of SGLang: its row waits for its batches
  trace::RequestRow row;
  std::vector<std::size_t> events;
};

class Reader {
 public:
  Reader(Input& input, Sink& sink) : values_(input, sink), sink_(sink) {}

  Result<void> read() {
    sink_.set_clock({0, "wall clock of the server"});
    Json value;
    for (;;) {
      LLMPROF_LET(const bool more, values_.next(value));
      if (!more) break;
      for (const Json& resource : array(value, "resourceSpans")) take_resource(resource);
    }
    if (spans_ == 0) return values_.refuse("holds no spans", kHint);
    if (requests_ == 0) {
      return values_.refuse(fmt::format("holds {} spans, but none of a request that vLLM or SGLang served", spans_),
                            "vLLM: --otlp-traces-endpoint; SGLang: --enable-trace");
    }
    if (ignored_ > 0) sink_.lose(trace::Loss::kInputIgnored, ignored_, "spans that are of no request");
    if (too_many_ > 0) sink_.lose(trace::Loss::kInputLimit, too_many_, "spans and batches beyond the limit");
    finish_sglang();
    sink_.set_facts({.tool = fmt::format("OpenTelemetry{}{}", vllm_ > 0 ? ", vLLM" : "", served_.empty() ? "" : ", SGLang")});
    return {};
  }

 private:
  void take_resource(const Json& resource) {
    for (const char* name : {"scopeSpans", "instrumentationLibrarySpans"}) {
      for (const Json& scope : array(resource, name)) {
        for (const Json& span : array(scope, "spans")) take_span(span);
      }
    }
  }

  void take_span(const Json& span) {
    ++spans_;
    const auto begin = integer(span, "startTimeUnixNano"), end = integer(span, "endTimeUnixNano");
    if (!begin || *begin <= 0 || (end && *end < *begin))
      return sink_.lose(trace::Loss::kInputDamaged, 1, "spans without a begin, or that end before it", values_.where());
    if (text(span, "name") == "llm_request") return take_vllm(span, *begin, end);
    const bool of_sglang = text_attribute(span, "module").starts_with("sglang::") && attribute(span, "rid") != nullptr;
    if (!keep_span(span)) ++ignored_;
    if (of_sglang) take_sglang(span, *begin, end);
  }

  Experiment& experiment(std::optional<Experiment>& place, std::string_view name) {
    if (!place) place.emplace(sink_, "otel", name, "", Json());
    return *place;
  }

  trace::RequestRow row_of(const Json& span, std::int64_t begin, std::optional<std::int64_t> end) {
    ++requests_;
    trace::RequestRow row{.id = sink_.new_id(), .source = sink_.name("otel")};
    row.arrival_ns = begin;
    if (end) row.end_ns = *end;
    const auto moment = [&](std::string_view name) -> std::optional<std::int64_t> {
      const auto seconds = number_attribute(span, name);
      const auto ns = seconds && *seconds >= 0 ? to_ns(*seconds, 1e9) : std::nullopt;
      std::int64_t sum = 0;
      return ns && !__builtin_add_overflow(begin, *ns, &sum) ? std::optional(sum) : std::nullopt;
    };
    if (const auto first = moment("gen_ai.latency.time_to_first_token")) row.first_token_ns = *first;
    if (const auto last = moment("gen_ai.latency.e2e"); last && row.first_token_ns) row.last_token_ns = *last;
    row.prompt_tokens = count_attribute(span, "gen_ai.usage.prompt_tokens");
    row.output_tokens = count_attribute(span, "gen_ai.usage.completion_tokens");
    if (attribute(span, "gen_ai.usage.cached_tokens") != nullptr)
      row.cached_tokens = count_attribute(span, "gen_ai.usage.cached_tokens");
    const Json* status = member(span, "status");  // code 2: error
    const bool failed = status != nullptr && (whole(*status, "code") == 2 || text(*status, "code") == "STATUS_CODE_ERROR");
    row.status = sink_.name(failed ? "error" : "finished");
    if (failed) row.error = sink_.name_or_null(text(*status, "message"));
    return row;
  }

  void add_times(const Json& span, std::span<const Meaning> times, Experiment& of, trace::Id request) {
    for (const Meaning& meaning : times) {
      if (const auto seconds = number_attribute(span, meaning.metric)) of.figure(meaning, "sample", *seconds, request);
    }
  }

  void take_vllm(const Json& span, std::int64_t begin, std::optional<std::int64_t> end) {
    ++vllm_;
    Experiment& of = experiment(vllm_experiment_, "vLLM");
    trace::RequestRow row = row_of(span, begin, end);
    row.name = sink_.name_or_null(text_attribute(span, "gen_ai.request.id"));
    row.experiment_id = of.id();
    sink_.add(row);
    add_times(span, kVllmTimes, of, row.id);
  }

  void take_sglang(const Json& span, std::int64_t begin, std::optional<std::int64_t> end) {
    Experiment& of = experiment(sglang_experiment_, "SGLang");
    trace::RequestRow row = row_of(span, begin, end);
    row.name = sink_.name_or_null(text_attribute(span, "rid"));
    row.experiment_id = of.id();
    add_times(span, kSglangTimes, of, row.id);
    served_[span_number(text(span, "spanId"))].row = row;
  }

  // Whether it is of SGLang: those of a request hang below its own, and come before it.
  bool keep_span(const Json& span) {
    if (parents_.size() >= kMostSpans) return ++too_many_, true;
    const std::uint64_t id = span_number(text(span, "spanId"));
    parents_[id] = span_number(text(span, "parentSpanId"));
    const Json* label = attribute(span, "thread_label");
    if (label != nullptr) add_lane(span, id);
    bool known = label != nullptr || attribute(span, "rid") != nullptr;
    for (const Json& event : array(span, "events")) known = take_event(event, id) || known;
    return known || attribute(span, "decode_ct") != nullptr || text(span, "name").find("forward") != std::string_view::npos;
  }

  bool take_event(const Json& json, std::uint64_t span) {
    const std::string_view name = text(json, "name"), batch = text_attribute(json, "bid");
    const auto ts_ns = integer(json, "timeUnixNano");
    if ((name != "retract" && batch.empty()) || !ts_ns || *ts_ns <= 0) return false;
    if (events_.size() >= kMostEvents) return ++too_many_, true;
    Event event{.span = span, .ts_ns = *ts_ns, .batch_size = count_attribute(json, "batch_size")};
    event.batch = sink_.name_or_null(batch);
    const std::string_view mode = text_attribute(json, "forward_mode");
    event.mode = sink_.name(mode.empty() ? "unknown" : mode);
    event.retract = batch.empty();
    events_.push_back(event);
    return true;
  }

  void add_lane(const Json& span, std::uint64_t id) {
    const std::string_view host = text_attribute(span, "host_id"), label = text_attribute(span, "thread_label");
    const std::int64_t pid = count_attribute(span, "pid");
    Lane& lane = lanes_[fmt::format("{}/{}/{}", host, pid, label)];
    if (lane.thread == 0) {
      trace::Id& process = processes_[fmt::format("{}/{}", host, pid)];
      if (process == 0) {
        process = sink_.new_id();
        trace::ProcessRow row{.id = process, .pid = pid};
        row.host = sink_.name_or_null(host);
        sink_.add(row);
      }
      lane = {process, sink_.new_id()};
      trace::ThreadRow row{.id = lane.thread, .process_id = process, .tid = pid};
      row.name = sink_.name_or_null(label);
      sink_.add(row);
    }
    lane_of_span_[id] = lane;
  }

  // Up from the span of an event to its thread and its request.
  bool place(Event& event) {
    std::uint64_t span = event.span;
    for (int level = 0; level < 16; ++level) {
      if (const auto lane = lane_of_span_.find(span); lane != lane_of_span_.end() && event.thread == 0)
        event.thread = lane->second.thread, event.process = lane->second.process;
      if (const auto request = served_.find(span); request != served_.end()) {
        event.request = request->second.row.id;
        request->second.events.push_back(static_cast<std::size_t>(&event - events_.data()));
        return event.thread != 0;
      }
      const auto parent = parents_.find(span);
      if (parent == parents_.end()) return false;
      span = parent->second;
    }
    return false;
  }

  void finish_sglang() {
    std::ranges::stable_sort(events_, {}, &Event::ts_ns);
    std::int64_t lost = 0;
    for (Event& event : events_) {
      if (!place(event)) ++lost, event.thread = 0;
    }
    if (lost > 0) sink_.lose(trace::Loss::kInputDamaged, lost, "batches whose request or thread is not in the file");
    for (auto& [span, served] : served_) add_served(served);
    if (!served_.empty() && !events_.empty()) {
      sink_.note("requests", "SGLang's spans say who was in a batch and when it was scheduled, not when it ended nor how many "
                             "tokens each had: those of a prompt that came in one batch are the prompt less what was cached, "
                             "a decode is one token where that agrees with the request's output, else 0.");
    }
  }

  void add_served(Served& served) {
    trace::RequestRow& row = served.row;
    std::int64_t prompts = 0, decodes = 0, retracts = 0;
    for (const std::size_t at : served.events) {
      const Event& event = events_[at];
      if (event.retract) ++retracts;
      else if (sink_.names().text(event.mode) == "decode") ++decodes;
      else ++prompts;
      if (!event.retract && !row.scheduled_ns) row.scheduled_ns = event.ts_ns;
      if (row.process_id.value_or(0) == 0 && event.process != 0) row.process_id = event.process;
    }
    row.preemptions = retracts;
    sink_.add(row);
    const bool clear = row.output_tokens > 0 && row.output_tokens == decodes + 1;
    const std::int64_t prompt = prompts == 1 ? row.prompt_tokens - row.cached_tokens.value_or(0) : 0;
    std::int64_t length = 0;
    for (const std::size_t at : served.events) {
      const Event& event = events_[at];
      if (event.thread == 0) continue;
      const bool decode = sink_.names().text(event.mode) == "decode";
      trace::RequestEventRow mark{.ts_ns = event.ts_ns, .event = sink_.name(event.retract ? "preempted" : "member")};
      mark.request_id = row.id;
      mark.process_id = event.process, mark.thread_id = event.thread;
      if (!event.retract) {
        mark.tokens = decode ? (clear ? 1 : 0) : std::max<std::int64_t>(prompt, 0);
        length = decode ? length + mark.tokens : prompts == 1 ? row.prompt_tokens : 0;
        mark.context = clear || !decode ? length : 0;
        mark.range_id = batch_of(event);
      }
      sink_.add(mark);
    }
  }

  // The mark that stands for a batch: when it was scheduled.
  trace::Id batch_of(const Event& event) {
    trace::Id& id = batches_[{event.thread, event.batch.id}];
    if (id != 0) return id;
    id = sink_.new_id();
    trace::RangeRow row{.id = id, .begin_ns = event.ts_ns, .end_ns = event.ts_ns};
    row.name = sink_.name(fmt::format("schedule {} bs={}", sink_.names().text(event.mode), event.batch_size));
    row.kind = sink_.name("mark");
    row.process_id = event.process, row.thread_id = event.thread;
    row.category = sink_.name(fmt::format("batch {}", sink_.names().text(event.batch)));
    row.payload = event.batch_size;
    row.source = sink_.name("otel");
    sink_.add(row);
    return id;
  }

  JsonValues values_;
  Sink& sink_;
  std::optional<Experiment> vllm_experiment_, sglang_experiment_;
  std::map<std::uint64_t, Served> served_;  // by the span of the request
  std::unordered_map<std::uint64_t, std::uint64_t> parents_;
  std::unordered_map<std::uint64_t, Lane> lane_of_span_;
  std::map<std::string, Lane> lanes_;
  std::map<std::string, trace::Id> processes_;
  std::map<std::pair<trace::Id, std::uint32_t>, trace::Id> batches_;
  std::vector<Event> events_;
  std::int64_t spans_ = 0, requests_ = 0, vllm_ = 0, ignored_ = 0, too_many_ = 0;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace otel

extern const Importer kOtel;
const Importer kOtel{"otel", "OpenTelemetry spans of vLLM or SGLang, OTLP JSON", Role::kReadings, otel::sniff, otel::parse};

}  // namespace llmprof::importers

#include "importers/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "importers/json_values.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kMostSettings = 32 << 10;

}  // namespace

const Meaning* meaning_of(std::span<const Meaning> table, std::string_view metric) {
  const auto found = std::ranges::find(table, metric, &Meaning::metric);
  return found == table.end() ? nullptr : &*found;
}

Experiment::Experiment(Sink& sink, std::string_view tool, std::string_view name, std::string_view model,
                       const base::Json& settings)
    : sink_(sink), id_(sink.new_id()), source_(sink.name(tool)) {
  trace::ExperimentRow row{.id = id_, .tool = source_};
  row.name = sink.name(name);
  row.model = sink.name_or_null(model);
  if (settings.is_object() && !settings.empty()) row.settings = sink.name(base::to_line(settings).substr(0, kMostSettings));
  sink.add(row);
}

void Experiment::figure(const Meaning& meaning, std::string_view statistic, double value,
                        std::optional<trace::Id> request) {
  if (!std::isfinite(value)) return;
  trace::ReportedFigureRow row{.id = sink_.new_id(), .experiment_id = id_, .value = value};
  if (request) row.request_id = *request;
  row.metric = sink_.name(meaning.metric);
  row.key = sink_.name_or_null(meaning.key);
  row.statistic = sink_.name(statistic);
  row.unit = sink_.name_or_null(meaning.unit);
  row.definition = sink_.name_or_null(meaning.definition);
  sink_.add(row);
}

void Experiment::figure(const Meaning& meaning, std::string_view statistic, const base::Json* value,
                        std::optional<trace::Id> request) {
  if (value == nullptr) return;
  if (const std::optional<double> known = as_number(*value)) figure(meaning, statistic, *known, request);
}

trace::Id Experiment::request(const ClientRequest& request) {
  const std::int64_t sent_ns = request.sent_ns.value_or(0);
  const auto at = [&](std::optional<std::int64_t> after_ns) -> std::optional<std::int64_t> {
    std::int64_t sum = 0;
    if (!after_ns || __builtin_add_overflow(sent_ns, *after_ns, &sum)) return std::nullopt;
    return sum;
  };
  trace::RequestRow row{.id = sink_.new_id(), .source = source_};
  row.name = sink_.name_or_null(request.name);
  row.arrival_ns = sent_ns;
  row.arrival_seen = false;  // a file says when it was sent, not when that was due
  row.sent_ns = sent_ns;
  const auto set = [&](auto& column, std::optional<std::int64_t> after_ns) {
    if (const auto moment = at(after_ns)) column = *moment;
  };
  set(row.first_token_ns, request.first_ns);
  set(row.last_token_ns, request.last_ns);
  set(row.end_ns, request.end_ns);
  row.prompt_tokens = std::max<std::int64_t>(request.prompt_tokens, 0);
  row.output_tokens = std::max<std::int64_t>(request.output_tokens, 0);
  if (request.cached_tokens) row.cached_tokens = *request.cached_tokens;
  row.status = sink_.name(!request.status.empty() ? request.status : request.error.empty() ? "finished" : "error");
  row.error = sink_.name_or_null(request.error);
  row.warm_up = request.warm_up;
  row.experiment_id = id_;
  row.placed = request.sent_ns.has_value();
  sink_.add(row);
  const bool clear = std::ssize(request.messages_ns) == request.output_tokens;
  if (!clear && !request.messages_ns.empty()) ++unclear_;
  std::int32_t place = 0;
  for (const std::int64_t message_ns : request.messages_ns) {
    trace::RequestTokenRow message{.request_id = row.id, .number = place++};
    message.ts_ns = at(message_ns).value_or(sent_ns);
    message.tokens = clear ? 1 : 0;
    sink_.add(message);
  }
  return row.id;
}

void Experiment::note_unplaced(Sink& sink, std::int64_t requests) {
  if (requests == 0) return;
  sink.note("requests", fmt::format("The file does not say when its {} requests were sent: the times of each count from "
                                    "its own send, and nothing is known of which were under way together.",
                                    requests));
}

base::Json settings_of(const base::Json& object, std::span<const std::string_view> left_out) {
  base::Json out = base::Json::object();
  for (const auto& [key, value] : object.items()) {
    if (value.is_structured() || value.is_null() || std::ranges::find(left_out, key) != left_out.end()) continue;
    out[key] = value;
  }
  return out;
}

}  // namespace llmprof::importers

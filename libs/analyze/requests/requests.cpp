#include "analyze/requests/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>

#include "analyze/requests/answers.h"
#include "analyze/rows_of.h"
#include "analyze/sections/sections.h"

namespace llmprof::analyze {
namespace {

constexpr double kLeastCovered = 0.95;  // of the steps' time, by readings of energy

std::optional<std::int64_t> between(std::optional<std::int64_t> from, std::optional<std::int64_t> to) {
  if (!from || !to || *to < *from) return std::nullopt;
  return *to - *from;
}

void complete(RequestFigures& request) {
  const auto arrival = request.arrival_seen ? std::optional(request.arrival_ns) : std::nullopt;
  request.queue_ns = between(arrival, request.scheduled_ns);
  request.prefill_ns = between(request.scheduled_ns, request.first_token_ns);
  request.ttft_ns = between(arrival, request.first_token_ns);
  request.decode_ns = between(request.first_token_ns, request.last_token_ns);
  if (request.decode_ns && request.output_tokens > 1)
    request.tpot_ns = *request.decode_ns / (request.output_tokens - 1);
  request.e2e_ns = between(arrival, request.last_token_ns ? request.last_token_ns : request.end_ns);
}

struct Latency {
  const char* metric;
  const char* definition;
  std::function<std::optional<std::int64_t>(const RequestFigures&)> of;
};

const std::vector<Latency>& latencies() {
  static const std::vector<Latency> all = {
      {"queue", "arrival to first step", [](const RequestFigures& r) { return r.queue_ns; }},
      {"prefill", "first step to first token", [](const RequestFigures& r) { return r.prefill_ns; }},
      {"TTFT", "arrival to first token", [](const RequestFigures& r) { return r.ttft_ns; }},
      {"TPOT", "(last token - first token) / (output tokens - 1)", [](const RequestFigures& r) { return r.tpot_ns; }},
      {"TTFT sent", "send to first token",
       [](const RequestFigures& r) { return r.arrival_seen ? std::nullopt : between(r.sent_ns, r.first_token_ns); }},
      {"E2E sent", "send to last token",
       [](const RequestFigures& r) { return r.arrival_seen ? std::nullopt : between(r.sent_ns, r.last_token_ns); }},
      {"decode", "first token to last", [](const RequestFigures& r) { return r.decode_ns; }},
      {"E2E", "arrival to last token", [](const RequestFigures& r) { return r.e2e_ns; }},
      {"stalled", "longer than steps without prompts, while it decoded",
       [](const RequestFigures& r) { return r.stalled_ns; }},
  };
  return all;
}

std::int64_t quantile(const std::vector<std::int64_t>& sorted, double q) {
  return sorted[static_cast<std::size_t>(quantile_rank(std::ssize(sorted), q) - 1)];
}

void add_latencies(const std::vector<RequestFigures>& requests, std::vector<RequestLatency>& out) {
  for (const Latency& latency : latencies()) {
    std::vector<std::int64_t> values;
    for (const RequestFigures& request : requests) {
      if (const auto value = latency.of(request); value && !request.warm_up) values.push_back(*value);
    }
    if (values.empty()) continue;
    std::ranges::sort(values);
    if (values.back() == 0 && std::string_view(latency.metric) == "stalled") continue;
    double sum = 0;
    for (const std::int64_t value : values) sum += static_cast<double>(value);
    out.push_back({requests.front().source, latency.metric, latency.definition,
                   static_cast<std::int64_t>(values.size()), sum / static_cast<double>(values.size()),
                   quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99), values.back()});
  }
}

void add_up(Requests& all) {
  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  const auto add = [](std::optional<std::int64_t>& sum, std::optional<std::int64_t> value) {
    if (value) sum = sum.value_or(0) + *value;
  };
  for (const RequestFigures& request : all.all) {
    if (request.warm_up) {
      ++all.warm_up;
      continue;
    }
    ++all.count;
    const bool good = request.status == "finished" || request.status == "length";
    (request.status.empty() ? all.unfinished : good ? all.finished : all.failed) += 1;
    all.prompt_tokens += request.prompt_tokens;
    all.output_tokens += request.output_tokens;
    add(all.cached_tokens, request.cached_tokens);
    add(all.preemptions, request.preemptions);
    add(all.stalled_ns, request.stalled_ns);
    first_ns = std::min(first_ns, request.arrival_ns);
    for (const auto& moment : {request.end_ns, request.last_token_ns})
      last_ns = std::max(last_ns, moment.value_or(last_ns));
  }
  if (all.cached_tokens && all.prompt_tokens > 0)
    all.cached_share = static_cast<double>(*all.cached_tokens) / static_cast<double>(all.prompt_tokens);
  if (last_ns <= first_ns || !std::ranges::all_of(all.all, &RequestFigures::placed)) return;
  all.duration_ns = last_ns - first_ns;
  const double seconds = static_cast<double>(all.duration_ns) * 1e-9;
  all.requests_per_s = static_cast<double>(all.finished) / seconds;
  all.output_tokens_per_s = static_cast<double>(all.output_tokens) / seconds;
}

struct UseRow {  // of the question requests_use
  std::int64_t who = 0;
  std::int64_t products_ns = 0, weights_ns = 0, attention_ns = 0, head_ns = 0, copies_ns = 0, idle_ns = 0, other_ns = 0;
  std::int64_t tokens = 0, steps = 0;
};

void add_use(const std::vector<UseRow>& rows, Requests& all) {
  static constexpr std::array<std::int64_t UseRow::*, kWorkKinds.size()> kColumns = {
      &UseRow::products_ns, &UseRow::weights_ns, &UseRow::attention_ns, &UseRow::head_ns,
      &UseRow::copies_ns,   &UseRow::idle_ns,    &UseRow::other_ns};
  std::int64_t tokens = 0, padding = 0;
  for (const UseRow& row : rows) {
    all.steps = std::max(all.steps, row.steps);  // the engine has a row in every step
    (row.who == 2 ? padding : tokens) += row.tokens;
    if (row.who != 2) all.computed_tokens = all.computed_tokens.value_or(0) + row.tokens;
  }
  for (std::size_t i = 0; i < kWorkKinds.size(); ++i) {
    RequestUse use{.work = kWorkKinds[i].work, .rule = kWorkKinds[i].rule};
    for (const UseRow& row : rows)
      (row.who == 0 ? use.prefill_ns : row.who == 1 ? use.decode_ns : use.engine_ns) += row.*kColumns[i];
    use.requests_ns = use.prefill_ns + use.decode_ns;
    all.requests_ns += use.requests_ns;
    all.engine_ns += use.engine_ns;
    if (use.requests_ns + use.engine_ns > 0) all.use.push_back(std::move(use));
  }
  all.steps_ns = all.requests_ns + all.engine_ns;
  if (all.steps_ns == 0) return;
  for (RequestUse& use : all.use)
    use.share = static_cast<double>(use.requests_ns + use.engine_ns) / static_cast<double>(all.steps_ns);
  all.engine_share = static_cast<double>(all.engine_ns) / static_cast<double>(all.steps_ns);
  if (tokens + padding > 0) all.padding_share = static_cast<double>(padding) / static_cast<double>(tokens + padding);
}

// Joules of each step, shared as its time is.
Result<void> add_energy(const trace::Run& run, const AnalysisContext& analysis, Requests& all) {
  LLMPROF_LET(const DeviceEnergy energy, device_energy(run, analysis));
  if (energy.devices.empty()) {
    all.energy_why = energy.why;
    return {};
  }
  std::unordered_map<std::int64_t, double> joules;  // by request; 0 is the engine
  double covered_ns = 0, steps_ns = 0;
  std::int64_t step_id = 0;
  double step_j = 0, step_ns = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  const auto close = [&] {
    for (const auto& [request, ns] : parts) {
      if (step_ns > 0) joules[request] += step_j * static_cast<double>(ns) / step_ns;
    }
    parts.clear();
    step_ns = 0;
  };
  std::vector<EnergyCursor> cursors;
  for (const EnergySegments& device : energy.devices) cursors.emplace_back(device);
  LLMPROF_LET(const trace::Columns rows, ask_columns(run, "requests_step_parts"));
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    if (rows.values[0][i] != step_id) {
      close();
      step_id = rows.values[0][i], step_j = 0;
      const Window window{rows.values[1][i], rows.values[2][i]};
      steps_ns += static_cast<double>(window.end_ns - window.begin_ns) * static_cast<double>(cursors.size());
      for (EnergyCursor& cursor : cursors) {
        const EnergyOver over = cursor.over(window);
        step_j += over.joules, covered_ns += static_cast<double>(over.covered_ns);
      }
    }
    parts.emplace_back(rows.values[3][i], rows.values[4][i]);
    step_ns += static_cast<double>(rows.values[4][i]);
  }
  close();
  if (covered_ns < kLeastCovered * steps_ns) {
    all.energy_why =
        fmt::format("readings cover {:.0f} % of the steps' time", steps_ns > 0 ? 100 * covered_ns / steps_ns : 0);
    return {};
  }
  double sum = 0;
  for (const auto& [request, part] : joules) sum += part;
  all.energy_j = sum;
  all.energy_engine_j = joules[0];
  if (all.output_tokens > 0) all.joules_per_1k_tokens = sum * 1000 / static_cast<double>(all.output_tokens);
  for (RequestFigures& request : all.all) {
    if (const auto found = joules.find(request.id); found != joules.end()) request.energy_j = found->second;
  }
  return {};
}

// The engine knows best when a step began; a client, what its user saw.
std::string first_source(const std::map<std::string, std::vector<RequestFigures>>& by_source) {
  for (const char* source : {"server", "client"}) {
    if (by_source.contains(source)) return source;
  }
  return by_source.begin()->first;
}

// Its client knows which requests only warmed the server up.
void share_warm_up(const std::vector<RequestFigures>& client, std::vector<RequestFigures>& server) {
  std::unordered_map<std::string_view, bool> warm_up;
  for (const RequestFigures& request : client) {
    if (request.warm_up) warm_up[request.name] = true;
  }
  for (RequestFigures& request : server) request.warm_up |= warm_up.contains(request.name);
}

// 0: one clock; nullopt: runs were merged whose clocks nothing aligns.
Result<std::optional<std::int64_t>> clock_error(const trace::Run& run) {
  struct Clocks {
    std::int64_t unknown = 0;
    std::optional<std::int64_t> error_ns;
  };
  LLMPROF_LET(const Clocks clocks, ask_row<Clocks>(run, "requests_clocks"));
  if (clocks.unknown > 0) return std::optional<std::int64_t>();
  return std::optional(clocks.error_ns.value_or(0));
}

// What is asked of the requests of an engine.
Result<void> answer(const trace::Run& run, const AnalysisContext& analysis, const RequestOptions& options,
                    Requests& all) {
  add_cost(options.price_per_hour, analysis.job.devices_of_rank(), all);
  add_amounts(all);
  if (run.info().source == "predict") return {};
  serving::EngineDevice device;
  if (!analysis.devices.empty())
    device.memory_bytes = static_cast<double>(analysis.devices.front().memory_bytes),
    device.name = analysis.devices.front().name;
  LLMPROF_LET(const Served served, read_served(run, options.engine, device));
  if (served.rules && !served.rules->enable_prefix_caching) all.cached_tokens.reset(), all.cached_share.reset();
  add_slow_ttft(served, all);
  if (run.info().window.empty()) add_replay(served, all);
  return {};
}

}  // namespace

Result<std::vector<RequestFigures>> request_figures(const trace::Run& run) {
  LLMPROF_LET(std::vector<RequestFigures> rows, ask_rows<RequestFigures>(run, "requests_rows"));
  for (RequestFigures& row : rows) complete(row);
  return rows;
}

Result<Requests> requests_of(const trace::Run& run, const AnalysisContext& analysis, const RequestOptions& options) {
  Requests all;
  LLMPROF_LET(std::vector<RequestFigures> rows, request_figures(run));
  if (rows.empty()) return all;
  std::map<std::string, std::vector<RequestFigures>> by_source;
  for (RequestFigures& row : rows) by_source[row.source].push_back(std::move(row));
  all.source = first_source(by_source);
  const bool both_sides = all.source == "server" && by_source.contains("client");
  if (both_sides) share_warm_up(by_source["client"], by_source["server"]);
  add_latencies(by_source[all.source], all.latencies);
  for (const auto& [source, requests] : by_source) {
    if (source != all.source) add_latencies(requests, all.latencies);
  }
  all.all = std::move(by_source[all.source]);
  add_up(all);
  if (both_sides) {
    LLMPROF_LET(const std::optional<std::int64_t> error_ns, clock_error(run));
    add_sides(by_source["client"], error_ns, all);
  }
  LLMPROF_LET(const std::vector<UseRow> use, ask_rows<UseRow>(run, "requests_use"));
  add_use(use, all);
  struct Blocks {
    std::optional<double> kv_peak_share, kv_mean_share;
  };
  LLMPROF_LET(const Blocks blocks, ask_row<Blocks>(run, "requests_blocks"));
  all.kv_peak_share = blocks.kv_peak_share, all.kv_mean_share = blocks.kv_mean_share;
  if (all.steps > 0) LLMPROF_TRY(add_energy(run, analysis, all));
  LLMPROF_TRY(answer(run, analysis, options, all));
  return all;
}

}  // namespace llmprof::analyze

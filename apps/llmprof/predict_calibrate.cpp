#include "predict_calibrate.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "analyze/names/grammar.h"
#include "base/strings.h"
#include "base/version.h"
#include "predict/deployment.h"
#include "predict/measured/calibration.h"
#include "predict/tables/read_tables.h"
#include "report/predict.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

// Steady steps that another follows, with what their names say of their batches.
constexpr std::string_view kSteps = R"(
WITH graphs AS (SELECT DISTINCT step_id FROM launch_place WHERE step_id IS NOT NULL),
steps AS (SELECT *, lead(begin_ns) OVER (PARTITION BY thread_id ORDER BY begin_ns) AS next_ns FROM step)
SELECT s.stage, s.batch, coalesce(s.rows, s.batch * s.tokens) AS new_tokens,
  coalesce(s.contexts, s.batch * s.context) AS attended, g.step_id IS NOT NULL AS graph, s.next_ns - s.begin_ns AS ns,
  coalesce(r.name, '') AS name
FROM steps s LEFT JOIN graphs g ON g.step_id = s.id LEFT JOIN range r ON r.id = s.range_id
WHERE s.stage IN ('prefill', 'decode', 'mixed') AND s.next_ns IS NOT NULL AND NOT coalesce(s.warm_up, false)
ORDER BY s.id)";

// Requests of a step that are alike: how many, their new tokens and their lengths, of all.
struct Group {
  long requests = 0, tokens = 0, lengths = 0;
};
struct Parts {
  Group prompts, decodes;
};

// Both groups, as vLLM names its steps.
std::optional<Parts> parts_of(const std::string& name) {
  Parts out;
  const int read =
      std::sscanf(name.c_str(), "execute_%*d_context_%ld(sq%ldsk%ldsqsq%*dsqsk%*d)_generation_%ld(sq%ldsk%ld",
                  &out.prompts.requests, &out.prompts.tokens, &out.prompts.lengths, &out.decodes.requests,
                  &out.decodes.tokens, &out.decodes.lengths);
  return read == 6 ? std::optional(out) : std::nullopt;
}

// nullopt: what is in the step is not known well enough.
std::optional<Parts> parts_of(const std::vector<trace::Value>& row) {
  const auto batch = row[1].maybe_int(), tokens = row[2].maybe_int(), lengths = row[3].maybe_int();
  if (std::optional<Parts> named = parts_of(row[6].text)) return named;
  if (!batch || !tokens || !lengths || *batch < 1 || *tokens < *batch) return std::nullopt;
  Parts out;
  const Group all{*batch, *tokens, std::max(*lengths, *tokens)};
  if (row[0].text == "decode" && *tokens == *batch) {
    out.decodes = all;
  } else if (row[0].text == "prefill") {
    out.prompts = all;
  } else {
    return std::nullopt;
  }
  return out;
}

// Requests of a group are taken as equally long: their sum is known.
serving::Batch batch_of(const Parts& parts, bool graph) {
  serving::Batch batch;
  const Group &p = parts.prompts, &d = parts.decodes;
  for (long i = 0; i < p.requests; ++i)
    batch.chunks.push_back({std::max(1L, p.tokens / p.requests), std::max(0L, (p.lengths - p.tokens) / p.requests)});
  if (d.requests > 0) batch.contexts.assign(static_cast<std::size_t>(d.requests), std::max(1L, d.lengths / d.requests));
  batch.sampled = batch.requests();
  batch.padded_tokens = batch.tokens();
  // A prompt that nothing was computed of is new.
  if (p.lengths == p.tokens) batch.new_requests = p.requests;
  if (graph) batch.launch = p.requests > 0 ? serving::Launch::kPiecewise : serving::Launch::kGraph;
  return batch;
}

struct Observed {
  std::vector<predict::ObservedStep> steps;
  std::int64_t unknown = 0;
};

Result<Observed> observe(const trace::Run& run, predict::TableStepCost& cost) {
  constexpr long kMostRequests = 65'536;
  LLMPROF_LET(const trace::ResultTable table, run.query(std::string(kSteps)));
  Observed out;
  for (const auto& row : table.rows) {
    const std::optional<Parts> parts = parts_of(row);
    const bool sane = parts && parts->prompts.requests >= 0 && parts->decodes.requests >= 0 &&
                      parts->prompts.requests + parts->decodes.requests > 0 &&
                      parts->prompts.requests + parts->decodes.requests < kMostRequests;
    if (!sane) {
      ++out.unknown;
      continue;
    }
    const serving::Batch batch = batch_of(*parts, row[4].as_int() != 0);
    out.steps.push_back({.device_ns = cost.of(batch).device_ns,
                         .took_ns = row[5].as_double(),
                         .requests = batch.requests(),
                         .new_requests = batch.new_requests});
  }
  return out;
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Whether the engine prepares steps ahead: by its version and settings, where these were given.
Result<bool> schedules_ahead(const Arguments& arguments, const hw::Device& device) {
  if (!arguments.given("--serving")) return false;
  LLMPROF_LET(serving::EngineRules rules,
              serving::engine_rules(arguments.get("--serving"),
                                             {static_cast<double>(device.memory_bytes), device.name, 0}));
  for (const std::string& setting : arguments.all("--set")) LLMPROF_TRY(serving::set_rule(rules, setting));
  return rules.async_scheduling;
}

struct Subject {
  OpenedRun opened;
  predict::ServingInput input;
};

Result<Subject> subject_of(const Arguments& arguments, const std::string& name) {
  LLMPROF_LET(OpenedRun opened, open_page(arguments, name, progress_line()));
  const analyze::Summary& summary = opened.page.summary;
  const auto refuse = [&](std::string why, std::string hint) {
    return Error{ErrorCode::kUsage, fmt::format("{}: {}", opened.page.run, why), std::move(hint)};
  };
  if (!opened.run.info().prediction.empty())
    return refuse("it is a prediction itself", "--calibrate wants a recorded run");
  if (summary.model.empty()) return refuse("its model is not known: " + summary.model_why, "--model NAME|PATH says it");
  if (summary.devices.empty()) return refuse("it names no device", "");
  if (summary.busy_devices > 1 && !arguments.given("--tp"))
    return refuse("it used several devices", "--tp N says how many of them share the model's layers");
  predict::ServingInput input;
  LLMPROF_LET(input.config, model::parse_config(summary.model, opened.page.run));
  LLMPROF_TRY(model::set_types(input.config, {.weights = arguments.get("--dtype"), .kv = arguments.get("--kv-dtype")}));
  if (arguments.given("--tp")) {
    LLMPROF_LET(input.parallel.tensor, number_in<std::int64_t>(arguments, "--tp", "a number of ranks", 1, 4096));
  }
  std::string device = summary.devices.front().name;
  for (const auto& each : summary.devices) {
    if (each.kind == "gpu") device = each.name;
  }
  LLMPROF_LET(input.device, hw::resolve_device(device));
  return Subject{std::move(opened), std::move(input)};
}

}  // namespace

Result<std::string> calibrate_page(const Arguments& arguments) {
  LLMPROF_LET(Subject subject, subject_of(arguments, arguments.get("--calibrate")));
  predict::ServingInput& input = subject.input;
  const predict::TablesKey key{input.device.device, input.config, input.parallel.tensor,
                               predict::kept_type(input.config, input.device.device, arguments.get("--dtype"))};
  const predict::TimesOf times = arguments.on("--eager") ? predict::TimesOf::kKernels : predict::TimesOf::kInGraph;
  if (arguments.given("--tables")) {
    LLMPROF_LET(input.tables, predict::read_tables(arguments.get("--tables"), input.parallel.tensor));
  } else {
    LLMPROF_LET(input.tables, predict::kept_tables(key, times));
  }
  LLMPROF_LET(const std::unique_ptr<predict::TableStepCost> cost, predict::step_cost_of(input));
  LLMPROF_LET(const Observed observed, observe(subject.opened.run, *cost));
  LLMPROF_LET(const bool async, schedules_ahead(arguments, input.device.device));
  Result<predict::Calibration> fitted = predict::fit_calibration(observed.steps, async);
  if (!fitted) {
    return Error{
        fitted.error().code, fmt::format("{}: {}", subject.opened.page.run, fitted.error().message),
        fmt::format("{}; {} of its steps do not say what is in their batches", fitted.error().hint, observed.unknown)};
  }
  predict::Calibration& calibration = *fitted;
  calibration.run = std::string(base::base_name(subject.opened.page.run));
  calibration.times = times;
  calibration.date = now(), calibration.llmprof_version = std::string(base::version());
  calibration.tables = predict::whole_path(input.tables.source.folder);
  calibration.tables_date = predict::tables_date(calibration.tables);
  report::CalibrationPage page{.document = predict::document_of(calibration, input)};
  page.document.unknown_steps = observed.unknown;
  LLMPROF_LET(page.document.kept, predict::keep_calibration(key, calibration));
  return laid_out(page, arguments, "llmprof.predict_calibration");
}

}  // namespace llmprof::app

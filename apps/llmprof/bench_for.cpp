// llmprof bench --for MODEL: operator tables for predictions.

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/human.h"
#include "base/text_table.h"
#include "bench_verb.h"
#include "hw/peaks.h"
#include "model/checkpoint/open_model.h"
#include "predict/measured/for_model.h"
#include "predict/measured/store.h"
#include "record/open_run.h"
#include "record/record.h"
#include "record_verb.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(message), std::move(hint)};
}

Result<std::int64_t> size_of(const Arguments& arguments, std::string_view flag) {
  if (!arguments.given(flag)) return std::int64_t{0};
  const auto size = base::parse_count(arguments.get(flag));
  if (size && *size >= 1 && *size <= 1 << 20) return size;
  return usage(fmt::format("{} wants a whole number from 1 to 1M, not '{}'", flag, arguments.get(flag)));
}

Result<void> check_alone(const Arguments& arguments) {
  if (!arguments.positionals.empty()) {
    return usage("--for measures what the model needs: it takes no operator", "llmprof bench --like MODEL takes some");
  }
  for (const char* flag : {"--cache", "--impl"}) {
    if (arguments.typed(flag)) return usage(fmt::format("--for does not take {}: each operator has its own", flag));
  }
  for (const Option& option : axis_options()) {
    if (arguments.given(option.flag)) {
      return usage(fmt::format("{}: with --for the model says it", option.flag),
                   "--for takes --max-tokens, --max-batch and --max-context");
    }
  }
  return {};
}

// The model with the type it is to be run with.
Result<model::Config> config_for(const std::string& name, const std::string& type) {
  LLMPROF_LET(model::OpenedModel opened, model::open_model(name));
  if (!type.empty()) LLMPROF_TRY(model::set_types(opened.config, {.weights = type}));
  return std::move(opened.config);
}

Result<std::string> one_type(const Arguments& arguments, bench::DeviceKind device) {
  LLMPROF_LET(const std::vector<bench::Type> types, types_in(arguments));
  if (types.size() > 1) return usage("--for takes one --dtype: tables are of one type");
  if (types.empty()) return std::string();
  if (device == bench::DeviceKind::kCpu && types.front() != bench::Type::kFloat32) {
    return usage(fmt::format("--dtype {}: on a CPU tables are of float32", bench::type_name(types.front())));
  }
  return std::string(bench::type_name(types.front()));
}

struct Span {
  std::int64_t points = 0;
  const predict::MeasuredRow *first = nullptr, *last = nullptr;
};

std::string place_text(const predict::MeasuredRow& row) {
  std::string text;
  for (const double at : row.at) text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ", at);
  return text;
}

std::string text_of(const predict::MeasuredTables& tables) {
  std::map<std::string, Span> spans;
  std::vector<std::string> order;
  for (const predict::MeasuredRow& row : tables.rows) {
    Span& span = spans[row.op];
    if (span.points++ == 0) order.push_back(row.op);
    if (span.first == nullptr || row.at < span.first->at) span.first = &row;
    if (span.last == nullptr || span.last->at < row.at) span.last = &row;
  }
  base::TextTable table({{"part", base::Align::kLeft},
                         {"points"},
                         {"from", base::Align::kLeft},
                         {"time"},
                         {"to", base::Align::kLeft},
                         {"time"}});
  for (const std::string& part : order) {
    const Span& span = spans[part];
    table.add({part, fmt::format("{}", span.points), place_text(*span.first), base::human_ns(span.first->kernels_ns),
               place_text(*span.last), base::human_ns(span.last->kernels_ns)});
  }
  return table.render();
}

void print_tables(const predict::MeasuredTables& tables) {
  fmt::print("Operator tables of {} on {}, tensor parallelism {}\n\n{}\n", base::printable(tables.model),
             base::printable(tables.device), tables.tensor, text_of(tables));
  fmt::print(
      "  Places: tokens of a step; of lm_head and sampler, sequences; of moe, tokens and active experts; of\n"
      "  attention, tokens of a chunk, tokens before it, decodes, context of each. Times: of the kernels of one "
      "call.\n");
  const predict::LaunchCosts& launch = tables.launch;
  if (!launch.source.empty()) {
    fmt::print("  A launch takes the host {}; an empty kernel follows another after {}, inside a graph after {}.\n",
               base::human_ns(launch.launch_ns), base::human_ns(launch.queued_ns),
               base::human_ns(launch.graph_node_ns));
  }
  for (const std::string& note : tables.notes) fmt::print("  {}\n", base::printable(note));
  if (tables.skipped > 0) {
    fmt::print(
        "  {} points were not measured; `llmprof query RUN \"SELECT op, name, reason FROM bench WHERE status <> "
        "'measured'\"` says why.\n",
        tables.skipped);
  }
}

// The device that was measured, as it stands in the run: what its fingerprint is of.
Result<hw::Device> device_in(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query("SELECT kind, name, coalesce(chip, ''), units, memory_bytes FROM device WHERE id IN "
                        "(SELECT device_id FROM bench)"));
  if (table.rows.size() != 1) return Error{ErrorCode::kCorruptInput, run.folder() + ": no device was measured", ""};
  const auto& row = table.rows.front();
  hw::Device device;
  device.kind = row[0].text;
  device.name = row[1].text;
  device.chip = row[2].text;
  device.units = row[3].as_int();
  device.memory_bytes = row[4].as_int();
  return device;
}

Result<std::string> keep(const trace::Run& run, predict::MeasuredTables& tables) {
  LLMPROF_LET(const model::Config config, config_for(tables.model, ""));
  LLMPROF_LET(const hw::Device device, device_in(run));
  tables.dtype = predict::kept_type(config, device, tables.dtype);
  std::error_code unknown;
  const auto whole = std::filesystem::absolute(run.folder(), unknown);  // the tables outlive this working directory
  if (!unknown) tables.run = whole.string();
  return predict::keep_tables({.device = device, .config = config, .tensor = tables.tensor, .type = tables.dtype},
                              tables);
}

}  // namespace

Result<BenchPlan> plan_for(const Arguments& arguments) {
  LLMPROF_TRY(check_alone(arguments));
  predict::ForRequest request;
  request.device = bench::kind_of_device(arguments.get("--device"));
  LLMPROF_LET(const std::string type, one_type(arguments, request.device));
  LLMPROF_LET(request.config, config_for(arguments.get("--for"), type));
  LLMPROF_LET(request.parallel.tensor, number_in<std::int64_t>(arguments, "--tp", "a number from 1 to 1024", 1, 1024));
  LLMPROF_LET(request.max_tokens, size_of(arguments, "--max-tokens"));
  LLMPROF_LET(request.max_batch, size_of(arguments, "--max-batch"));
  LLMPROF_LET(request.max_context, size_of(arguments, "--max-context"));
  LLMPROF_LET(predict::ForPlan plan, predict::plan_for_model(std::move(request)));
  return BenchPlan{std::move(plan.points), std::move(plan.left_out)};
}

Result<bench::BenchOptions> for_options(const Arguments& arguments, bench::BenchOptions options, std::size_t points) {
  double budget_seconds = predict::default_budget_seconds(bench::kind_of_device(arguments.get("--device")));
  if (arguments.given("--budget")) {
    LLMPROF_LET(const std::int64_t ns, record::parse_duration(arguments.get("--budget")));
    budget_seconds = static_cast<double>(ns) * 1e-9;
  }
  const bench::BenchOptions within = predict::options_within(budget_seconds, points);
  const bench::MeasureSettings given = options.measure;
  options.measure = within.measure;
  if (arguments.typed("--limit")) options.measure.limit_seconds = given.limit_seconds;
  if (arguments.typed("--min-samples")) options.measure.least_samples = given.least_samples;
  if (arguments.typed("--spread")) options.measure.relative_spread = given.relative_spread;
  options.small_checks = within.small_checks;
  options.graph_seconds = within.graph_seconds;
  fmt::print(stderr, "llmprof: {} points in about {}\n", points, base::human_ns(budget_seconds * 1e9));
  return options;
}

Result<bool> keep_and_show_tables(const std::string& run_folder, bool print) {
  LLMPROF_LET(const trace::Run run, record::open_run(run_folder, progress_line()));
  if (!predict::for_command(run.info().command)) return false;
  LLMPROF_LET(predict::MeasuredTables tables, predict::measured_tables(run));
  const Result<std::string> kept = keep(run, tables);
  if (print) print_tables(tables);
  if (kept) {
    fmt::print(stderr, "llmprof: the tables are kept in {}\n", base::printable(*kept));
  } else {  // the run has them all the same
    fmt::print(stderr, "llmprof: the tables were not kept: {}\n", base::printable(kept.error().message));
  }
  return true;
}

}  // namespace llmprof::app

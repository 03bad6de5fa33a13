#include "predict/step_backtests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <set>
#include <span>

#include "base/asset.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"
#include "hw/catalog.h"
#include "importers/input.h"
#include "model/model.h"
#include "predict/implementation/as_json.h"
#include "predict/implementation/price.h"
#include "predict/tables/backtest.h"
#include "predict/tables/read_tables.h"

namespace llmprof::predict_backtests {
std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::predict {
namespace {

constexpr std::uint64_t kMostFileBytes = 256u << 20;
constexpr std::string_view kMeasured = "measured_steps.jsonl", kImplementation = "implementation.json",
                           kKernels = "kernels.jsonl", kConfig = "config.json", kMeta = "meta.json";

using Files = std::map<std::string, std::string>;

std::string without_packing(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".zst")) name.remove_suffix(4);
  return std::string(name);
}

const std::string* find(const Files& files, std::string_view name) {
  const auto found = files.find(std::string(name));
  return found == files.end() ? nullptr : &found->second;
}

double parameters_of(const model::Config& config) {
  return static_cast<double>(model::parameters(model::Graph(config)));
}

std::string name_of(const model::Config& config, const std::string& device) {
  return fmt::format("{} of {} parameters, {}", config.family, base::human_count(parameters_of(config)),
                     device.empty() ? "an unknown device" : device);
}

std::string words_of(const MeasuredSteps& steps) {
  return fmt::format("{} of {} sequences in {}", steps.stage, steps.batch, steps.from.empty() ? "a run" : steps.from);
}

Error nothing_left(const StepBacktest& backtest) {
  return usage_error("none of the measured steps can be predicted: {}",
                     backtest.notes.empty() ? "there are none" : backtest.notes.front());
}

// Steps as batches of a model, for tables.
Batch batch_of(const MeasuredSteps& steps) {
  const StepSize size = steps.size();
  const std::int64_t tokens = std::max<std::int64_t>(1, size.rows / size.batch),
                     context = std::max(tokens, size.contexts / size.batch);
  Batch batch;
  const auto sequences = static_cast<std::size_t>(size.batch);
  if (steps.stage == "prefill") {
    batch.chunks.assign(sequences, Chunk{tokens, context - tokens});
    batch.new_requests = size.batch;
  } else {
    batch.contexts.assign(sequences, context);
  }
  batch.sampled = size.batch;
  batch.padded_tokens = batch.tokens();
  batch.launch = steps.graph ? Launch::kGraph : Launch::kEager;
  return batch;
}

Result<StepBacktest> backtest_tables(Deployment deployment, OperatorTables tables,
                                     const std::vector<MeasuredSteps>& measured) {
  const bool with_tables = !tables.empty();
  LLMPROF_LET(const ServingInput input, serving_input(deployment, std::move(tables)));
  LLMPROF_LET(const std::unique_ptr<TableStepCost> cost, step_cost_of(input));
  const std::vector<OperatorError> operators = backtest_operators(*cost);
  StepBacktest out{.name = name_of(input.config, deployment.device), .device = deployment.device};
  out.basis = with_tables ? "operator tables" : "the roof alone";
  out.parameters = parameters_of(input.config);
  for (const MeasuredSteps& each : measured) {
    const Batch batch = batch_of(each);
    BasisTimes stands_on;
    double ns = 0;
    for (const OpTime& op : cost->explain(batch)) ns += op.ns, stands_on.add({op.ns, op.basis}, 1);
    const StepError error = step_error(operators, stands_on);
    out.checks.push_back({each, ns, ns * error.least, ns * error.most});
  }
  if (out.checks.empty()) return nothing_left(out);
  return out;
}

Result<StepBacktest> of_program(const Files& files, const Deployment& deployment, const std::string& where,
                                const std::vector<MeasuredSteps>& measured) {
  const std::string *kernels = find(files, kKernels), *config_text = find(files, kConfig);
  if (kernels == nullptr || config_text == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: {} is missing", where, kernels == nullptr ? kKernels : kConfig),
                 "llmprof predict --from RUN --measured RUN2 --save FOLDER writes a whole one"};
  }
  LLMPROF_LET(Implementation implementation,
              parse_implementation(*find(files, kImplementation), fmt::format("{}/{}", where, kImplementation)));
  LLMPROF_LET(ProbedRows rows, parse_probed(*kernels, fmt::format("{}/{}", where, kKernels)));
  LLMPROF_LET(const model::Config config, model::parse_config(*config_text, fmt::format("{}/{}", where, kConfig)));
  LLMPROF_LET(const ProgramCost cost, ProgramCost::make(std::move(implementation), std::move(rows)));
  return backtest_program(cost, config, deployment.device, measured);
}

Result<StepBacktest> of_files(const Files& files, OperatorTables tables, const std::string& where) {
  const std::string *meta = find(files, kMeta), *lines = find(files, kMeasured);
  if (meta == nullptr || lines == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: {} is missing", where, meta == nullptr ? kMeta : kMeasured),
                 "a step back-test is a folder with meta.json, measured steps and what to predict them from"};
  }
  LLMPROF_LET(const Deployment deployment, parse_deployment(*meta, fmt::format("{}/{}", where, kMeta)));
  LLMPROF_LET(const std::vector<MeasuredSteps> measured,
              parse_measured_steps(*lines, fmt::format("{}/{}", where, kMeasured)));
  if (find(files, kImplementation) != nullptr) return of_program(files, deployment, where, measured);
  return backtest_tables(deployment, std::move(tables), measured);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &utc)};
}

// Times to a hundredth of a per mille: what they are known to, and half the bytes.
double five_digits(double ns) {
  if (!(ns > 0)) return ns;
  const double unit = std::pow(10.0, std::floor(std::log10(ns)) - 4);
  return std::round(ns / unit) * unit;
}

ProbedRows rounded(ProbedRows rows) {
  for (ProbedKernel& each : rows.kernels) each.ns = five_digits(each.ns);
  for (ProbedProduct& each : rows.products) each.ns = five_digits(each.ns);
  for (ProbedAttention& each : rows.attention) each.ns = five_digits(each.ns);
  rows.version = std::string(base::base_name(rows.version));  // of a run that was the prober: not its folder
  rows.notes.clear();
  return rows;
}

}  // namespace

std::int64_t StepBacktest::covered() const { return std::ranges::count_if(checks, &StepCheck::inside); }

Result<StepBacktest> backtest_program(const ProgramCost& cost, const model::Config& config, const std::string& device,
                                      const std::vector<MeasuredSteps>& measured) {
  const std::string& framework = cost.rows().framework;
  StepBacktest out{.name = name_of(config, device) + (framework.empty() ? "" : ", " + framework), .device = device};
  out.basis = "kernels of a recorded program", out.program = true;
  out.parameters = parameters_of(config);
  for (const MeasuredSteps& each : measured) {
    const StageSteps* stage = cost.implementation().stage(each.stage);
    if (stage == nullptr) {
      out.notes.push_back(words_of(each) +
                          ": the program's own run has no step of this stage with all of its kernels recorded");
    } else if (stage->graph != each.graph) {
      out.notes.push_back(fmt::format("{}: launched {}, in the program's own run {}", words_of(each),
                                      each.graph ? "as a graph" : "one by one",
                                      stage->graph ? "as a graph" : "one by one"));
    } else {
      const double ns = cost.step(*stage, each.size()).total_ns();
      const StepError error = program_error(cost, *stage, each.size());
      out.checks.push_back({each, ns, ns * error.least, ns * error.most});
    }
  }
  if (out.checks.empty()) return nothing_left(out);
  return out;
}

std::map<std::string, std::string> files_of(const ProgramCost& cost, const StepBacktestAbout& about,
                                            const std::vector<MeasuredSteps>& measured) {
  std::string config_text = about.config_text;
  if (Result<base::Json> config = base::parse_json(config_text, "config.json"); config && config->is_object()) {
    config->erase("_name_or_path");  // a folder of somebody's machine
    config_text = base::to_text(*config);
  }
  const ProbedRows rows = rounded(cost.used_rows());
  std::set<std::string> runs;
  for (const MeasuredSteps& each : measured) runs.insert(each.from);
  base::Json meta{{"schema", "llmprof.step_backtest"},
                  {"schema_version", 1},
                  {"llmprof_version", std::string(base::version())},
                  {"date", today()},
                  {"model", about.model},
                  {"measured_with", "llmprof record"},
                  {"kernels", fmt::format("{} {}", rows.framework, rows.version)},
                  {"implementation", std::string(base::base_name(cost.implementation().run))},
                  {"measured", runs}};
  meta["hardware"] = {{"device_name", about.device}, {"driver", about.driver}};
  return {{std::string(kMeta), base::to_text(meta)},
          {std::string(kConfig), config_text},
          {std::string(kImplementation), to_json_text(cost.implementation())},
          {std::string(kKernels), to_lines(rows)},
          {std::string(kMeasured), to_lines(measured)}};
}

bool is_step_backtest(const std::string& folder) {
  return std::ranges::any_of(base::list_directory(folder),
                             [](const std::string& name) { return without_packing(name) == kMeasured; });
}

Result<StepBacktest> step_backtest_folder(const std::string& folder) {
  Files files;
  for (const std::string& name : base::list_directory(folder)) {
    const std::string plain = without_packing(name);
    if (plain != kMeta && plain != kMeasured && plain != kImplementation && plain != kKernels && plain != kConfig)
      continue;
    LLMPROF_LET(importers::Input input, importers::Input::open(folder + "/" + name, kMostFileBytes));
    LLMPROF_LET(files[plain], input.read_all(kMostFileBytes));
  }
  OperatorTables tables;
  if (find(files, kImplementation) == nullptr && find(files, kMeta) != nullptr) {
    LLMPROF_LET(const Deployment deployment, parse_deployment(*find(files, kMeta), folder + "/meta.json"));
    LLMPROF_LET(tables, read_tables(folder, deployment.tensor));
  }
  return of_files(files, std::move(tables), folder);
}

Result<std::vector<StepBacktest>> built_in_step_backtests() {
  std::map<std::string, std::vector<const base::Asset*>> folders;
  std::set<std::string> of_steps;
  for (const base::Asset& asset : predict_backtests::assets()) {
    const std::string folder(asset.path.substr(0, asset.path.rfind('/')));
    folders[folder].push_back(&asset);
    if (without_packing(base::base_name(asset.path)) == kMeasured) of_steps.insert(folder);
  }
  std::vector<StepBacktest> out;
  for (const std::string& folder : of_steps) {
    Files files;
    OperatorTables tables;
    for (const base::Asset* asset : folders[folder]) {
      importers::Input input =
          importers::Input::of_text(std::string(asset->path), std::string(asset->bytes), kMostFileBytes);
      LLMPROF_LET(std::string text, input.read_all(kMostFileBytes));
      const std::string name = without_packing(base::base_name(asset->path));
      if (const TableKind* kind = kind_of_file(name)) {
        LLMPROF_TRY(read_table_text(*kind, text, std::string(asset->path), tables));
      } else {
        files[name] = std::move(text);
      }
    }
    LLMPROF_LET(StepBacktest backtest, of_files(files, std::move(tables), folder));
    out.push_back(std::move(backtest));
  }
  return out;
}

NearestStep nearest(const std::vector<StepBacktest>& known, const PredictedStage& of) {
  const auto apart = [](double a, double b) {
    return a > 0 && b > 0 ? std::abs(std::log2(a / b)) : std::numeric_limits<double>::infinity();
  };
  const auto same_device = [&](const std::string& name) {
    const hw::DeviceSpec *a = hw::find_device(name), *b = hw::find_device(of.device);
    return name == of.device || (a != nullptr && a == b);
  };
  // Another device is farther than any other size of a step; another way to run it than some doublings of it.
  constexpr double kOtherDevice = 40, kOtherBasis = 20, kOtherLaunch = 8, kUnknownSize = 20;
  NearestStep best;
  double least = std::numeric_limits<double>::infinity();
  for (const StepBacktest& each : known) {
    const double model = std::min(kUnknownSize, apart(each.parameters, of.parameters));
    const double set_up =
        model + (same_device(each.device) ? 0 : kOtherDevice) + (each.program == of.program ? 0 : kOtherBasis);
    for (const StepCheck& check : each.checks) {
      if (check.measured.stage != of.stage) continue;
      const StepSize size = check.measured.size();
      const double distance = set_up + (check.measured.graph == of.graph ? 0 : kOtherLaunch) +
                              apart(static_cast<double>(size.rows), static_cast<double>(of.size.rows)) +
                              0.5 * apart(static_cast<double>(size.contexts), static_cast<double>(of.size.contexts));
      if (distance >= least) continue;
      least = distance, best = {&each, &check};
    }
  }
  return best;
}

}  // namespace llmprof::predict

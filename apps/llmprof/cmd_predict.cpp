// llmprof predict: what a model would take on an engine and a device, before it runs.

#include <fmt/format.h>

#include <algorithm>

#include "base/axis.h"
#include "base/file.h"
#include "base/human.h"
#include "base/kernel_name.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "given_names.h"
#include "importers/serving_files.h"
#include "model_verb.h"
#include "predict/backtests.h"
#include "predict/implementation/price.h"
#include "predict/implementation/probe.h"
#include "predict/measured/store.h"
#include "predict/run/serving_run.h"
#include "predict_backtests.h"
#include "predict_calibrate.h"
#include "program_kernels.h"
#include "record/record.h"
#include "record/run/capture.h"
#include "report/predict.h"
#include "report_verb.h"
#include "serving_options.h"

namespace llmprof::app {
namespace predict_verb {
namespace {


constexpr Option kOptions[] = {
    {"--serving", "", "", "ENGINE", "", "simulate a workload on vllm, vllm@0.19 or static"},
    {"--model", "", "", "MODEL", "", "the model, instead of the first word: a built-in name, a folder, a config.json"},
    {"--device", "-d", "LLMPROF_DEVICE", "NAME", "", "the device (llmprof devices --all); else this machine's best"},
    {"--device-memory", "", "", "SIZE", "", "its memory, where it is not known or not all of it is there"},
    {"--from", "", "", "RUN", "",
     "steps as the program of this run makes them: its kernels, at times measured by bench --for RUN"},
    {"--kernels", "", "", "RUN|FILE", "",
     "with --from: kernels' times from this run of the same program, or from a file that bench --for RUN kept, instead "
     "of those measured here; may be repeated",
     true},
    {"--tables", "", "", "DIR|RUN", "",
     "operator tables of this device and model, or a run of bench --for; those measured here are found without"},
    {"--dtype", "", "", "TYPE", "", "type of the weights, if not the config's own"},
    {"--kv-dtype", "", "", "TYPE", "", "type of the KV cache"},
    {"--tp", "", "", "N", "", "tensor parallel"},
    {"--ep", "", "", "N", "", "expert parallel: ranks that share the experts"},
    {"--dp", "", "", "N", "", "data parallel: replicas of the model"},
    {"--set", "", "", "KEY=VALUE", "",
     "a setting of the engine, by vLLM's name: max_num_seqs=64, or a change to the model, as for llmprof whatif: "
     "kv_heads=4; may be repeated",
     true},
    {"--batch", "", "", "N", "1", "steps, without --serving: sequences together"},
    {"--context", "", "", "TOKENS", "",
     "steps: tokens of each sequence in the first decode step; else --prompt and one"},
    {"--steps", "", "", "N", "32", "steps: decode steps"},
    {"--eager", "", "", "", "", "steps: kernels launched one by one instead of as a CUDA graph"},
    {"--output", "-o", "", "NAME", "", "write the prediction as a run, which report, diff, query and plot read"},
    {"--force", "-f", "", "", "", "replace an existing run of that name"},
    {"--attention", "", "", "HOW", "joint", "mixed batches: joint (as measured together), separate"},
    {"--measured", "", "", "FILE|RUN", "",
     "errors of the prediction: what a real engine did with this workload; with --from, another run of the program, "
     "and further words are more of them"},
    {"--save", "", "", "FOLDER", "",
     "with --from and --measured: keep the steps as a back-test, which --backtest FOLDER runs again"},
    {"--backtest", "", "", "", "", "how wrong predictions have been; further words are folders of more back-tests"},
    {"--calibrate", "", "", "RUN", "",
     "correct device and host times by the steps of a recorded run, and keep that for predictions with these tables"},
    {"--no-calibration", "", "", "", "", "predict without what --calibrate kept"},
    {"--full", "", "", "", "", "rules of the engine with their sources, and the course over time, too"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-predict.md)"},
};
constexpr Positional kPositionals[] = {{"MODEL", false, true}};

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

// Sizes of the recorded steps, where none are asked for.
void take_sizes(const predict::Implementation& implementation, predict::StepsInput& steps) {
  if (const predict::StageSteps* prefill = implementation.stage("prefill")) {
    steps.batch = prefill->batch;
    steps.prompt = prefill->rows / prefill->batch;
  }
  const predict::StageSteps* decode = implementation.stage("decode");
  if (decode == nullptr) {
    steps.decode_steps = 0;
    return;
  }
  steps.batch = decode->batch;
  steps.context = decode->contexts / decode->batch;
  steps.launch = decode->graph ? serving::Launch::kGraph : serving::Launch::kEager;
}

// What the device drew in the recorded steps, where that was measured.
void take_power(const analyze::Summary& summary, predict::StepsInput& steps) {
  for (const analyze::StageTelemetry& stage : summary.telemetry.stages) {
    if (!stage.power_w || !stage.energy_j || !(*stage.power_w > 0) || !(*stage.energy_j > 0)) continue;
    const double error = stage.energy_error_j.value_or(0) / *stage.energy_j;
    constexpr double kTooCoarse = 0.25;  // a stage too short for its readings
    if (error > kTooCoarse) continue;
    const predict::Power power{
        .watts = *stage.power_w,
        .bound = false,
        .source = fmt::format("measured in the run's {} steps, to {}", stage.stage, base::human_percent(error))};
    if (stage.stage == "prefill") steps.prefill_power = power;
    if (stage.stage == "decode") steps.decode_power = power;
  }
}

// Nothing is said of a stage that the run has no whole step of.
Result<void> keep_known_stages(const RecordedProgram& program, predict::StepsInput& steps,
                               std::vector<std::string>& notes) {
  const predict::Implementation& implementation = program.implementation;
  if (implementation.stage("decode") == nullptr && steps.decode_steps > 0) {
    steps.decode_steps = 0;
    notes.emplace_back("decode is left out: the run has no step of it with all of its kernels (record --graphs all)");
  }
  if (implementation.stage("prefill") == nullptr && steps.prompt > 0) {
    steps.context = steps.context > 0 ? steps.context : steps.prompt + 1;
    steps.prompt = 0;
    notes.emplace_back("prefill is left out: the run has no step of it with all of its kernels");
  }
  if (steps.prompt > 0 || steps.decode_steps > 0) return {};
  return usage(program.opened.page.run + ": it has no whole step of what is asked for",
               "record it again with --graphs all --kernels all");
}

struct AskedSteps {
  predict::ServingInput input;
  predict::StepsInput steps;
  std::optional<RecordedProgram> program;
  std::optional<predict::ProgramCost> program_cost;
};

Result<AskedSteps> from_run(const Arguments& arguments) {
  AskedSteps out;
  LLMPROF_LET(out.program, open_program(arguments, arguments.get("--from")));
  const analyze::Summary& summary = out.program->opened.page.summary;
  out.input.config = out.program->config, out.input.config_text = summary.model;
  out.input.origin = summary.model_origin, out.input.device = out.program->device;
  if (out.input.config.name.empty()) out.input.config.name = "the program of " + out.program->opened.page.run;
  LLMPROF_LET(out.program_cost, program_cost(arguments, *out.program, ProgramTimes::kAlone));
  const predict::TablesKey key{out.input.device.device, out.input.config, 1,
                               predict::kept_type(out.input.config, out.input.device.device, "")};
  if (Result<predict::OperatorTables> kept = predict::kept_tables(key, predict::TimesOf::kInGraph))
    out.input.tables = std::move(*kept);
  take_sizes(out.program->implementation, out.steps);
  take_power(summary, out.steps);
  out.input.notes.push_back(
      fmt::format("kernels and their order are those of {}; a program that changes them with its sizes "
                  "takes another time",
                  out.program->opened.page.run));
  const std::vector<std::string> unknown = out.program_cost->unknown();
  for (std::size_t i = 0; i < std::min<std::size_t>(unknown.size(), 3); ++i) {
    out.input.notes.push_back(
        fmt::format("kernel not measured, taken as any other of its size: {}", base::short_kernel_name(unknown[i])));
  }
  return out;
}

Result<AskedSteps> of_model(const Arguments& arguments) {
  AskedSteps out;
  LLMPROF_LET(const predict::Deployment deployment, asked_deployment(arguments));
  LLMPROF_LET(out.input, asked_input(arguments, deployment));
  out.steps.types = {.weights = deployment.dtype, .kv = deployment.kv_dtype};
  return out;
}

// -o: the folder of the run; "" none was asked for.
Result<std::string> written(const Arguments& arguments, const predict::PredictedRun& run) {
  if (!arguments.given("--output")) return std::string();
  const std::string folder = trace::run_folder(arguments.get("--output"));
  LLMPROF_TRY(check_place(folder, arguments.on("--force")));
  record::remove_run_folder(folder);
  LLMPROF_TRY(predict::write_run(folder, run));
  return folder;
}

Result<void> check_output(const Arguments& arguments) {
  if (!arguments.given("--output")) return {};
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  return check_place(trace::run_folder(arguments.get("--output")), arguments.on("--force"));
}

predict::CalibratedLoad load_of(const predict::StepsInput& input, const predict::StepsPrediction& prediction) {
  predict::CalibratedLoad load;
  for (const predict::StageTimes& stage : prediction.stages) {
    const auto steps = static_cast<double>(stage.steps), requests = steps * static_cast<double>(input.batch);
    load.device_ns += steps * stage.device_ns, load.host_ns += steps * stage.host_ns;
    load.steps += steps, load.requests += requests;
    if (stage.stage == "prefill") load.new_requests += requests;
  }
  return load;
}

Result<std::string> steps_page(const Arguments& arguments) {
  LLMPROF_LET(AskedSteps asked, arguments.given("--from") ? from_run(arguments) : of_model(arguments));
  predict::ServingInput& input = asked.input;
  predict::StepsInput& steps = asked.steps;
  LLMPROF_LET(const std::unique_ptr<predict::TableStepCost> cost, predict::step_cost_of(input));
  std::unique_ptr<predict::StepPricer> pricer;
  if (asked.program_cost) {
    pricer = predict::price_program(*asked.program_cost, input.tables.empty() ? nullptr : cost.get());
    steps.program = pricer.get();
  }
  const auto count = [&](std::string_view flag, std::int64_t& into) -> Result<void> {
    if (arguments.get(flag).empty() || (asked.program && !arguments.typed(flag))) return {};
    const Result<std::int64_t> value = base::parse_count(arguments.get(flag));
    if (!value || *value < 0) return usage(fmt::format("{} wants a number, not '{}'", flag, arguments.get(flag)));
    into = *value;
    return {};
  };
  LLMPROF_TRY(count("--batch", steps.batch));
  LLMPROF_TRY(count("--prompt", steps.prompt));
  if (arguments.typed("--prompt")) steps.context = 0;
  LLMPROF_TRY(count("--context", steps.context));
  LLMPROF_TRY(count("--steps", steps.decode_steps));
  if (asked.program) LLMPROF_TRY(keep_known_stages(*asked.program, steps, input.notes));
  if (arguments.on("--eager")) steps.launch = serving::Launch::kEager;
  const hw::Figure* power = input.device.spec == nullptr ? nullptr : input.device.spec->figure("power");
  if (power != nullptr)
    steps.power =
        predict::Power{.watts = power->value, .bound = true, .source = "limit of the device, " + power->source};
  steps.device = input.device.device, steps.peaks = input.device.peaks;
  steps.config_text = input.config_text, steps.model_origin = input.origin;
  steps.command = {"llmprof", "predict", input.origin};
  LLMPROF_LET(predict::StepsPrediction prediction, predict::predict_steps(*cost, steps));
  prediction.notes.insert(prediction.notes.begin(), input.notes.begin(), input.notes.end());
  report::StepsPage page{.document = predict::document_of(steps, prediction, *cost)};
  if (input.calibration) predict::widen(page.document.step_error, *input.calibration, load_of(steps, prediction));
  if (asked.program_cost) page.document.step_error = predict::program_error(*asked.program_cost, steps);
  LLMPROF_LET(const std::vector<predict::StepBacktest> known, predict::built_in_step_backtests());
  page.document.backtest = predict::nearest_rows(steps, prediction, input.config, known);
  LLMPROF_LET(page.document.run, written(arguments, prediction.run));
  return laid_out(page, arguments, "llmprof.predict");
}

bool is_serving(const Arguments& arguments) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"--serving", "--workload", "--measured", "--rate",
                                                                     "--concurrency", "--slo", "--dp"},
                             [&](std::string_view flag) { return arguments.given(flag); });
}

Result<std::string> serving_page(const Arguments& arguments) {
  LLMPROF_LET(predict::Deployment deployment, asked_deployment(arguments));
  LLMPROF_LET(predict::ServingInput input, asked_input(arguments, deployment));
  LLMPROF_LET(input.slo, asked_slo(arguments));
  const std::string attention = arguments.get("--attention");
  if (attention != "joint" && attention != "separate")
    return usage(fmt::format("--attention: '{}' is neither joint nor separate", attention));
  if (attention == "separate") input.attention = predict::AttentionMode::kSeparate;
  LLMPROF_LET(input.workload, asked_workload(arguments));
  std::optional<predict::ServingBacktest> measured;
  if (arguments.given("--measured")) {
    LLMPROF_LET(const std::vector<serving::MeasuredRequest> requests,
                importers::read_measured(arguments.get("--measured")));
    LLMPROF_LET(measured, predict::backtest_serving(deployment, input, requests));
    input.since = serving::Since::kQueued;  // as the measured times count
  }
  LLMPROF_LET(const predict::ServingForecast forecast, predict::forecast_serving(input));
  LLMPROF_LET(const std::vector<predict::ServingBacktest> known, predict::built_in_backtests(!input.tables.empty()));
  report::ServingPage page{.document = predict::document_of(input, forecast, measured ? &*measured : nullptr,
                                                            predict::nearest(known, deployment)),
                           .rules = forecast.rules,
                           .full = arguments.on("--full")};
  if (arguments.given("--output")) {
    LLMPROF_LET(predict::PredictedRun run, predict::serving_run(input, forecast));
    run.command = {"llmprof", "predict", input.origin, "--serving", deployment.engine};
    run.types = {.weights = deployment.dtype, .kv = deployment.kv_dtype};
    LLMPROF_LET(page.document.run, written(arguments, run));
  }
  return laid_out(page, arguments, "llmprof.predict_serving");
}

Result<int> run(const Arguments& arguments) {
  const bool program = arguments.given("--from");
  LLMPROF_TRY(check_output(arguments));
  LLMPROF_LET(const std::string page, arguments.given("--calibrate")            ? calibrate_page(arguments)
                                      : arguments.on("--backtest")              ? backtest_page(arguments)
                                      : program&& arguments.given("--measured") ? measured_steps_page(arguments)
                                      : !program && is_serving(arguments)       ? serving_page(arguments)
                                                                                : steps_page(arguments));
  print(page);
  return 0;
}

}  // namespace
}  // namespace predict_verb

extern const Verb kPredict;
const Verb kPredict{"predict",
                    "say what a model would take, before it runs",
                    predict_verb::kOptions,
                    predict_verb::kPositionals,
                    false,
                    predict_verb::run,
                    workload_options};

}  // namespace llmprof::app

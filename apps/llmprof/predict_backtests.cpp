#include "predict_backtests.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "exporters/output_file.h"
#include "predict/measured/store.h"
#include "predict/step_backtests.h"
#include "program_kernels.h"
#include "report/predict.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

// As its driver names it; predictions may go by the catalogue's name.
std::string gpu_of(const analyze::Summary& summary) {
  for (const auto& each : summary.devices) {
    if (each.kind == "gpu") return each.name;
  }
  return "";
}

// A run of the same model on the same kind of device.
Result<std::vector<predict::MeasuredSteps>> steps_of(const Arguments& arguments, const RecordedProgram& program,
                                                     const std::string& name) {
  LLMPROF_LET(const OpenedRun other, open_page(arguments, name, progress_line()));
  const analyze::Summary& summary = other.page.summary;
  const auto refuse = [&](std::string why, std::string hint) {
    return Error{ErrorCode::kUsage, fmt::format("{}: {}", other.page.run, why), std::move(hint)};
  };
  if (!other.run.info().prediction.empty())
    return refuse("it is a prediction itself", "--measured wants recorded runs");
  if (summary.model.empty()) return refuse("its model is not known: " + summary.model_why, "--model NAME|PATH says it");
  LLMPROF_LET(const model::Config config, model::parse_config(summary.model, other.page.run));
  if (predict::shape_key(config) != predict::shape_key(program.config))
    return refuse(fmt::format("its model is not that of {}", program.opened.page.run), "");
  const std::string device = gpu_of(summary), own = gpu_of(program.opened.page.summary);
  if (device != own)
    return refuse(
        fmt::format("it ran on {}, {} on {}", device.empty() ? "no GPU" : device, program.opened.page.run, own),
        "steps of another device say nothing about these kernels");
  LLMPROF_LET(std::vector<predict::MeasuredSteps> steps, predict::measured_steps(other.run));
  if (steps.empty()) {
    return refuse("it has no steady prefill or decode steps whose sizes are known",
                  "llmprof report RUN stages shows the stages that it has");
  }
  return steps;
}

bool same_run(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::equivalent(trace::run_folder(a), trace::run_folder(b), ignored);
}

// All but meta.json compressed, as back-tests are built in.
Result<void> save(const std::string& folder, const std::map<std::string, std::string>& files, bool force) {
  if (!force && !base::list_directory(folder).empty())
    return Error{ErrorCode::kUsage, folder + " exists", "--force writes over it"};
  LLMPROF_TRY(exporters::make_folder(folder));
  for (const auto& [name, text] : files) {
    const std::string packed = name == "meta.json" ? "" : ".gz";
    LLMPROF_LET(exporters::OutputFile file,
                exporters::OutputFile::create(fmt::format("{}/{}{}", folder, name, packed)));
    file.write(text);
    LLMPROF_TRY(file.finish());
  }
  return {};
}

}  // namespace

Result<std::string> backtest_page(const Arguments& arguments) {
  report::BacktestPage page;
  for (const bool with_tables : {true, false}) {
    LLMPROF_LET(const std::vector<predict::ServingBacktest> known, predict::built_in_backtests(with_tables));
    page.servings.insert(page.servings.end(), known.begin(), known.end());
  }
  LLMPROF_LET(page.steps, predict::built_in_step_backtests());
  for (const std::string& folder : arguments.positionals) {
    if (predict::is_step_backtest(folder)) {
      LLMPROF_LET(predict::StepBacktest more, predict::step_backtest_folder(folder));
      page.steps.push_back(std::move(more));
    } else {
      LLMPROF_LET(predict::ServingBacktest more, predict::backtest_folder(folder));
      page.servings.push_back(std::move(more));
    }
  }
  return laid_out(page, arguments, "llmprof.predict_backtest");
}

Result<std::string> measured_steps_page(const Arguments& arguments) {
  std::vector<std::string> names{arguments.get("--measured")};
  names.insert(names.end(), arguments.positionals.begin(), arguments.positionals.end());
  LLMPROF_LET(const RecordedProgram program, open_program(arguments, arguments.get("--from")));
  LLMPROF_LET(const predict::ProgramCost cost, program_cost(arguments, program, ProgramTimes::kRecorded));
  std::vector<std::string> own = arguments.all("--kernels");
  own.push_back(arguments.get("--from"));
  std::vector<predict::MeasuredSteps> measured;
  for (const std::string& name : names) {
    if (std::ranges::any_of(own, [&](const std::string& one) { return same_run(one, name); })) {
      return Error{ErrorCode::kUsage, fmt::format("{} is what the prediction is made of", name),
                   "--measured wants other runs of the program: a run says nothing about itself"};
    }
    LLMPROF_LET(const std::vector<predict::MeasuredSteps> more, steps_of(arguments, program, name));
    measured.insert(measured.end(), more.begin(), more.end());
  }
  const std::string device = gpu_of(program.opened.page.summary);
  LLMPROF_LET(predict::StepBacktest backtest, predict::backtest_program(cost, program.config, device, measured));
  report::BacktestPage page;
  if (arguments.given("--save")) {
    page.saved = arguments.get("--save");
    std::vector<predict::MeasuredSteps> kept;  // what cannot be predicted now cannot be later
    for (const predict::StepCheck& check : backtest.checks) kept.push_back(check.measured);
    const predict::StepBacktestAbout about{.model = backtest.name.substr(0, backtest.name.rfind(", ")),
                                           .config_text = program.opened.page.summary.model,
                                           .device = device,
                                           .driver = program.device.device.driver};
    LLMPROF_TRY(save(page.saved, predict::files_of(cost, about, kept), arguments.on("--force")));
  }
  page.steps.push_back(std::move(backtest));
  return laid_out(page, arguments, "llmprof.predict_backtest");
}

}  // namespace llmprof::app

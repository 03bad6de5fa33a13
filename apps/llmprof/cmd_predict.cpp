// llmprof predict: what a model would take on an engine and a device, before it runs.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/axis.h"
#include "base/file.h"
#include "base/kernel_name.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "given_names.h"
#include "model_verb.h"
#include "predict/backtests.h"
#include "predict/implementation/price.h"
#include "predict/implementation/probe.h"
#include "predict/measured/store.h"
#include "predict/tables/read_tables.h"
#include "program_kernels.h"
#include "record/record.h"
#include "record/run/capture.h"
#include "report/predict.h"
#include "report_verb.h"

namespace llmprof::app {
namespace predict_verb {
namespace {

namespace serving = predict::serving;

constexpr Option kOptions[] = {
    {"--serving", "", "", "ENGINE", "", "simulate a workload on vllm, vllm@0.19 or static"},
    {"--model", "", "", "MODEL", "", "the model, instead of the first word: a built-in name, a folder, a config.json"},
    {"--device", "-d", "LLMPROF_DEVICE", "NAME", "", "the device (llmprof devices --all); else this machine's best"},
    {"--device-memory", "", "", "SIZE", "", "its memory, where it is not known or not all of it is there"},
    {"--from", "", "", "RUN", "",
     "steps as the program of this run makes them: its kernels, at times measured by bench --for RUN"},
    {"--kernels", "", "", "RUN", "",
     "with --from: take kernels' times from this run of the same program, too; may be repeated", true},
    {"--tables", "", "", "DIR|RUN", "",
     "operator tables of this device and model, or a run of bench --for; those measured here are found without"},
    {"--dtype", "", "", "TYPE", "", "type of the weights, if not the config's own"},
    {"--kv-dtype", "", "", "TYPE", "", "type of the KV cache"},
    {"--tp", "", "", "N", "", "tensor parallel"},
    {"--ep", "", "", "N", "", "expert parallel: ranks that share the experts"},
    {"--dp", "", "", "N", "", "data parallel: replicas of the model"},
    {"--set", "", "", "KEY=VALUE", "", "a setting of the engine, by vLLM's name: max_num_seqs=64; may be repeated",
     true},
    {"--workload", "", "", "FILE", "", "a trace (mooncake JSONL: timestamp, input_length, output_length, hash_ids)"},
    {"--batch", "", "", "N", "1", "steps, without --serving: sequences together"},
    {"--context", "", "", "TOKENS", "",
     "steps: tokens of each sequence in the first decode step; else --prompt and one"},
    {"--steps", "", "", "N", "32", "steps: decode steps"},
    {"--eager", "", "", "", "", "steps: kernels launched one by one instead of as a CUDA graph"},
    {"--output", "-o", "", "NAME", "", "steps: write the prediction as a run, which report, diff, query and plot read"},
    {"--force", "-f", "", "", "", "replace an existing run of that name"},
    {"--requests", "", "", "N", "300", "without a trace: how many"},
    {"--rate", "", "", "X", "1", "requests per second; A..B: rising from A to B"},
    {"--arrivals", "", "", "HOW", "poisson", "poisson, constant, gamma:CV (bursts above 1)"},
    {"--concurrency", "", "", "N", "", "closed loop: so many at once, instead of --rate"},
    {"--prompt", "", "", "TOKENS", "512", "tokens of a prompt; A..B: uniform between; sharegpt"},
    {"--new", "", "", "TOKENS", "128", "tokens of an answer; A..B: uniform between; sharegpt"},
    {"--prefixes", "", "", "NxTOKENS", "", "each prompt begins with one of N shared prefixes"},
    {"--seed", "", "", "N", "1", "of the random numbers"},
    {"--slo", "", "", "LIMITS", "", "ttft=200ms,tpot=50ms,e2e=10s: goodput"},
    {"--attention", "", "", "HOW", "joint", "mixed batches: joint (one look-up), separate"},
    {"--measured", "", "", "FILE", "", "what a real engine did with this workload: errors of the prediction"},
    {"--backtest", "", "", "", "", "how wrong predictions have been; further words are folders of more back-tests"},
    {"--full", "", "", "", "", "rules of the engine with their sources, and the course over time, too"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-predict.md)"},
};
constexpr Positional kPositionals[] = {{"MODEL", false, true}};

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

Result<serving::Slo> slo_of(const std::string& text) {
  serving::Slo slo;
  for (const std::string_view part : base::split(text, ',')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    auto* limit = name == "ttft" ? &slo.ttft_ns : name == "tpot" ? &slo.tpot_ns : name == "e2e" ? &slo.e2e_ns : nullptr;
    if (limit == nullptr || equals == std::string_view::npos)
      return usage(fmt::format("--slo: '{}' is not a limit", part), "as in --slo ttft=200ms,tpot=50ms");
    LLMPROF_LET(*limit, time_ns("--slo", part.substr(equals + 1)));
  }
  return slo;
}

struct Span {
  std::int32_t least = 0, most = 0;
  bool sharegpt = false;
};

// "512", "128..1024", "1k", "sharegpt".
Result<Span> lengths_of(const Arguments& arguments, std::string_view flag) {
  const std::string text = arguments.get(flag);
  if (base::lowercase(text) == "sharegpt") return Span{.sharegpt = true};
  const std::size_t dots = text.find("..");
  const Result<std::int64_t> least = base::parse_count(text.substr(0, dots));
  const Result<std::int64_t> most = dots == std::string::npos ? least : base::parse_count(text.substr(dots + 2));
  if (least && most && *least >= 1 && *most >= *least && *most <= serving::kMostRequestTokens)
    return Span{static_cast<std::int32_t>(*least), static_cast<std::int32_t>(*most)};
  return usage(fmt::format("{} wants a number of tokens, not '{}'", flag, text), "512, 128..1024 or sharegpt");
}

Result<void> add_rate(const Arguments& arguments, serving::WorkloadSpec& spec) {
  const std::string text = arguments.get("--rate");
  const std::size_t dots = text.find("..");
  const auto number = [&](std::string_view part, double& into) {
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), into);
    return failure == std::errc{} && end == part.data() + part.size() && into > 0 && into < 1e9;
  };
  const bool ramp = dots != std::string::npos;
  if (!number(std::string_view(text).substr(0, dots), spec.rate) ||
      (ramp && !number(std::string_view(text).substr(dots + 2), spec.rate_end)))
    return usage(fmt::format("--rate wants requests per second, not '{}'", text), "10, or 1..20 for a rising rate");
  const std::string how = arguments.get("--arrivals");
  if (ramp) {
    spec.arrivals = serving::Arrivals::kRamp;
  } else if (how == "constant") {
    spec.arrivals = serving::Arrivals::kConstant;
  } else if (how.starts_with("gamma:") && number(std::string_view(how).substr(6), spec.cv)) {
    spec.arrivals = serving::Arrivals::kGamma;
  } else if (how != "poisson") {
    return usage(fmt::format("--arrivals: '{}' is not known", how), "poisson, constant or gamma:CV");
  }
  return {};
}

Result<serving::Workload> generated(const Arguments& arguments) {
  serving::WorkloadSpec spec;
  LLMPROF_LET(spec.requests, number_in<std::int64_t>(arguments, "--requests", "a number of requests", 1, 10'000'000));
  LLMPROF_LET(spec.seed, number_in<std::uint64_t>(arguments, "--seed", "a whole number"));
  LLMPROF_TRY(add_rate(arguments, spec));
  if (arguments.given("--concurrency")) {
    LLMPROF_LET(spec.concurrency, number_in<std::int64_t>(arguments, "--concurrency", "a number of requests", 1));
  }
  LLMPROF_LET(const Span prompt, lengths_of(arguments, "--prompt"));
  LLMPROF_LET(const Span output, lengths_of(arguments, "--new"));
  if (prompt.sharegpt != output.sharegpt)
    return usage("--prompt sharegpt and --new sharegpt go together", "both lengths come from one distribution");
  const bool fixed = prompt.least == prompt.most && output.least == output.most;
  spec.lengths = prompt.sharegpt ? serving::Lengths::kShareGpt
                 : fixed         ? serving::Lengths::kFixed
                                 : serving::Lengths::kUniform;
  if (!prompt.sharegpt) {
    spec.prompt = prompt.least, spec.prompt_most = prompt.most;
    spec.output = output.least, spec.output_most = output.most;
  }
  if (const std::string text = arguments.get("--prefixes"); !text.empty()) {
    const std::size_t x = text.find('x');
    const Result<std::int64_t> count = base::parse_count(text.substr(0, x)),
                               tokens = base::parse_count(x == std::string::npos ? "" : text.substr(x + 1));
    if (!count || !tokens || *count < 1 || *tokens < 1 || *tokens > serving::kMostRequestTokens)
      return usage(fmt::format("--prefixes: '{}' is not NxTOKENS", text), "as in --prefixes 10x1024");
    spec.prefixes = *count, spec.prefix_tokens = static_cast<std::int32_t>(*tokens);
  }
  return serving::make_workload(spec);
}

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

// What meta.json beside the files says, and on top of it what was asked for.
Result<predict::Deployment> deployment_of(const Arguments& arguments) {
  std::vector<std::string> folders;
  if (arguments.given("--tables")) folders.push_back(arguments.get("--tables"));
  for (const char* file : {"--measured", "--workload"}) {
    if (arguments.given(file)) folders.push_back(folder_of(arguments.get(file)));
  }
  LLMPROF_LET(predict::Deployment out, predict::find_deployment(folders));
  const auto take = [&](std::string_view flag, std::string& into) {
    if (arguments.given(flag)) into = arguments.get(flag);
  };
  if (!arguments.positionals.empty()) out.model = arguments.positionals.front();
  take("--model", out.model), take("--device", out.device), take("--dtype", out.dtype);
  take("--kv-dtype", out.kv_dtype), take("--serving", out.engine);
  const auto count = [&](std::string_view flag, std::int64_t& into) -> Result<void> {
    if (!arguments.given(flag)) return {};
    LLMPROF_LET(into, number_in<std::int64_t>(arguments, flag, "a number of ranks from 1 to 4096", 1, 4096));
    return {};
  };
  LLMPROF_TRY(count("--tp", out.tensor));
  LLMPROF_TRY(count("--dp", out.replicas));
  LLMPROF_TRY(count("--ep", out.expert));
  if (arguments.given("--device-memory")) {
    LLMPROF_LET(const std::uint64_t bytes, record::parse_bytes(arguments.get("--device-memory")));
    out.device_memory_bytes = static_cast<double>(bytes);
  }
  for (const std::string& setting : arguments.all("--set")) out.settings.push_back(setting);
  if (out.model.empty())
    return usage("predict wants a model", "llmprof predict llama-3.1-8b --device h100-sxm --serving vllm --rate 4");
  return out;
}

// Tables as asked for, else those that `bench --for` measured on this device, else none.
Result<predict::ServingInput> input_of(const Arguments& arguments, const predict::Deployment& deployment) {
  const predict::TimesOf times = arguments.on("--eager") ? predict::TimesOf::kKernels : predict::TimesOf::kInGraph;
  static const std::string kBestImplementation =
      "of the best implementation that was found of each operator, in as few kernels as it needs: a program whose "
      "operators are made of more kernels takes longer, whatever the interval says";
  predict::OperatorTables tables;
  bool own = false;
  const std::string name = arguments.get("--tables");
  if (!name.empty() && is_run(name)) {
    LLMPROF_LET(const trace::Run run, trace::Run::open(trace::run_folder(name)));
    LLMPROF_LET(tables, predict::tables_from_run(run, times));
    own = true;
  } else if (!name.empty()) {
    LLMPROF_LET(tables, predict::read_tables(name, deployment.tensor));
  }
  LLMPROF_LET(predict::ServingInput input, predict::serving_input(deployment, std::move(tables)));
  if (own) input.notes.push_back(kBestImplementation);
  if (name.empty()) {
    const predict::TablesKey key{input.device.device, input.config, deployment.tensor,
                                 predict::kept_type(input.config, input.device.device, deployment.dtype)};
    if (Result<predict::OperatorTables> kept = predict::kept_tables(key, times)) {
      input.tables = std::move(*kept);
      input.notes.push_back("operator times measured on this machine by llmprof bench --for");
      input.notes.push_back(kBestImplementation);
    }
  }
  return input;
}

// What times of kernels there are for a program: recorded ones that were asked for, and those that bench --for kept.
Result<predict::ProgramCost> program_cost(const Arguments& arguments, const RecordedProgram& program) {
  predict::ProbedRows rows;
  const std::vector<std::string> others = arguments.all("--kernels");
  if (others.empty()) {
    LLMPROF_LET(rows, predict::kept_probed(program.device.device));
  }
  for (const std::string& name : others) {
    LLMPROF_LET(const RecordedProgram other, open_program(arguments, name));
    LLMPROF_LET(predict::ProbedRows more, predict::rows_of_run(other.opened.run));
    predict::merge(rows, std::move(more));
  }
  return predict::ProgramCost::make(program.implementation, std::move(rows));
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
  LLMPROF_LET(out.program_cost, program_cost(arguments, *out.program));
  const predict::TablesKey key{out.input.device.device, out.input.config, 1,
                               predict::kept_type(out.input.config, out.input.device.device, "")};
  if (Result<predict::OperatorTables> kept = predict::kept_tables(key, predict::TimesOf::kInGraph))
    out.input.tables = std::move(*kept);
  take_sizes(out.program->implementation, out.steps);
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
  LLMPROF_LET(const predict::Deployment deployment, deployment_of(arguments));
  LLMPROF_LET(out.input, input_of(arguments, deployment));
  out.steps.types = {.weights = deployment.dtype, .kv = deployment.kv_dtype};
  return out;
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
  if (arguments.on("--eager")) steps.launch = predict::Launch::kEager;
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
  if (asked.program_cost) page.document.step_error = predict::program_error(*asked.program_cost, steps);
  if (arguments.given("--output")) {
    LLMPROF_TRY(check_run_name(arguments.get("--output")));
    const std::string folder = trace::run_folder(arguments.get("--output"));
    LLMPROF_TRY(check_place(folder, arguments.on("--force")));
    record::remove_run_folder(folder);
    LLMPROF_TRY(predict::write_run(folder, prediction.run));
    page.document.run = folder;
  }
  return laid_out(page, arguments, "llmprof.predict");
}

bool is_serving(const Arguments& arguments) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"--serving", "--workload", "--measured", "--rate",
                                                                     "--concurrency", "--slo", "--dp"},
                             [&](std::string_view flag) { return arguments.given(flag); });
}

Result<std::string> serving_page(const Arguments& arguments) {
  LLMPROF_LET(predict::Deployment deployment, deployment_of(arguments));
  LLMPROF_LET(predict::ServingInput input, input_of(arguments, deployment));
  LLMPROF_LET(input.slo, slo_of(arguments.get("--slo")));
  const std::string attention = arguments.get("--attention");
  if (attention != "joint" && attention != "separate")
    return usage(fmt::format("--attention: '{}' is neither joint nor separate", attention));
  if (attention == "separate") input.attention = predict::AttentionMode::kSeparate;
  if (arguments.given("--workload")) {
    LLMPROF_LET(input.workload, serving::read_trace(arguments.get("--workload")));
  } else {
    LLMPROF_LET(input.workload, generated(arguments));
  }
  std::optional<predict::ServingBacktest> measured;
  if (arguments.given("--measured")) {
    LLMPROF_LET(const std::vector<serving::MeasuredRequest> requests,
                serving::read_measured(arguments.get("--measured")));
    LLMPROF_LET(measured, predict::backtest_serving(deployment, input, requests));
    input.since = serving::Since::kQueued;  // as the measured times count
  }
  LLMPROF_LET(const predict::ServingForecast forecast, predict::forecast_serving(input));
  LLMPROF_LET(const std::vector<predict::ServingBacktest> known, predict::built_in_backtests(!input.tables.empty()));
  const report::ServingPage page{.document = predict::document_of(input, forecast, measured ? &*measured : nullptr,
                                                                  predict::nearest(known, deployment)),
                                 .rules = forecast.rules,
                                 .full = arguments.on("--full")};
  return laid_out(page, arguments, "llmprof.predict_serving");
}

Result<std::string> backtest_page(const Arguments& arguments) {
  report::BacktestPage page;
  for (const bool with_tables : {true, false}) {
    LLMPROF_LET(const std::vector<predict::ServingBacktest> known, predict::built_in_backtests(with_tables));
    page.servings.insert(page.servings.end(), known.begin(), known.end());
  }
  for (const std::string& folder : arguments.positionals) {
    LLMPROF_LET(predict::ServingBacktest more, predict::backtest_folder(folder));
    page.servings.push_back(std::move(more));
  }
  return laid_out(page, arguments, "llmprof.predict_backtest");
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const std::string page, arguments.on("--backtest") ? backtest_page(arguments)
                                      : is_serving(arguments)    ? serving_page(arguments)
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
                    predict_verb::run};

}  // namespace llmprof::app

#include "serving_options.h"

#include <fmt/format.h>

#include <charconv>

#include "base/axis.h"
#include "base/strings.h"
#include "given_names.h"
#include "importers/serving_files.h"
#include "model_verb.h"
#include "predict/measured/calibration.h"
#include "predict/measured/store.h"
#include "predict/tables/read_tables.h"
#include "record/record.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {


constexpr Option kWorkload[] = {
    {"--workload", "", "", "FILE", "", "a trace (mooncake JSONL: timestamp, input_length, output_length, hash_ids)"},
    {"--requests", "", "", "N", "300", "without a trace: how many"},
    {"--rate", "", "", "X", "1", "requests per second; A..B: rising from A to B"},
    {"--arrivals", "", "", "HOW", "poisson", "poisson, constant, gamma:CV (bursts above 1)"},
    {"--concurrency", "", "", "N", "", "closed loop: so many at once, instead of --rate"},
    {"--prompt", "", "", "TOKENS", "512", "tokens of a prompt; A..B: uniform between; sharegpt"},
    {"--new", "", "", "TOKENS", "128", "tokens of an answer; A..B: uniform between; sharegpt"},
    {"--prefixes", "", "", "NxTOKENS", "", "each prompt begins with one of N shared prefixes"},
    {"--seed", "", "", "N", "1", "of the random numbers"},
    {"--slo", "", "", "LIMITS", "", "ttft=200ms,tpot=50ms,e2e=10s: goodput"},
};

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
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

Result<serving::Workload> generated(const Arguments& arguments, std::int64_t requests) {
  serving::WorkloadSpec spec;
  LLMPROF_LET(spec.requests, number_in<std::int64_t>(arguments, "--requests", "a number of requests", 1, 10'000'000));
  if (requests > 0) spec.requests = requests;
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

}  // namespace

std::span<const Option> workload_options() { return kWorkload; }

Result<serving::Slo> asked_slo(const Arguments& arguments) {
  serving::Slo slo;
  const std::string text = arguments.get("--slo");
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

Result<serving::Workload> asked_workload(const Arguments& arguments, std::int64_t requests) {
  if (arguments.given("--workload"))
    return importers::read_trace(arguments.get("--workload"), {.most_requests = requests});
  return generated(arguments, requests);
}

Result<predict::Deployment> asked_deployment(const Arguments& arguments) {
  return asked_deployment(arguments, arguments.all("--set"));
}

Result<predict::Deployment> asked_deployment(const Arguments& arguments, const std::vector<std::string>& settings) {
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
  // Experts that meta.json spreads over all ranks are spread over those that were asked for.
  if (out.expert > 1 && (arguments.given("--tp") || arguments.given("--dp"))) out.expert = out.tensor * out.replicas;
  LLMPROF_TRY(count("--ep", out.expert));
  if (arguments.given("--device-memory")) {
    LLMPROF_LET(const std::uint64_t bytes, record::parse_bytes(arguments.get("--device-memory")));
    out.device_memory_bytes = static_cast<double>(bytes);
  }
  for (const std::string& setting : settings) LLMPROF_TRY(predict::add_setting(out, setting));
  if (out.model.empty())
    return usage("no model is given", "llmprof predict llama-3.1-8b --device h100-sxm --serving vllm --rate 4");
  return out;
}

Result<predict::ServingInput> asked_input(const Arguments& arguments, const predict::Deployment& deployment) {
  const predict::TimesOf times = arguments.on("--eager") ? predict::TimesOf::kKernels : predict::TimesOf::kInGraph;
  static const std::string kMeasuredHere = "operator times measured on this machine by llmprof bench --for";
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
      input.notes.push_back(kMeasuredHere);
      input.notes.push_back(kBestImplementation);
    } else if (input.unchanged) {
      const predict::TablesKey own_key{input.device.device, *input.unchanged, deployment.tensor,
                                       predict::kept_type(*input.unchanged, input.device.device, deployment.dtype)};
      if (kept = predict::kept_tables(own_key, times); kept) {
        input.notes.push_back(kMeasuredHere + ", of the model before --set");
        input.notes.push_back(kBestImplementation);
        LLMPROF_TRY(predict::use_tables_of(input, *kept, *input.unchanged, input.parallel));
      }
    }
  }
  if (!input.tables.empty() && !arguments.on("--no-calibration")) {
    const predict::TablesKey key{input.device.device, input.config, deployment.tensor,
                                 predict::kept_type(input.config, input.device.device, deployment.dtype)};
    if (const auto kept = predict::kept_calibration(key, input.tables, times)) predict::calibrate(input, *kept);
  }
  return input;
}

}  // namespace llmprof::app

// llmprof plan: which devices, parallelism, batch limits and how many replicas serve a load within its limits.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/axis.h"
#include "base/strings.h"
#include "predict/measured/store.h"
#include "predict/plan/document.h"
#include "predict/tables/read_tables.h"
#include "report/plan.h"
#include "report_verb.h"
#include "serving_options.h"

namespace llmprof::app {
namespace plan_verb {
namespace {

namespace plan = predict::plan;

constexpr Option kOptions[] = {
    {"--serving", "", "", "ENGINE", "vllm", "the engine whose scheduler is simulated: vllm, vllm@0.19"},
    {"--device", "-d", "", "NAME", "",
     "devices to try (llmprof devices --all), repeated or a,b; else those with a price, else the server GPUs of the "
     "catalogue",
     true},
    {"--price", "", "", "DEVICE=USD", "", "what a device costs per hour: h100-sxm=2.50; may be repeated", true},
    {"--dtype", "", "", "TYPES", "", "types of the weights to try, a,b; else the config's own"},
    {"--kv-dtype", "", "", "TYPE", "", "type of the KV cache"},
    {"--tp", "", "", "N", "1,2,4,8", "degrees of tensor parallelism to try"},
    {"--max-devices", "", "", "N", "256", "at most so many devices"},
    {"--share", "", "", "PART", "0.99", "part of the requests that has to be within every limit at once"},
    {"--tables", "", "", "DIR", "", "operator tables of the one device given; those measured here are found without"},
    {"--set", "", "", "KEY=VALUE", "", "a setting of the engine, by vLLM's name: max_num_seqs=64; may be repeated",
     true},
    {"--full", "", "", "", "", "every configuration, what was left out and why, the devices, too"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-plan.md)"},
};
constexpr Positional kPositionals[] = {{"MODEL"}};

constexpr int kNothingMeets = 4;  // as a gate that failed

Error usage(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

// "a,b c" of an option that may be repeated.
std::vector<std::string> names_in(const Arguments& arguments, std::string_view flag) {
  std::vector<std::string> out;
  for (const std::string& word : arguments.all(flag)) {
    for (const std::string_view part : base::split(word, ',')) {
      if (!base::trimmed(part).empty()) out.emplace_back(base::trimmed(part));
    }
  }
  return out;
}

// GPUs made for servers of which everything that a plan needs is known and verified. The power may be unknown.
bool known_server(const hw::DeviceSpec& spec) {
  const auto good = [](const hw::Figure* figure) { return figure != nullptr && figure->verified(); };
  return spec.server && good(spec.figure("memory")) && good(spec.figure("bandwidth")) && good(spec.peak("bfloat16"));
}

void add_device(hw::DeviceAndPeaks device, std::vector<hw::DeviceAndPeaks>& into) {
  const auto same = [&](const hw::DeviceAndPeaks& other) { return other.device.name == device.device.name; };
  if (std::ranges::none_of(into, same)) into.push_back(std::move(device));
}

// Prices, by the full names of devices; with `devices` those that have one.
Result<std::map<std::string, double>> asked_prices(const Arguments& arguments, const std::vector<hw::Device>& here,
                                                   std::vector<hw::DeviceAndPeaks>& devices) {
  std::map<std::string, double> out;
  for (const std::string& text : names_in(arguments, "--price")) {
    const std::size_t equals = text.find('=');
    double price = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, failure] = std::from_chars(begin, end, price);
    if (failure != std::errc{} || stop != end || !(price > 0 && price < 1e6))
      return usage(fmt::format("--price: '{}' is not a device and its price", text), "as in --price h100-sxm=2.50");
    LLMPROF_LET(hw::DeviceAndPeaks device, hw::resolve_device(text.substr(0, equals), here));
    out[device.device.name] = price;
    add_device(std::move(device), devices);
  }
  return out;
}

Result<void> asked_devices(const Arguments& arguments, plan::Asked& asked) {
  const std::vector<hw::Device> here = hw::devices_here();
  std::vector<hw::DeviceAndPeaks> priced;
  LLMPROF_LET(asked.prices, asked_prices(arguments, here, priced));
  for (const std::string& name : names_in(arguments, "--device")) {
    LLMPROF_LET(hw::DeviceAndPeaks device, hw::resolve_device(name, here));
    add_device(std::move(device), asked.devices);
  }
  if (asked.devices.empty()) asked.devices = std::move(priced);
  if (!asked.devices.empty()) return {};
  for (const hw::DeviceSpec& spec : hw::catalog()) {
    if (known_server(spec)) asked.devices.push_back({hw::device_of(spec), hw::spec_peaks(spec), &spec, false});
  }
  return {};
}

Result<std::vector<std::int64_t>> asked_degrees(const Arguments& arguments) {
  const Result<std::vector<std::int64_t>> out = base::parse_axis_values(arguments.get("--tp"));
  if (!out || std::ranges::any_of(*out, [](std::int64_t degree) { return degree < 1 || degree > 4096; }))
    return usage(fmt::format("--tp wants degrees from 1 on, not '{}'", arguments.get("--tp")), "as in --tp 1,2,4,8");
  return out;
}

Result<void> asked_load(const Arguments& arguments, plan::Asked& asked) {
  LLMPROF_LET(asked.limits.slo, asked_slo(arguments));
  if (!asked.limits.slo.any())
    return usage("a plan needs limits", "--slo ttft=300ms,tpot=20ms, and --rate 8 for the load");
  LLMPROF_LET(asked.limits.share, number_in<double>(arguments, "--share", "a part from 0.01 to 1", 0.01, 1));
  LLMPROF_LET(asked.workload, asked_workload(arguments));
  if (asked.workload.requests.empty()) return usage("the workload has no requests");
  const bool trace = arguments.given("--workload"), closed = asked.workload.concurrency > 0;
  asked.stretch = !trace && !closed;
  if (closed) return {};
  if (trace) {
    const auto count = static_cast<double>(asked.workload.requests.size());
    const double span_ns = asked.workload.requests.back().arrival_ns - asked.workload.requests.front().arrival_ns;
    asked.rate = span_ns > 0 ? (count - 1) / (span_ns * 1e-9) : 0;
    return {};
  }
  // As asked for, not as drawn; a rising rate by its mean over time.
  const std::string rate = arguments.get("--rate");
  const std::size_t dots = rate.find("..");
  const auto number = [](std::string_view text) {
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  asked.repeat = dots == std::string::npos;
  const double first = number(std::string_view(rate).substr(0, dots));
  asked.rate = dots == std::string::npos ? first : (first + number(std::string_view(rate).substr(dots + 2))) / 2;
  return {};
}

// Tables that are given are of one device, and only the degrees of which there are any are tried. Else those that were
// measured here, for whatever device and degree there are some.
Result<void> take_tables(const Arguments& arguments, plan::Asked& asked) {
  const std::string folder = arguments.get("--tables");
  if (folder.empty()) {
    asked.tables = [](const predict::ServingInput& input, std::int64_t tensor) -> Result<predict::OperatorTables> {
      const predict::TablesKey key{input.device.device, input.config, tensor,
                                   predict::kept_type(input.config, input.device.device, "")};
      Result<predict::OperatorTables> kept = predict::kept_tables(key, predict::TimesOf::kInGraph);
      return kept ? std::move(*kept) : predict::OperatorTables{};
    };
    return {};
  }
  if (asked.devices.size() != 1) return usage("--tables are of one device", "name it: --device NAME");
  std::vector<std::int64_t> degrees;
  for (const std::int64_t degree : asked.tensor) {
    const Result<predict::OperatorTables> tables = predict::read_tables(folder, degree);
    if (!tables && degree == asked.tensor.front() && asked.tensor.size() == 1) return tables.error();
    const bool of_it = tables && (tables->source.tensor == degree || (tables->source.tensor == 0 && degree == 1));
    if (of_it) degrees.push_back(degree);
  }
  if (degrees.empty())
    return usage(fmt::format("{} has no operator tables of tensor parallelism {}", folder, arguments.get("--tp")),
                 "--tp says which degrees are tried");
  asked.tensor = std::move(degrees);
  asked.tables = [folder](const predict::ServingInput&, std::int64_t tensor) {
    return predict::read_tables(folder, tensor);
  };
  return {};
}

Result<plan::Asked> asked_plan(const Arguments& arguments) {
  plan::Asked asked;
  asked.deployment.model = arguments.positionals.at(0);
  asked.deployment.engine = arguments.get("--serving");
  asked.deployment.kv_dtype = arguments.get("--kv-dtype");
  asked.deployment.settings = arguments.all("--set");
  for (const std::string& setting : asked.deployment.settings) {
    if (setting.starts_with("num_gpu_blocks"))
      return usage("--set num_gpu_blocks: a plan finds the number of blocks of each device",
                   "llmprof predict takes it");
  }
  LLMPROF_LET(asked.model, predict::open_named(asked.deployment.model));
  LLMPROF_TRY(asked_load(arguments, asked));
  LLMPROF_TRY(asked_devices(arguments, asked));
  if (!arguments.get("--dtype").empty()) {
    asked.dtypes.clear();
    for (const std::string_view type : base::split(arguments.get("--dtype"), ',')) asked.dtypes.emplace_back(type);
  }
  LLMPROF_LET(asked.tensor, asked_degrees(arguments));
  LLMPROF_LET(asked.most_devices,
              number_in<std::int64_t>(arguments, "--max-devices", "a number of devices from 1 on", 1, 1'000'000));
  LLMPROF_TRY(take_tables(arguments, asked));
  return asked;
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const plan::Asked asked, asked_plan(arguments));
  LLMPROF_LET(const plan::Plan found, plan::make_plan(asked, progress_line()));
  const report::PlanPage page{.document = plan::document_of(asked, found), .full = arguments.on("--full")};
  print(laid_out(page, arguments, "llmprof.plan"));
  return page.document.obstacles.empty() ? 0 : kNothingMeets;
}

}  // namespace
}  // namespace plan_verb

extern const Verb kPlan;
const Verb kPlan{"plan",
                 "find devices and replicas that serve a load within limits",
                 plan_verb::kOptions,
                 plan_verb::kPositionals,
                 false,
                 plan_verb::run,
                 workload_options};

}  // namespace llmprof::app

// The options of `record`: a part of the program's run, what of a GPU is recorded, hardware counters.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/names/ranges.h"
#include "base/file.h"
#include "record/open_run.h"
#include "record/watch/counter_plan.h"
#include "record_verb.h"
#include "report_verb.h"
#include "trace/run.h"
#include "verb.h"

namespace llmprof::app {

namespace {

Result<void> read_duration(const Arguments& arguments, std::string_view flag, std::optional<std::int64_t>& out) {
  if (arguments.get(flag).empty()) return {};
  LLMPROF_LET(out, record::parse_duration(arguments.get(flag)));
  return {};
}

// The names by which the analysis knows a step; also the training step that has no stage of its own. Loading and
// warming up come before the steps that a user counts.
Result<void> add_step_names(const Arguments& arguments, record::WindowOptions& window) {
  LLMPROF_LET(const std::vector<analyze::RangePattern> patterns, analyze::range_patterns(arguments.get("--ranges")));
  for (const analyze::RangePattern& row : patterns) {
    if (row.stage == "load" || row.stage == "warm-up") continue;
    if (row.container && (row.stage.empty() || row.stage == "training")) {
      window.step_names.push_back(row.pattern);
    } else if (row.kind == analyze::RangeKind::kStep) {
      window.plain_step_names.push_back(row.pattern);
    }
  }
  return {};
}

}  // namespace

Result<record::WindowOptions> window_options(const Arguments& arguments) {
  record::WindowOptions window;
  LLMPROF_TRY(read_duration(arguments, "--delay", window.delay_ns));
  LLMPROF_TRY(read_duration(arguments, "--duration", window.duration_ns));
  LLMPROF_TRY(read_duration(arguments, "--last", window.last_ns));
  window.start_range = arguments.get("--start-range");
  window.control = arguments.get("--control");
  window.start_stopped = arguments.on("--start-stopped");
  window.profiler_api = arguments.on("--profiler-api");
  if (const std::string steps = arguments.get("--steps"); !steps.empty()) {
    LLMPROF_LET(window.steps, record::parse_steps(steps));
  }
  if (const std::string name = arguments.get("--step-range"); !name.empty()) {
    if (!window.steps) return Error{ErrorCode::kUsage, "--step-range says what a step is", "use it with --steps"};
    window.step_names = {name};
    window.declared_steps = false;
  } else {
    LLMPROF_TRY(add_step_names(arguments, window));
  }
  LLMPROF_TRY(record::check(window));
  return window;
}

// The options of `record` that say what of a GPU is recorded, as the collectors are told (libs/collect/settings.h).

namespace {

struct Word {
  std::string_view name;
  std::uint64_t value;
};
constexpr Word kGpu[] = {{"kernels", 1}, {"memory", 2}, {"waits", 4}, {"api", 8}, {"overhead", 16}};
constexpr Word kKernels[] = {{"all", 0}, {"sampled", 1}};
constexpr Word kRests[] = {{"none", 0}, {"watching", 1}, {"everything", 2}};
constexpr Word kGraphs[] = {{"launch", 0}, {"sampled", 1}, {"all", 2}};

template <std::size_t N>
Result<std::uint64_t> value_of(const Word (&words)[N], std::string_view flag, std::string_view name) {
  std::string known;
  for (const Word& word : words) {
    if (word.name == name) return word.value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word.name);
  }
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not known", flag, name), "one of " + known};
}

// Kernels are always among them: the rest is told beside them.
Result<std::uint64_t> gpu_bits(std::string_view text) {
  std::uint64_t bits = 1;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = text.find(',');
    LLMPROF_LET(const std::uint64_t bit, value_of(kGpu, "--gpu", text.substr(0, comma)));
    bits |= bit;
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return bits;
}

}  // namespace

Result<record::RestOption> rest_option(const Arguments& arguments) {
  const std::string rests = arguments.get("--rests");
  record::RestOption option;
  if (rests.empty()) return option;
  const std::size_t colon = rests.find(':');
  LLMPROF_LET(const std::uint64_t of, value_of(kRests, "--rests", std::string_view(rests).substr(0, colon)));
  option.of = static_cast<record::RestOption::Of>(of);
  if (colon == std::string::npos) return option;
  LLMPROF_LET(const std::int64_t lasts_ns, record::parse_duration(rests.substr(colon + 1)));
  if (lasts_ns < 1'000'000) return Error{ErrorCode::kUsage, "--rests: a rest lasts 1 ms at least", ""};
  option.lasts_ns = static_cast<std::uint64_t>(lasts_ns);
  return option;
}

Result<record::CollectorSettings> collector_settings(const Arguments& arguments) {
  record::CollectorSettings settings;
  const std::string gpu = arguments.get("--gpu"), graphs = arguments.get("--graphs");
  const std::string stacks = arguments.get("--stacks"), kernels = arguments.get("--kernels");
  if (arguments.on("--no-gpu")) {
    if (!gpu.empty() || !graphs.empty() || !stacks.empty() || !kernels.empty()) {
      return Error{ErrorCode::kUsage, "--no-gpu records nothing of the GPU",
                   "leave out --gpu, --kernels, --graphs and --stacks"};
    }
    settings.gpu = 0;
  }
  if (!stacks.empty() && arguments.on("--no-stacks")) {
    return Error{ErrorCode::kUsage, "--stacks asks for stacks and --no-stacks for none", "leave out one of them"};
  }
  if (!gpu.empty()) {
    LLMPROF_LET(settings.gpu, gpu_bits(gpu));
  }
  if (!graphs.empty()) {
    LLMPROF_LET(settings.graphs, value_of(kGraphs, "--graphs", graphs));
  }
  if (!kernels.empty()) {
    LLMPROF_LET(settings.kernels, value_of(kKernels, "--kernels", kernels));
  }
  if (!stacks.empty()) {
    LLMPROF_LET(settings.stacks, record::parse_stacks(stacks));
  }
  return settings;
}

// The options of `record` that say which hardware counters are read, over what, and at what cost.

namespace {

using record::CounterMethod;
using record::CounterOptions;

constexpr std::int64_t kMostHot = 50;

Error usage(std::string message, std::string hint) { return {ErrorCode::kUsage, std::move(message), std::move(hint)}; }

// Options that say how; without --counters there is nothing to say it of.
Result<void> check_alone(const Arguments& arguments) {
  for (const std::string_view flag : {"--counters-method", "--counters-period", "--counters-range",
                                      "--counters-kernels", "--counters-hot", "--counters-from", "--counters-budget"}) {
    if (arguments.given(flag)) return usage(fmt::format("{} says how to count, not what", flag), "add --counters SET");
  }
  if (arguments.on("--replay")) return usage("--replay is for counters", "add --counters SET");
  return {};
}

Result<CounterMethod> method(const Arguments& arguments, const CounterOptions& options) {
  const std::string text = arguments.get("--counters-method");
  if (text == "range") return CounterMethod::kRange;
  if (text == "sampled") return CounterMethod::kSampled;
  if (text == "kernel") return CounterMethod::kKernel;
  if (!text.empty() && text != "auto") {
    return usage(fmt::format("--counters-method: '{}' is not known", text), "one of auto, range, sampled, kernel");
  }
  if (!options.kernels.empty()) return CounterMethod::kKernel;
  return arguments.given("--counters-period") ? CounterMethod::kSampled : CounterMethod::kRange;
}

Result<double> number(const Arguments& arguments, std::string_view flag, double most) {
  return number_in<double>(arguments, flag, fmt::format("a number from 0 to {:g}", most), 0, most);
}

// The names by which the analysis knows a step or a stage of steps; loading and warming up are not measured.
Result<std::vector<std::string>> step_names(const Arguments& arguments) {
  LLMPROF_LET(const std::vector<analyze::RangePattern> patterns, analyze::range_patterns(arguments.get("--ranges")));
  std::vector<std::string> names;
  for (const bool container : {false, true}) {
    for (const analyze::RangePattern& row : patterns) {
      if (row.container != container || row.stage == "load" || row.stage == "warm-up") continue;
      if (container ? row.stage.empty() || row.stage == "training" : row.kind == analyze::RangeKind::kStep)
        names.push_back(row.pattern);
    }
  }
  return names;
}

Result<std::vector<std::string>> kernels_with_most_time(const std::string& path, std::int64_t most) {
  LLMPROF_LET(const trace::Run run, record::open_run(path, progress_line()));
  LLMPROF_LET(const auto table,
              run.query(fmt::format("SELECT k.name FROM kernel k JOIN device d ON d.id = k.device_id WHERE d.kind = "
                                    "'gpu' AND k.name IS NOT NULL GROUP BY k.name ORDER BY sum(k.end_ns - k.begin_ns) "
                                    "DESC, k.name LIMIT {}",
                                    most)));
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.push_back(row[0].text);
  if (names.empty()) return Error{ErrorCode::kUsage, fmt::format("{} holds no kernels of a GPU", path), ""};
  return names;
}

Result<std::vector<std::string>> hot_kernels(const Arguments& arguments) {
  const bool hot = arguments.given("--counters-hot"), from = arguments.given("--counters-from");
  if (hot != from) {
    return usage("--counters-hot and --counters-from go together: the N kernels with the most time of RUN",
                 "--counters-hot N --counters-from RUN");
  }
  if (!hot) return std::vector<std::string>{};
  LLMPROF_LET(const double most, number(arguments, "--counters-hot", kMostHot));
  if (most < 1) return usage("--counters-hot 0 measures nothing", "name a number from 1 to 50");
  return kernels_with_most_time(arguments.get("--counters-from"), static_cast<std::int64_t>(most));
}

void add_kernel(const std::string& name, bool wildcards, CounterOptions& options) {
  const bool again = std::ranges::find(options.kernels, name, &record::NamedKernel::name) != options.kernels.end();
  if (!again) options.kernels.push_back({name, record::mangled_patterns(name, wildcards)});
}

Result<void> read_kernels(const Arguments& arguments, CounterOptions& options) {
  for (const std::string& name : record::split_names(arguments.get("--counters-kernels"))) {
    add_kernel(name, true, options);
  }
  LLMPROF_LET(const std::vector<std::string> hot, hot_kernels(arguments));
  for (const std::string& name : hot) add_kernel(name, false, options);
  return {};
}

Result<void> read_ranges(const Arguments& arguments, CounterOptions& options) {
  for (const std::string& words : arguments.all("--counters-range")) {
    for (std::string& name : record::split_names(words)) options.ranges.push_back(std::move(name));
  }
  options.own_ranges = !options.ranges.empty();
  if (options.own_ranges || options.method != CounterMethod::kRange) return {};
  LLMPROF_LET(options.ranges, step_names(arguments));
  return {};
}

Result<void> read_set(const Arguments& arguments, CounterOptions& options) {
  LLMPROF_TRY(read_kernels(arguments, options));
  LLMPROF_LET(options.method, method(arguments, options));
  LLMPROF_TRY(read_ranges(arguments, options));
  options.replay = arguments.on("--replay");
  if (arguments.given("--counters-period")) {
    if (options.method != CounterMethod::kSampled) {
      return usage("--counters-period is the time between samples", "use it with --counters-method sampled");
    }
    LLMPROF_LET(const std::int64_t period_ns, record::parse_moment(arguments.get("--counters-period")));
    options.period = std::chrono::nanoseconds(period_ns);
  }
  options.budget = record::default_budget(options.set);
  if (!arguments.given("--counters-budget")) return {};
  if (options.method == CounterMethod::kSampled) {
    return usage("--counters-budget is for windows; samples take no time from the program",
                 "choose --counters-period instead");
  }
  LLMPROF_LET(const double percent, number(arguments, "--counters-budget", 100));
  options.budget = percent / 100;
  return {};
}

}  // namespace

Error with_command_hint(Error error, const std::vector<std::string>& command) {
  if (error.code != ErrorCode::kNotFound || command.empty()) return error;
  if (command.front().ends_with(".py") && base::is_file(command.front())) {
    error.hint = fmt::format("llmprof record python3 {}", fmt::join(command, " "));
    return error;
  }
  const std::vector<Option> options = find_verb("record")->all_options();
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view word = std::string_view(command[i]).substr(0, command[i].find('='));
    const auto is = [&](const Option& option) { return option.flag == word || option.short_flag == word; };
    if (word.size() < 2 || std::ranges::none_of(options, is)) continue;
    error.hint += fmt::format("; options of record, such as {}, come before the command", word);
    break;
  }
  return error;
}

Result<CounterOptions> counter_options(const Arguments& arguments) {
  CounterOptions options;
  options.set = arguments.get("--counters");
  const bool with = arguments.on("--stalls"), only = arguments.on("--stalls-only");
  if (with && only) return usage("--stalls and --stalls-only are the same but for kernel records", "leave out one");
  options.stalls = only ? record::StallMode::kOnly : with ? record::StallMode::kWith : record::StallMode::kOff;
  if (options.any() && arguments.on("--no-gpu")) {
    return usage("--no-gpu records nothing of the GPU", "leave out --counters and --stalls");
  }
  if (options.set.empty()) {
    LLMPROF_TRY(check_alone(arguments));
  } else {
    LLMPROF_TRY(read_set(arguments, options));
  }
  LLMPROF_TRY(record::check(options));
  return options;
}

}  // namespace llmprof::app

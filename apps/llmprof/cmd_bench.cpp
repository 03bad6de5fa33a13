// llmprof bench: measures operators over sweeps of their sizes, and compares such measurements.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/human.h"
#include "base/text_table.h"
#include "bench/sweep/run.h"
#include "bench_verb.h"
#include "given_names.h"
#include "hw/environment.h"
#include "hw/peaks.h"
#include "program_kernels.h"
#include "record/record.h"
#include "record_verb.h"
#include "trace/run.h"

namespace llmprof::app {

extern const Verb kBench;

namespace bench_verb {
namespace {

constexpr int kInterrupted = 130;

constexpr Option kOptions[] = {
    {"--output", "-o", "LLMPROF_OUTPUT", "NAME", "",
     "Name of the run; `x` and `x.llmprof` are the same. Without it: bench and the time."},
    {"--force", "-f", "", "", "", "Replace an existing run of that name. A folder that is not a run is never touched."},
    {"--resume", "", "", "NAME", "",
     "Go on with a benchmark that was stopped or killed: the same sweep, without what is done."},
    {"--device", "", "", "NAME", "", "`cpu`, `cuda` or `cuda:1`. Without it: the first GPU, else the CPU."},
    {"--dtype", "", "", "TYPES", "", "Types, as in bf16,fp8. Without it: the operator's own; float32 on a CPU."},
    {"--like", "", "", "MODEL", "",
     "The shapes of this model's operators: a built-in name or a path. Takes `--batch`, `--seq` (prefill) and "
     "`--context` "
     "(decode)."},
    {"--for", "", "", "MODEL", "",
     "Operator tables: all that a prediction of this model needs, at the sizes that engines run. Takes `--tp`, one "
     "`--dtype`, `--max-…` and `--budget`."},
    {"--python", "", "", "PROGRAM", "",
     "With `--for RUN`: the interpreter that has the program's PyTorch. Without it: the one it was started with."},
    {"--tp", "", "", "N", "1", "With `--for`: the shapes of one rank of so many (tensor parallel)."},
    {"--max-tokens", "", "", "N", "", "With `--for`: tokens of a step at most. Without it: 8192; 512 on a CPU."},
    {"--max-batch", "", "", "N", "",
     "With `--for`: sequences that decode together at most. Without it: 256; 16 on a CPU."},
    {"--max-context", "", "", "N", "",
     "With `--for`: tokens of a sequence at most. Without it: 32768, 2048 on a CPU, no more than the model has."},
    {"--budget", "", "", "TIME", "",
     "With `--for`: about how long it may take, as in 5min; each point is measured for a shorter time then. Without "
     "it: 5 "
     "minutes; 90 s on a CPU."},
    {"--from", "", "", "RUN", "", "The shapes of the matrix products of a recorded run, and those around them."},
    {"--top", "", "", "N", "10", "With `--from`: so many shapes, those with the most time."},
    {"--cache", "", "", "STATE", "cold", "`cold`: data comes from memory; `hot`: as the call before left it; `both`."},
    {"--impl", "", "", "NAME", "", "The implementation to measure on a GPU, or `all`. Without it: the first that can."},
    {"--limit", "", "", "SECONDS", "3", "Time for one point at most, warm-up included."},
    {"--min-samples", "", "", "N", "10", "Samples of each point at least."},
    {"--spread", "", "", "PERCENT", "0.5", "Enough samples when the standard error of the mean is this share of it."},
    {"--no-check", "", "", "", "", "Do not check results against the reference before timing them."},
    {"--no-graph", "", "", "", "", "On a GPU: do not also time calls inside a replayed graph."},
    {"--threads", "", "", "N", "", "Threads of a CPU. Without it: as many as the process may use."},
    {"--seed", "", "", "N", "1", "Of the random data."},
    {"--no-peaks", "", "", "", "",
     "Do not measure this machine's peaks if none are known; shares of the roof stay unknown."},
    {"--csv", "", "", "FILE", "", "Write the points as CSV, too."},
    {"--plot", "", "", "FILE", "",
     "Plot time over each axis, and the points under the roofline: .svg or .png files, or `-` for the terminal."},
    {"--list", "", "", "", "", "List the operators with their axes, types and implementations."},
    {"--compare", "", "", "", "", "Compare two runs of benchmarks: `--compare A B`."},
    {"--threshold", "", "", "PERCENT", "1", "With `--compare`: smaller differences count as the same."},
    {"--json", "", "", "", "", "Print JSON (docs/format/json-bench.md)."},
};
constexpr Positional kPositionals[] = {{"OPERATOR", false, true}};

void say(std::string_view text) { fmt::print(stderr, "llmprof: {}\n", base::printable(text)); }

// Where stderr is no terminal, a line every ten seconds tells a log what a terminal would show.
base::Progress bench_progress() {
  using Clock = std::chrono::steady_clock;
  auto last = std::make_shared<Clock::time_point>(Clock::now());
  return [last, line = progress_line(), terminal = ::isatty(STDERR_FILENO) == 1](const base::ProgressUpdate& update) {
    if (!terminal && Clock::now() - *last > std::chrono::seconds(10)) {
      *last = Clock::now();
      const std::string left = update.left_seconds ? ", " + base::human_ns(*update.left_seconds * 1e9) + " left" : "";
      say(fmt::format("{}: {:.0f} of {:.0f} {}{}", update.what, update.done, update.total, update.unit, left));
    }
    return line(update);
  };
}

std::vector<std::string> own_command() {
  std::vector<std::string> words;
  const auto text = base::read_file("/proc/self/cmdline", 1u << 20);
  if (!text) return {"llmprof", "bench"};
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    words.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  if (!words.empty()) words.front() = std::filesystem::path(words.front()).filename().string();
  return hw::redact(words);
}

std::string output_folder(const Arguments& arguments) {
  if (arguments.given("--output")) return trace::run_folder(arguments.get("--output"));
  const std::string name = record::default_name("bench", std::time(nullptr) * std::int64_t{1'000'000'000});
  std::string folder = trace::run_folder(name);
  for (int i = 2; base::is_directory(folder); ++i) folder = trace::run_folder(fmt::format("{}-{}", name, i));
  return folder;
}

// Shares of the roof need the CPU's peaks. Only Ctrl-C is an error.
Result<void> find_peaks(const Arguments& arguments, const std::string& device) {
  if (arguments.on("--no-peaks") || bench::kind_of_device(device) != bench::DeviceKind::kCpu) return {};
  const hw::Device cpu = hw::probe_cpu();
  const std::vector<hw::Peak> known = hw::cached_peaks(cpu);
  if (hw::find_peak(known, "bandwidth", hw::kMemoryStream) != nullptr) return {};
  say("measuring what this machine can do (once, at most 3 s; --no-peaks skips it)");
  const auto measured = hw::measure_cpu_peaks(cpu, progress_line());
  if (!measured) {
    if (measured.error().code == ErrorCode::kInterrupted) return measured.error();
    say("the peaks could not be measured: " + measured.error().message);
    return {};
  }
  (void)hw::store_peaks(cpu, hw::merged_peaks(known, *measured));  // else they are measured again
  return {};
}

Result<void> check(const Arguments& arguments) {
  const auto refuse = [](std::string message) { return Error{ErrorCode::kUsage, std::move(message), ""}; };
  if (arguments.given("--like") + arguments.given("--from") + arguments.given("--for") > 1) {
    return refuse("--like, --from and --for exclude each other");
  }
  for (const char* flag : {"--tp", "--max-tokens", "--max-batch", "--max-context", "--budget"}) {
    if (arguments.typed(flag) && !arguments.given("--for")) return refuse(fmt::format("{} needs --for MODEL", flag));
  }
  const std::string plot = arguments.get("--plot");
  if (arguments.given("--plot")) LLMPROF_TRY(check_ending("--plot", plot, {".svg", ".png"}));
  if (arguments.given("--csv")) LLMPROF_TRY(check_ending("--csv", arguments.get("--csv"), {".csv"}));
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  if (plot == "-" && arguments.on("--json")) return refuse("--json and --plot - exclude each other");
  if (!arguments.given("--resume")) return {};
  if (!arguments.positionals.empty()) return refuse("--resume goes on with the sweep as it was: it takes no operator");
  for (const Option& option : kBench.all_options()) {
    const bool output = option.flag == "--resume" || option.flag == "--csv" || option.flag == "--plot" ||
                        option.flag == "--json" || option.flag == "--no-peaks" || option.flag == "--output";
    if (!output && arguments.typed(option.flag)) {
      return refuse(fmt::format("--resume goes on with the sweep as it was: it does not take {}", option.flag));
    }
  }
  return {};
}

bench::OpenBench opener(const Arguments& arguments) {
  return [peaks = !arguments.on("--no-peaks")](const std::string& device, bench::BenchOptions options) {
    options.measure_peaks = peaks;
    return bench::open_bench(device, options);
  };
}

struct Done {
  std::string folder;
  bench::SweepOutcome outcome;
};

Result<Done> resume(const Arguments& arguments) {
  Done done{.folder = trace::run_folder(arguments.get("--resume")), .outcome = {}};
  LLMPROF_LET(done.outcome, bench::resume_sweep(done.folder, opener(arguments), bench_progress()));
  if (done.outcome.was_complete) say(short_path(done.folder) + " is complete already");
  return done;
}

Result<Done> measure(const Arguments& arguments) {
  bench::Sweep sweep;
  LLMPROF_LET(sweep.options, bench_options(arguments));
  LLMPROF_LET(BenchPlan plan, bench_plan(arguments));
  for (const std::string& note : plan.notes) say("left out: " + note);
  if (arguments.given("--for")) {
    LLMPROF_LET(sweep.options, for_options(arguments, sweep.options, plan.points.size()));
  }
  sweep.device = arguments.get("--device");
  sweep.command = own_command();
  sweep.points = std::move(plan.points);
  LLMPROF_TRY(find_peaks(arguments, sweep.device));
  Done done{.folder = output_folder(arguments), .outcome = {}};
  LLMPROF_LET(done.outcome, bench::run_sweep(std::move(sweep), done.folder, arguments.on("--force"), opener(arguments),
                                             bench_progress()));
  return done;
}

// Hundreds of points are shown by their parts, unless the points were asked for.
Result<void> show(const Arguments& arguments, const Done& done) {
  const bool points = arguments.on("--json") || arguments.given("--csv") || arguments.given("--plot");
  bool tables = false;
  if (!done.outcome.interrupted) {
    LLMPROF_LET(tables, keep_and_show_tables(done.folder, !points));
  }
  if (tables && !points) return {};
  return show_bench(arguments, done.folder);
}

Result<int> run(const Arguments& arguments) {
  if (arguments.on("--list")) return list_operators(arguments);
  if (arguments.on("--compare")) return compare_runs(arguments);
  LLMPROF_TRY(check(arguments));
  if (arguments.given("--for") && is_run(arguments.get("--for"))) return measure_kernels(arguments);
  LLMPROF_LET(const Done done, arguments.given("--resume") ? resume(arguments) : measure(arguments));
  LLMPROF_TRY(show(arguments, done));
  const std::string path = short_path(done.folder);
  if (done.outcome.interrupted) {
    say(fmt::format("interrupted: {} of {} points are in {}", done.outcome.done, done.outcome.points, path));
    fmt::print(stderr, "hint: llmprof bench --resume {} goes on\n", path);
    return kInterrupted;
  }
  if (!arguments.on("--json")) say(fmt::format("the run is {}", path));
  return 0;
}

}  // namespace
}  // namespace bench_verb

const Verb kBench{"bench",
                  "measure operators over sweeps of their sizes, and compare",
                  bench_verb::kOptions,
                  bench_verb::kPositionals,
                  false,
                  bench_verb::run,
                  axis_options};

}  // namespace llmprof::app

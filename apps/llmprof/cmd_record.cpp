// llmprof record cmd args…: profiles a program. stdout belongs to the program; all of ours goes to stderr.

#include <fmt/format.h>

#include <unistd.h>

#include <filesystem>
#include <memory>

#include "analyze/job/job.h"
#include "analyze/names/ranges.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "given_names.h"
#include "record/control/flight_recorder.h"
#include "record/watch/counter_plan.h"
#include "record_verb.h"
#include "report_verb.h"
#include "run_head.h"
#include "verb.h"

namespace llmprof::app {
namespace record_verb {
namespace {

constexpr int kNotLaunched = 125;
constexpr int kInterrupted = 130;

constexpr Option kOptions[] = {
    {"--output", "-o", "LLMPROF_OUTPUT", "NAME", "",
     "Name of the run; `x` and `x.llmprof` are the same. Without it: the command and the time."},
    {"--force", "-f", "", "", "", "Replace an existing run of that name. A folder that is not a run is never touched."},
    {"--max-size", "", "LLMPROF_MAX_SIZE", "SIZE", "10GiB",
     "Stop collecting when the logs reach this size; the program goes on. With `--last`: drop the oldest instead."},
    {"--delay", "", "", "TIME", "", "Record from this long after the start on: 500ms, 10s, 5m, 1h."},
    {"--duration", "", "", "TIME", "", "Record this long; the program goes on unrecorded."},
    {"--start-range", "", "", "NAME", "",
     "Record, in each process, from its first range of this name on (after `--delay`, if given). May end in `*`."},
    {"--steps", "", "", "A:B", "",
     "Record, in each process, its steps A to B-1, counted from 0; `A:` and `:B` work too."},
    {"--step-range", "", "", "NAME", "", "With `--steps`: ranges of this name are the steps. May end in `*`."},
    {"--ranges", "", "LLMPROF_RANGES", "FILE", "",
     "Rules for names of ranges, a TOML file: what `--steps` and `--counters` take for steps. `llmprof.toml` of this "
     "folder unless given; see `llmprof ranges`."},
    {"--last", "", "", "TIME", "", "Keep only the end: so much as came last when the program ends, or a dump is made."},
    {"--control", "", "", "SOCKET", "",
     "Start and stop through this socket while the program runs: `llmprof control SOCKET start`, `stop`, `status`, "
     "`dump`."},
    {"--start-stopped", "", "", "", "", "With `--control`: record nothing until it is started."},
    {"--profiler-api", "", "", "", "",
     "Record, in each process, between its calls of cudaProfilerStart and cudaProfilerStop only."},
    {"--dump", "", "", "RECORDING", "",
     "Make a run of what a recording that goes on holds by now: its name, or the pid of llmprof or of the program."},
    {"--model", "", "", "NAME|PATH", "",
     "The model that the program runs, for the reports: a built-in name, a folder, a config.json or a .gguf file. "
     "Without it: what the program declares, or the files it was seen to use."},
    {"--parallel", "", "", "GROUPS", "",
     "How ranks divide the model: tp=2,pp=4,dp=2,ep=8 (tensor, pipeline, data, expert), in the order in which ranks "
     "are "
     "counted, for the reports."},
    {"--pid", "", "", "PID", "",
     "Attach to a running process and its children instead of starting a command: CPU, memory, stacks and GPU "
     "readings, "
     "seen from outside. Nothing is loaded into it, so kernels, ranges and shapes are not seen. Ends with "
     "`--duration`, "
     "at Ctrl-C, or with the process."},
    {"--no-peaks", "", "", "", "", "Do not measure this machine's peaks if none are cached; MFU and MBU stay unknown."},
    {"--no-blas", "", "", "", "", "Do not preload the BLAS hook: no GEMM shapes, no CPU kernels."},
    {"--no-nvtx", "", "", "", "", "Do not listen to NVTX annotations."},
    {"--no-gpu", "", "", "", "", "Record nothing of the GPU; BLAS calls keep their shapes."},
    {"--gpu", "", "", "KINDS", "",
     "What to record of the GPU beside kernels, copies and graphs: memory, waits, api, overhead; several with commas."},
    {"--kernels", "", "", "HOW", "",
     "Kernels outside of CUDA graphs: `all` times every one; `sampled` notes every launch, and of a program that makes "
     "more than 10,000 a second it times those of one interval in eight, and the rare ones. The other times are "
     "estimated "
     "from the same launches, and marked. Without it: sampled."},
    {"--graphs", "", "", "HOW", "",
     "CUDA graphs: `sampled` records every launch as a whole and the nodes of a few of each graph, `all` the nodes of "
     "every launch (costs more), `launch` no nodes. Without it: sampled."},
    {"--rests", "", "", "WHAT", "",
     "Moments in which what recording costs the program shows: `watching`, on a machine with a GPU, 60 ms in 2.4 s in "
     "which the program is not watched from outside and no device is read; `everything`, 0.2 s in every second in "
     "which kernels are not recorded either, for those who want to know the whole cost (`everything:60ms`: 60 ms, and "
     "as long between); `none`. Without it: watching."},
    {"--stacks", "", "", "KINDS", "",
     "Note the stack of every launch on a GPU: python, native or python,native. Costs the program about 0.2 µs a "
     "launch."},
    {"--counters", "", "", "SET", "",
     "Read hardware counters: a set (light, memory, access, compute, stalls, roofline, links, full), counters or "
     "metrics of "
     "the "
     "chip, with commas; `llmprof counters` lists them."},
    {"--counters-method", "", "", "HOW", "auto",
     "`range`: over steps and stages; `kernel`: over single kernels; `sampled`: of the whole device at a fixed period, "
     "from outside the program. `auto`: kernel if kernels are named, sampled if a period is, else range."},
    {"--counters-period", "", "", "TIME", "1ms", "Time between samples, 100us to 10ms."},
    {"--counters-range", "", "", "PATTERN", "",
     "Ranges to measure, by name; may hold `*` and `?`; several with commas. Without it: steps and stages.", true},
    {"--counters-kernels", "", "", "PATTERNS", "",
     "Kernels to measure one by one, by name; may hold `*` and `?`; several with commas."},
    {"--counters-hot", "", "", "N", "",
     "Measure the N kernels with the most time of an earlier run: `--counters-from`."},
    {"--counters-from", "", "", "RUN", "", "The run that `--counters-hot` looks into."},
    {"--counters-budget", "", "", "PCT", "",
     "Time that measuring may take of the program's, in percent, set-up apart; 0: no limit. Without it: 1.5 for what "
     "needs one pass, else 4."},
    {"--replay", "", "", "", "",
     "With `--counters-kernels`: execute a kernel again for every pass, its memory restored, instead of sharing the "
     "passes among launches."},
    {"--stalls", "", "", "", "",
     "Sample where the warps of kernels wait, and why. Graphs are then recorded as a whole."},
    {"--stalls-only", "", "", "", "", "Like --stalls, without kernel and graph records (lowest overhead)."},
    {"--modules", "", "", "", "",
     "Record the modules of PyTorch models as ranges, and calls of models as steps, without changes to the program. "
     "Costs "
     "it less than a µs per call of a module."},
    {"--requests", "", "", "", "",
     "Record which requests every step of an engine works for, and what becomes of them, without changes to the "
     "program: transformers' continuous batching, vLLM, SGLang. Costs about 1 µs per request and step."},
    {"--no-host", "", "", "", "", "Do not watch the processes from outside: no memory, no CPU time, no stacks."},
    {"--usage-hz", "", "LLMPROF_USAGE_HZ", "N", "50",
     "Readings of memory and CPU time per second and process, at most: fewer when there are many processes."},
    {"--no-stacks", "", "", "", "", "Do not sample CPU stacks: no function table."},
    {"--sample-hz", "", "LLMPROF_SAMPLE_HZ", "N", "99", "Stack samples per second of CPU time of a thread."},
    {"--no-telemetry", "", "", "", "", "Do not read power, clocks, memory and activity of the GPUs."},
    {"--telemetry-hz", "", "LLMPROF_TELEMETRY_HZ", "N", "10",
     "Readings of a GPU's power and energy per second, at most; everything else is read once a second."},
    {"--scrape", "", "", "URL", "",
     "Keep a server's metrics beside the recording, on its clock: http://127.0.0.1:8000/metrics, read every --scrape-every."},
    {"--scrape-every", "", "", "TIME", "1s", "Time between two readings of --scrape."},
    {"--keep-capture", "", "", "", "", "Keep the capture logs in the run after they were read."},
    {"--no-ingest", "", "", "", "", "Leave the logs as they are; the first verb that opens the run reads them."},
    {"--no-report", "", "LLMPROF_NO_REPORT", "", "", "Do not show the report's screen at the end."},
    {"--quiet", "-q", "", "", "", "Print errors only."},
    {"--json", "", "", "", "", "Print the tally as one line of JSON, the last line of stderr."},
};

Result<std::uint32_t> parse_hz(const Arguments& arguments, std::string_view flag) {
  return number_in<std::uint32_t>(arguments, flag, "a number from 1 to 10000", 1, 10'000);
}

Result<record::HostOptions> host_options(const Arguments& arguments) {
  record::HostOptions host;
  host.on = !arguments.on("--no-host");
  host.stacks = !arguments.on("--no-stacks");
  LLMPROF_LET(host.usage_hz, parse_hz(arguments, "--usage-hz"));
  LLMPROF_LET(host.sample_hz, parse_hz(arguments, "--sample-hz"));
  return host;
}

void say(std::string_view text) { fmt::print(stderr, "llmprof: {}\n", base::printable(text)); }

// A line per phase, begun when its work begins: the time the program itself took is not ours to show.
base::Progress phased_progress() {
  struct Phase {
    std::string what;
    base::Progress line;
  };
  auto phase = std::make_shared<Phase>();
  return [phase](const base::ProgressUpdate& update) {
    if (!phase->line || phase->what != update.what) {
      phase->line = nullptr;  // clears the old line before the new one begins
      phase->what = update.what;
      phase->line = progress_line();
    }
    return phase->line(update);
  };
}

void tell_text(const record::Outcome& outcome, bool screen = false) {
  const std::string path = short_path(outcome.folder);
  if (!outcome.tally) {
    say(fmt::format("{} of logs in {}", base::human_bytes(static_cast<double>(outcome.log_bytes)), path));
    return;
  }
  const record::IngestTally& tally = *outcome.tally;
  const auto count = [](std::int64_t value, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", base::human_count(static_cast<double>(value)), value == 1 ? one : many);
  };
  const std::string elapsed =
      outcome.elapsed_ns == 0 ? "dumped" : base::human_ns(static_cast<double>(outcome.elapsed_ns));
  const std::string graphs =
      tally.graph_launches == 0 ? "" : count(tally.graph_launches, "graph launch, ", "graph launches, ");
  say(fmt::format("{}: {}, {}{}, {}, {}; {} in {}", elapsed, count(tally.kernels, "kernel", "kernels"), graphs,
                  count(tally.ranges, "range", "ranges"), count(tally.threads, "thread", "threads"),
                  count(tally.processes, "process", "processes"),
                  base::human_bytes(static_cast<double>(tally.run_bytes)), path));
  if (screen) return;
  for (const record::LossTotal& lost : tally.losses) {
    const std::string line = trace::describe(loss_entry(lost.loss, lost.count, lost.detail));
    fmt::print(stderr, "  {}\n", base::printable(line));
  }
  say(fmt::format("next: llmprof report {}", path));
}

// The run is good whatever becomes of its report, and the exit status is the program's.
void show_screen(const std::string& folder) {
  const Result<std::string> screen = screen_of(short_path(folder), colour_wanted(STDERR_FILENO));
  if (!screen) {
    fail(screen.error());
    return;
  }
  fmt::print(stderr, "\n{}", *screen);
}

void tell_json(const record::Outcome& outcome, int exit_status, const record::CounterOptions& counters = {}) {
  base::Json json = json_head("llmprof.record");
  json["run"] = outcome.folder.empty() ? base::Json(nullptr) : base::Json{{"path", outcome.folder}};
  json["coverage"] = nullptr;
  json["counters"] = trace::counters_to_json(record::asked(counters));
  json["losses"] = base::Json::array();
  if (outcome.tally) {
    const record::IngestTally& tally = *outcome.tally;
    json["coverage"] = {{"processes", tally.processes}, {"threads", tally.threads}, {"kernels", tally.kernels},
                        {"ranges", tally.ranges},       {"gemms", tally.gemms},     {"records", tally.records}};
    for (const record::LossTotal& lost : tally.losses)
      json["losses"].push_back(base::fields_json(loss_entry(lost.loss, lost.count, lost.detail)));
  }
  json["exit_status"] = exit_status;
  json["elapsed_ns"] = outcome.elapsed_ns;
  json["log_bytes"] = outcome.log_bytes;
  json["followed_bytes"] = outcome.tally ? base::Json(outcome.tally->followed_bytes) : base::Json(nullptr);
  json["run_bytes"] = outcome.tally ? base::Json(outcome.tally->run_bytes) : base::Json(nullptr);
  json["why"] = outcome.problem ? base::Json(outcome.problem->message) : base::Json(nullptr);
  fmt::print(stderr, "{}\n", base::to_line(json));
}

// The command's own status wins; ours shows only where the command had nothing to complain about.
int status_of(const record::Outcome& outcome) {
  if (outcome.exit_status != 0 || !outcome.problem) return outcome.exit_status;
  return outcome.problem->code == ErrorCode::kInterrupted ? kInterrupted : 2;
}

Result<int> dump(const Arguments& arguments) {
  if (!arguments.command.empty()) {
    return Error{ErrorCode::kUsage, "--dump takes no command", "llmprof record --dump RECORDING -o NAME"};
  }
  const record::DumpOptions options{
      .recording = arguments.get("--dump"), .output = arguments.get("--output"), .force = arguments.on("--force")};
  LLMPROF_LET(const auto dumped, record::dump(options, phased_progress()));
  record::Outcome outcome;
  outcome.folder = dumped.folder;
  outcome.tally = dumped.tally;
  outcome.log_bytes = static_cast<std::uint64_t>(dumped.tally.log_bytes);
  if (arguments.on("--json")) {
    tell_json(outcome, 0);
  } else if (!arguments.on("--quiet")) {
    tell_text(outcome);
  }
  return 0;
}

// 0: none was asked for. What only code inside the program can do is refused, rather than left out.
Result<std::int64_t> attached_pid(const Arguments& arguments) {
  if (arguments.get("--pid").empty()) return 0;
  LLMPROF_LET(const auto pid, number_in<std::int64_t>(arguments, "--pid", "a process id", 1, INT32_MAX));
  if (!arguments.command.empty())
    return Error{ErrorCode::kUsage, "--pid takes no command", "llmprof record --pid PID --duration 10s"};
  for (const char* flag :
       {"--delay", "--start-range", "--steps", "--step-range", "--last", "--control", "--start-stopped",
        "--profiler-api", "--gpu", "--stacks", "--counters", "--stalls", "--stalls-only", "--modules", "--requests"}) {
    if (arguments.given(flag))
      return Error{ErrorCode::kUsage, fmt::format("{} needs llmprof inside the program: --pid stays outside", flag),
                   "llmprof record -- COMMAND ARGS…"};
  }
  return pid;
}

Result<int> run(const Arguments& arguments) {
  if (!arguments.get("--dump").empty()) return dump(arguments);
  record::RecordOptions options;
  LLMPROF_LET(options.pid, attached_pid(arguments));
  if (arguments.command.empty() && options.pid == 0) {
    return Error{ErrorCode::kUsage, "no command to record", "llmprof record COMMAND ARGS…"};
  }
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  LLMPROF_LET(options.max_bytes, record::parse_bytes(arguments.get("--max-size")));
  LLMPROF_LET(options.host, host_options(arguments));
  LLMPROF_LET(options.window, window_options(arguments));
  LLMPROF_LET(const std::int64_t telemetry_hz, parse_hz(arguments, "--telemetry-hz"));
  options.telemetry = {!arguments.on("--no-telemetry"), static_cast<double>(telemetry_hz)};
  if (const std::string url = arguments.get("--scrape"); !url.empty()) {
    LLMPROF_LET(options.scrape.target, record::parse_scrape_url(url));
    LLMPROF_LET(const std::int64_t every_ns, record::parse_duration(arguments.get("--scrape-every")));
    if (every_ns < 100'000'000) return Error{ErrorCode::kUsage, "--scrape-every: 100 ms at least", ""};
    options.scrape.every = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(every_ns));
  }
  LLMPROF_LET(options.collector, collector_settings(arguments));
  LLMPROF_LET(options.rests, rest_option(arguments));
  LLMPROF_LET(options.counters, counter_options(arguments));
  options.modules = arguments.on("--modules");
  options.requests = arguments.on("--requests");
  options.model = arguments.get("--model");
  options.parallel = arguments.get("--parallel");
  if (!options.parallel.empty()) LLMPROF_TRY(analyze::parse_groups(options.parallel));
  LLMPROF_LET(const auto rules, analyze::read_range_rules(arguments.get("--ranges")));
  options.range_rules = analyze::noted(rules);
  options.command = arguments.command;
  options.output = arguments.get("--output");
  options.force = arguments.on("--force");
  options.peaks = !arguments.on("--no-peaks");
  options.blas = !arguments.on("--no-blas");
  options.nvtx = !arguments.on("--no-nvtx");
  options.keep_capture = arguments.on("--keep-capture");
  options.ingest = !arguments.on("--no-ingest");
  const Tally tally = arguments.on("--json")        ? Tally::kJson
                      : arguments.on("--quiet")     ? Tally::kNone
                      : arguments.on("--no-report") ? Tally::kText
                                                    : Tally::kScreen;
  if (!arguments.on("--quiet")) options.announce = say;
  return record_and_tell(std::move(options), tally).exit_status;
}

}  // namespace
}  // namespace record_verb

std::string short_path(const std::string& path) {
  std::error_code ignored;
  const std::string relative = std::filesystem::proximate(path, ignored).string();
  return relative.empty() || relative.starts_with("..") ? path : relative;
}

Recorded record_and_tell(const record::RecordOptions& options, Tally tally) {
  const auto outcome = record::record(options, record_verb::phased_progress());
  if (!outcome) {
    fail(with_command_hint(outcome.error(), options.command));
    return {outcome.error().code == ErrorCode::kInterrupted ? record_verb::kInterrupted : record_verb::kNotLaunched, "",
            false};
  }
  const int exit_status = record_verb::status_of(*outcome);
  const bool launched = !outcome->folder.empty();
  if (outcome->problem) fail(with_command_hint(*outcome->problem, options.command));
  const bool screen = tally == Tally::kScreen && outcome->tally.has_value();
  if (launched && (tally == Tally::kText || tally == Tally::kScreen)) record_verb::tell_text(*outcome, screen);
  if (launched && screen) record_verb::show_screen(outcome->folder);
  if (tally == Tally::kJson) record_verb::tell_json(*outcome, exit_status, options.counters);
  return {exit_status, outcome->folder, outcome->tally.has_value()};
}

extern const Verb kRecord;
const Verb kRecord{"record", "profile a program", record_verb::kOptions, {}, true, record_verb::run};

}  // namespace llmprof::app

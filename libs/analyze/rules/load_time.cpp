// What loading the model waits for: the disk, the bus or the CPU.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace load_time {
namespace {

constexpr double kLeastNs = 1e9;
constexpr double kLeastShare = 0.1;  // of the wall time
constexpr std::int64_t kManySwitches = 100;
constexpr double kLeastWeights = 100e6;  // bytes to a device: without a stage load, that is what tells a model

// The loading thread's time: computing, copying to the device, and waiting for something else.
struct Split {
  double time = 0, copies = 0, cpu = 0, waiting = 0;
};

std::optional<Split> split_of(const LoadFacts& load) {
  if (!load.thread_cpu_ns && !load.process_cpu_ns) return std::nullopt;
  Split out{.time = static_cast<double>(load.time_ns())};
  out.copies = std::min(out.time, static_cast<double>(load.copy_ns));
  // The loading thread's own CPU time is what the load takes on the CPU. Where nothing came from storage, it can only
  // wait for other threads of its process: what these compute counts too.
  const double own = static_cast<double>(load.thread_cpu_ns.value_or(0));
  const double all = static_cast<double>(load.process_cpu_ns.value_or(0));
  const bool alone = load.thread_cpu_ns && load.read_bytes.value_or(1) > 0;
  const double on_cpu = std::min(out.time, alone ? own : std::max(own, all));
  out.cpu = std::max(0.0, std::min(on_cpu, out.time - out.copies));
  out.waiting = out.time - out.copies - out.cpu;
  return out;
}

std::string what(const LoadFacts& load) {
  return load.declared ? "Loading takes" : "The time before the first step is";
}

std::string within(const LoadFacts& load) { return fmt::format("BETWEEN {} AND {}", load.begin_ns, load.end_ns); }

void add_evidence(Finding& out, const LoadFacts& load, const Split& split) {
  const std::string usage =
      fmt::format("SELECT * FROM process_usage WHERE process_id = {} AND ts_ns {}", load.process_id, within(load));
  const std::string copies =
      load.copies == 0
          ? ""
          : fmt::format("SELECT * FROM copy WHERE direction = 'host_to_device' AND begin_ns {}", within(load));
  out.evidence.push_back(time_of("load.time", load.declared ? "stage load" : "begin of the process to its first step",
                                 split.time, "measured"));
  out.evidence.push_back(time_of(
      "load.cpu",
      load.thread_cpu_ns ? "on a CPU, copies left out: the loading thread and, if nothing was read, those it waits for"
                         : "CPU time of the process, copies left out; at most the time",
      split.cpu, load.thread_cpu_ns ? "inferred" : "measured",
      load.thread_cpu_ns
          ? fmt::format("SELECT * FROM sample WHERE thread_id = {} AND ts_ns {}", load.thread_id, within(load))
          : usage));
  out.evidence.push_back(time_of("load.copies", "copies from host to device", split.copies, "measured", copies));
  out.evidence.push_back(number("load.copied_bytes", "copied from host to device",
                                static_cast<double>(load.copied_bytes), "B", "measured", copies));
  out.evidence.push_back(
      time_of("load.waiting", "neither: waiting for the disk or for other threads", split.waiting, "inferred"));
  Evidence read = number("load.read_bytes", "read from storage", std::nullopt, "B", "measured", usage);
  if (load.read_bytes)
    read.value = static_cast<double>(*load.read_bytes);
  else
    read.why = "bytes read were not recorded";
  out.evidence.push_back(std::move(read));
  if (load.major_faults)
    out.evidence.push_back(number("load.major_faults", "page faults that waited for the disk",
                                  static_cast<double>(*load.major_faults), "", "measured", usage));
}

void by_cpu(Finding& out, const LoadFacts& load, const Split& split) {
  out.title = fmt::format("{} {}, {} of it on the CPU", what(load), base::human_ns(split.time),
                          base::human_percent(split.cpu / split.time));
  out.part = "CPU";
  out.text = fmt::format("{}, and {} were read from storage: neither the bus nor the disk holds it back.{}",
                         load.copies > 0 ? fmt::format("Copies to the device take {}", base::human_ns(split.copies))
                                         : "Nothing was copied to a device",
                         load.read_bytes ? base::human_bytes(static_cast<double>(*load.read_bytes)) : "unknown bytes",
                         load.function.empty() ? ""
                                               : fmt::format(" Most of the thread's CPU time, {}, is in {}.",
                                                             base::human_percent(load.function_share), load.function));
  out.advice.emplace_back(
      "Do not initialise weights that are loaded afterwards<torch>: build the model on the meta device "
      "(torch.device(\"meta\"), init_empty_weights, low_cpu_mem_usage)</torch>.");
  out.advice.emplace_back(
      "Store weights in the type they are used in and map them (safetensors), so that nothing is converted on the "
      "CPU.");
  out.advice.emplace_back("Initialise random weights on the device itself.");
  if (!load.declared)
    out.advice.emplace_back(
        "Some of it is the start of the program (imports, the first call of CUDA): a stage load around the loading "
        "would "
        "tell (docs/format/analysis.md).");
  set_gain(out, split.cpu, split.time,
           fmt::format("{} of {} on the CPU: all of it at most, if weights are mapped and copied as they are",
                       base::human_ns(split.cpu), base::human_ns(split.time)));
}

void by_copies(Finding& out, const LoadFacts& load, const Split& split) {
  const double rate = static_cast<double>(load.copied_bytes) / split.copies * 1e9;
  out.title = fmt::format("{} {}, {} of it copies to the device at {}", what(load), base::human_ns(split.time),
                          base::human_percent(split.copies / split.time), base::human_rate(rate, "B/s"));
  out.part = "copies";
  out.text = fmt::format("{} of the {} are copied from pageable memory.",
                         base::human_bytes(static_cast<double>(load.pageable_bytes)),
                         base::human_bytes(static_cast<double>(load.copied_bytes)));
  out.advice = {"Copy from pinned memory, in pieces of some MB or more, on two streams."};
  if (!load.best_copy_rate) return;
  const double least = static_cast<double>(load.copied_bytes) / *load.best_copy_rate * 1e9;
  set_gain(out, std::max(0.0, split.copies - least), split.time,
           fmt::format("{} in {}; at {}, the fastest copy of the load, {}",
                       base::human_bytes(static_cast<double>(load.copied_bytes)), base::human_ns(split.copies),
                       base::human_rate(*load.best_copy_rate, "B/s"), base::human_ns(least)),
           false);
}

void by_waiting(Finding& out, const LoadFacts& load, const Split& split) {
  const double read = static_cast<double>(load.read_bytes.value_or(0));
  out.part = "waiting";
  out.title = fmt::format("{} {}, {} of it neither computing nor copying", what(load), base::human_ns(split.time),
                          base::human_percent(split.waiting / split.time));
  if (read <= 0) {
    out.verdict = Verdict::kInconclusive;
    out.text = "What the thread waits for is not known: no bytes were seen to be read from storage.";
    if (load.involuntary_switches.value_or(0) >= kManySwitches)
      out.text +=
          fmt::format(" Its threads were taken off a CPU {} times: other programs may have used the cores meanwhile.",
                      *load.involuntary_switches);
    out.next = "llmprof record --stacks native --usage-hz 50 -o load -- PROGRAM";
    return;
  }
  out.text = fmt::format("{} were read from storage meanwhile: {}.", base::human_bytes(read),
                         base::human_rate(read / split.time * 1e9, "B/s"));
  out.advice = {"Read with several threads, or map the file (safetensors) so that reading and copying overlap.",
                "Keep the checkpoint on a local disk, or in the page cache between starts."};
  set_gain(out, split.waiting, split.time,
           fmt::format("{} of {} in which {} came from storage; a second start finds them in the page cache",
                       base::human_ns(split.waiting), base::human_ns(split.time), base::human_bytes(read)));
}

Finding unknown_cause(const LoadFacts& load) {
  Finding out{.rule = "load_time", .stage = load.declared ? "load" : "", .verdict = Verdict::kInconclusive};
  const auto time = static_cast<double>(load.time_ns());
  out.title = fmt::format("{} {}; what it waits for is not known", what(load), base::human_ns(time));
  out.text = "CPU times of the process were not recorded, so computing and waiting cannot be told apart.";
  out.evidence.push_back(time_of("load.time", "the time to take apart", time, "measured"));
  out.evidence.push_back(
      time_of("load.copies", "of it, copies from host to device", static_cast<double>(load.copy_ns), "measured"));
  out.next = "llmprof record -o load -- PROGRAM";
  return out;
}

RuleResult check(const RuleInput& run) {
  const LoadFacts& load = run.facts.load;
  const double time = static_cast<double>(load.time_ns()), wall = static_cast<double>(run.summary.coverage.wall_ns);
  if (load.process_id == 0) return not_applicable("0 steps: nothing tells where loading ends");
  const std::string seen =
      fmt::format("{} {}, {} of the wall time", load.declared ? "stage load takes" : "before the first step passed",
                  base::human_ns(time), base::human_percent(wall > 0 ? time / wall : 0));
  if (time < kLeastNs || time < kLeastShare * wall) return not_found(seen);
  if (!load.declared && static_cast<double>(load.copied_bytes) < kLeastWeights)
    return not_found(fmt::format("{}, in which {} were copied to a device: no model was loaded", seen,
                                 base::human_bytes(static_cast<double>(load.copied_bytes))));
  const auto split = split_of(load);
  if (!split) return {.findings = {unknown_cause(load)}};
  Finding out{.rule = "load_time", .stage = load.declared ? "load" : ""};
  if (split->cpu >= split->copies && split->cpu >= split->waiting)
    by_cpu(out, load, *split);
  else if (split->copies >= split->waiting)
    by_copies(out, load, *split);
  else
    by_waiting(out, load, *split);
  add_evidence(out, load, *split);
  if (out.gain && !load.declared) out.gain->of = "the time before the first step";
  if (out.next.empty()) out.next = "llmprof diff RUN CHANGED_RUN";
  return {.findings = {std::move(out)}};
}

}  // namespace
}  // namespace load_time

extern const Rule kLoadTime;
const Rule kLoadTime = {.name = "load_time",
                        .title = "What loading the model waits for",
                        .meaning =
                            "Takes the stage load apart, or, where no stage is called so, the time from the begin of "
                            "the process to its first "
                            "step, if 100 MB or more were copied to a device in it: copies from host to device, CPU "
                            "time of the loading thread (by samples of its "
                            "stack; else of the process), and the rest, in "
                            "which it waits for the disk or other threads. Found where it takes 1 s or more and 10 % "
                            "of the wall time; says which "
                            "of the three dominates. Gain: the CPU time, at most; copies at the rate of the fastest "
                            "one; the waiting, at most, if "
                            "bytes were read from storage.",
                        .check = load_time::check};

}  // namespace llmprof::analyze

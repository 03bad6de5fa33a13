// Time to load the model: the disk, the bus or the CPU.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::load_time {
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
  const double own = load.thread_cpu_ns.value_or(0);
  const double all = load.process_cpu_ns.value_or(0);
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
  out.add_time("load.time", load.declared ? "stage load" : "begin of the process to its first step", split.time,
               "measured");
  out.add_time("load.cpu",
               load.thread_cpu_ns
                   ? "on a CPU, copies left out: the loading thread and, if nothing was read, those it waits for"
                   : "CPU time of the process, copies left out; at most the time",
               split.cpu, load.thread_cpu_ns ? "inferred" : "measured",
               load.thread_cpu_ns
                   ? fmt::format("SELECT * FROM sample WHERE thread_id = {} AND ts_ns {}", load.thread_id, within(load))
                   : usage);
  out.add_time("load.copies", "copies from host to device", split.copies, "measured", copies);
  out.add_number("load.copied_bytes", "copied from host to device", load.copied_bytes, "B", "measured", copies);
  out.add_time("load.waiting", "neither: waiting for the disk or for other threads", split.waiting, "inferred");
  out.add_number("load.read_bytes", "read from storage", load.read_bytes, "B", "measured", usage,
                 "bytes read were not recorded");
  if (load.major_faults)
    out.add_number("load.major_faults", "page faults that waited for the disk", *load.major_faults, "", "measured",
                   usage);
}

void by_cpu(Finding& out, const LoadFacts& load, const Split& split) {
  out.title = fmt::format("{} {}, {} of it on the CPU", what(load), human_ns(split.time),
                          human_percent(split.cpu / split.time));
  out.part = "CPU";
  out.text = fmt::format("{}, and {} were read from storage: neither the bus nor the disk holds it back.{}",
                         load.copies > 0 ? fmt::format("Copies to the device take {}", human_ns(split.copies))
                                         : "Nothing was copied to a device",
                         load.read_bytes ? human_bytes(*load.read_bytes) : "unknown bytes",
                         load.function.empty() ? ""
                                               : fmt::format(" Most of the thread's CPU time, {}, is in {}.",
                                                             human_percent(load.function_share), load.function));
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
        "would tell (docs/format/analysis.md).");
  out.set_gain(split.cpu, split.time,
               fmt::format("{} of {} on the CPU: all of it at most, if weights are mapped and copied as they are",
                           human_ns(split.cpu), human_ns(split.time)));
}

void by_copies(Finding& out, const LoadFacts& load, const Split& split) {
  const double rate = static_cast<double>(load.copied_bytes) / split.copies * 1e9;
  out.title = fmt::format("{} {}, {} of it copies to the device at {}", what(load), human_ns(split.time),
                          human_percent(split.copies / split.time), human_rate(rate, "B/s"));
  out.part = "copies";
  out.text = fmt::format("{} of the {} are copied from pageable memory.", human_bytes(load.pageable_bytes),
                         human_bytes(load.copied_bytes));
  out.advice = {"Copy from pinned memory, in pieces of some MB or more, on two streams."};
  if (!load.best_copy_rate) return;
  const double least = static_cast<double>(load.copied_bytes) / *load.best_copy_rate * 1e9;
  out.set_gain(std::max(0.0, split.copies - least), split.time,
               fmt::format("{} in {}; at {}, the fastest copy of the load, {}", human_bytes(load.copied_bytes),
                           human_ns(split.copies), human_rate(*load.best_copy_rate, "B/s"), human_ns(least)),
               false);
}

void by_waiting(Finding& out, const LoadFacts& load, const Split& split) {
  const double read = load.read_bytes.value_or(0);
  out.part = "waiting";
  out.title = fmt::format("{} {}, {} of it neither computing nor copying", what(load), human_ns(split.time),
                          human_percent(split.waiting / split.time));
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
  out.text = fmt::format("{} were read from storage meanwhile: {}.", human_bytes(read),
                         human_rate(read / split.time * 1e9, "B/s"));
  out.advice = {"Read with several threads, or map the file (safetensors) so that reading and copying overlap.",
                "Keep the checkpoint on a local disk, or in the page cache between starts."};
  out.set_gain(split.waiting, split.time,
               fmt::format("{} of {} in which {} came from storage; a second start finds them in the page cache",
                           human_ns(split.waiting), human_ns(split.time), human_bytes(read)));
}

Finding unknown_cause(const LoadFacts& load) {
  Finding out{.stage = load.declared ? "load" : "", .verdict = Verdict::kInconclusive};
  const double time = load.time_ns();
  out.title = fmt::format("{} {}; what it waits for is not known", what(load), human_ns(time));
  out.text = "CPU times of the process were not recorded, so computing cannot be separated from waiting.";
  out.add_time("load.time", "the time to take apart", time, "measured");
  out.add_time("load.copies", "of it, copies from host to device", load.copy_ns, "measured");
  out.next = "llmprof record -o load -- PROGRAM";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const LoadFacts& load = run.facts.load;
  const double time = static_cast<double>(load.time_ns()), wall = static_cast<double>(run.summary.coverage.wall_ns);
  if (load.process_id == 0) return not_applicable("0 steps: nothing tells where loading ends");
  const std::string seen =
      fmt::format("{} {}, {} of the wall time", load.declared ? "stage load takes" : "before the first step passed",
                  human_ns(time), human_percent(wall > 0 ? time / wall : 0));
  if (time < kLeastNs || time < kLeastShare * wall) return not_found(seen);
  if (!load.declared && static_cast<double>(load.copied_bytes) < kLeastWeights)
    return not_found(fmt::format("{}, in which {} were copied to a device: no model was loaded", seen,
                                 human_bytes(load.copied_bytes)));
  const auto split = split_of(load);
  if (!split) return {.findings = {unknown_cause(load)}};
  Finding out{.stage = load.declared ? "load" : ""};
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

}  // namespace llmprof::analyze::load_time

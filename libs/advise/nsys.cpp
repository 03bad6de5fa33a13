// Nsight Systems: a timeline of the whole program or of one stage, exported as SQLite.

#include <fmt/format.h>

#include <algorithm>

#include "advise/makers.h"

namespace llmprof::advise {
namespace {

constexpr std::int64_t kMostReports = 3;  // of a stage that is opened again and again

const StageRange* capture_range(const Context& context) {
  if (!context.hints || context.hints->ranges.empty()) return nullptr;
  const StageRange& range = context.hints->ranges.front();
  return range.nvtx ? &range : nullptr;
}

std::int64_t reports_of(const StageRange* range) {
  return range == nullptr ? 1 : std::clamp<std::int64_t>(range->count, 1, kMostReports);
}

std::vector<std::string> range_words(const StageRange& range) {
  const std::int64_t reports = reports_of(&range);
  return {"--capture-range=nvtx", "-p", range.domain.empty() ? range.name : range.name + "@" + range.domain,
          reports > 1 ? fmt::format("--capture-range-end=repeat:{}", reports) : "--capture-range-end=stop"};
}

std::string range_note(const StageRange& range) {
  const std::string what =
      range.numbered ? fmt::format("one numbered step, {}", range.name) : fmt::format("the range {}", range.name);
  const std::int64_t reports = reports_of(&range);
  return reports > 1 ? fmt::format("recorded is {}, {} times, a report each; later ones are ignored", what, reports)
                     : fmt::format("recorded is {}, once; the program runs on after it", what);
}

void note_ranges(const Context& context, Advice& advice) {
  if (!context.hints) return;
  const Hints& hints = *context.hints;
  if (const StageRange* range = capture_range(context); range != nullptr) {
    advice.notes.push_back(range_note(*range));
  } else if (!hints.ranges.empty()) {
    advice.notes.push_back(fmt::format(
        "the ranges of that run ({}) are not NVTX ranges: nsys does not hear torch's record_function unless "
        "torch.autograd.profiler.emit_nvtx() is on, so everything is recorded",
        hints.ranges.front().name));
  } else {
    advice.notes.push_back(fmt::format("that run has no range around its {} steps, so everything is recorded",
                                       hints.stage.empty() ? "unknown" : hints.stage));
  }
}

void note_metrics(const Tool& nsys, Advice& advice) {
  const std::string option = nsys.has("--gpu-metrics-devices")  ? "--gpu-metrics-devices=all"
                             : nsys.has("--gpu-metrics-device") ? "--gpu-metrics-device=all"
                                                                : "";
  if (option.empty()) return;
  advice.notes.push_back(
      fmt::format("{} --gpu-metrics-frequency=1000 adds SM, tensor and DRAM activity over time, where counters are "
                  "permitted (`llmprof doctor` tells)",
                  option));
}

}  // namespace

std::vector<std::string> nsys_words(const Tool& nsys, const std::string& output) {
  std::vector<std::string> words{nsys.word, "profile", "-t", nsys.has("cublas") ? "cuda,nvtx,cublas" : "cuda,nvtx"};
  for (const char* option : {"--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "--cuda-graph-trace=node"}) {
    const std::string name = option;
    if (nsys.has(name.substr(0, name.find('=')))) words.push_back(name);
  }
  words.insert(words.end(), {"-o", output});
  return words;
}

Step nsys_export(const Tool& nsys, const std::string& output) {
  return {
      "export it as SQLite, which llmprof reads",
      {},
      {nsys.word, "export", "-t", "sqlite", "--force-overwrite=true", "-o", output + ".sqlite", output + ".nsys-rep"},
      "",
      "",
      ""};
}

Advice advise_nsys(const Context& context) {
  const Tool nsys = find_tool("nsys", context.wish.places);
  Advice advice{"nsys", nsys.path, nsys.version, {}, {}, {}, {}};
  const std::string& output = context.wish.output;
  const StageRange* range = capture_range(context);
  std::vector<std::string> words = nsys_words(nsys, output), environment;
  if (range != nullptr) {
    const std::vector<std::string> more = range_words(*range);
    words.insert(words.end() - 2, more.begin(), more.end());
    environment = {"NSYS_NVTX_PROFILER_REGISTER_ONLY=0"};
  }
  advice.steps.push_back(context.run_step("record kernels, copies, CUDA calls and NVTX ranges", words, environment));
  const std::int64_t reports = reports_of(range);
  std::vector<std::string> files;
  for (std::int64_t i = 1; i <= reports; ++i) {
    const std::string report = reports == 1 ? output : fmt::format("{}.{}", output, i);
    advice.steps.push_back(nsys_export(nsys, report));
    files.push_back(report + ".sqlite");
  }
  advice.steps.push_back(import_step(files, output));
  note_ranges(context, advice);
  if (range == nullptr) {
    advice.notes.emplace_back(
        "to record a part of the program only, call cudaProfilerStart and cudaProfilerStop around it "
        "(torch.cuda.profiler.start(), .stop()) and add --capture-range=cudaProfilerApi --capture-range-end=stop");
  }
  if (!nsys.has("--cuda-graph-trace")) {
    advice.notes.emplace_back(
        "this version has no --cuda-graph-trace: kernels of CUDA graphs are recorded as it pleases");
  } else {
    advice.notes.emplace_back(
        "--cuda-graph-trace=node makes each kernel of a CUDA graph visible and slows graphs down; the default, graph, "
        "shows a replay as one span with its gaps");
  }
  note_metrics(nsys, advice);
  advice.notes.emplace_back(
      "a report holds the program's whole environment, secrets too: llmprof does not copy it, but whoever gets the "
      "file can read it");
  return advice;
}

}  // namespace llmprof::advise

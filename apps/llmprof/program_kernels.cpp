#include "program_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "base/version.h"
#include "bench_verb.h"
#include "child.h"
#include "hw/resolve.h"
#include "predict/implementation/probe.h"
#include "record/launch/injection.h"
#include "record/record.h"
#include "record/run/capture.h"
#include "record_verb.h"

namespace llmprof::app {
namespace {

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(message), std::move(hint)};
}

// The interpreter that the program ran in: what it was started with, where that is a Python.
std::string python_of(const Arguments& arguments, const std::vector<std::string>& command) {
  if (arguments.given("--python")) return arguments.get("--python");
  for (const std::string& word : command) {
    const std::string name = std::filesystem::path(word).filename().string();
    if (name.starts_with("python")) return word;
    if (name.find('=') == std::string::npos && name != "env") break;
  }
  return "python3";
}

Result<std::int64_t> limit_of(const Arguments& arguments, std::string_view flag, std::int64_t otherwise) {
  if (!arguments.typed(flag)) return otherwise;
  const auto size = base::parse_count(arguments.get(flag));
  if (size && *size >= 1 && *size <= 1 << 20) return *size;
  return usage(fmt::format("{} wants a whole number from 1 to 1M, not '{}'", flag, arguments.get(flag)));
}

void print_measured(const predict::ProbedRows& rows, const std::string& kept) {
  fmt::print("Kernels of {} {} on {}\n\n", base::printable(rows.framework), base::printable(rows.version),
             base::printable(rows.device));
  base::TextTable table({{"what", base::Align::kLeft}, {"points"}});
  table.add({"kernels of calls", fmt::format("{}", rows.kernels.size())});
  table.add({"products", fmt::format("{}", rows.products.size())});
  table.add({"attention", fmt::format("{}", rows.attention.size())});
  fmt::print("{}\n", table.render());
  if (rows.graph_gap_ns > 0 || rows.queued_gap_ns > 0)
    fmt::print("  From the end of a kernel to the begin of the next: {} inside a graph, {} where it is queued.\n",
               base::human_ns(rows.graph_gap_ns), base::human_ns(rows.queued_gap_ns));
  for (const std::string& note : rows.notes) fmt::print("  {}.\n", base::printable(note));
  fmt::print(stderr, "llmprof: the times are kept in {}\n", base::printable(kept));
}

struct Probed {
  predict::ProbedRows rows;
  int status = 0;  // of the last child
};

Result<Probed> probe_torch(const Arguments& arguments, const RecordedProgram& program,
                           const predict::ProbeLimits& limits, const std::string& folder) {
  const std::string spec = folder + "/spec.json", out = folder + "/rows.jsonl";
  LLMPROF_TRY(base::write_file(spec, predict::probe_spec(program.implementation, program.config, limits)));
  const std::string python = python_of(arguments, program.opened.run.info().command);
  fmt::print(stderr, "llmprof: measuring PyTorch's kernels with {}, in at most about {}\n", base::printable(python),
             base::human_ns(limits.seconds * 1e9));
  Probed probed;
  LLMPROF_LET(probed.status, run_child({python, record::library_folder() + "/python/llmprof/_probe.py", spec},
                        {.file = out, .hint = "--python PROGRAM names the interpreter that has PyTorch"}));
  LLMPROF_LET(probed.rows, predict::read_probed(out));
  if (probed.rows.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("nothing was measured: the prober ended with status {}", probed.status),
                 "it needs PyTorch with CUDA; --python PROGRAM names the interpreter"};
  }
  if (probed.status != 0)
    probed.rows.notes.push_back(fmt::format("the prober ended early, with status {}", probed.status));
  return probed;
}

// ---- llmprof-workload is its own prober: it is run at other sizes, and its kernels are read from recordings.

std::string own_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

struct RunSize {
  std::int64_t batch = 1, prompt = 1;
};

constexpr std::int64_t kNewTokens = 160;  // enough launches of a graph for its kernels to be timed

// Batches at one prompt, prompts of one sequence, and both large: attention depends on their product.
std::vector<RunSize> run_sizes(const predict::ProbeLimits& limits) {
  constexpr std::int64_t kPrompt = 512;
  std::vector<RunSize> sizes;
  const auto add = [&](std::int64_t batch, std::int64_t prompt) {
    if (batch <= limits.max_batch && prompt <= limits.max_context && batch * prompt <= 16 * limits.max_tokens)
      sizes.push_back({batch, prompt});
  };
  std::vector<std::int64_t> prompts{limits.max_context};
  for (std::int64_t prompt = 128; prompt * 5 / 4 < limits.max_context; prompt *= 2) prompts.push_back(prompt);
  for (std::int64_t batch = 1; batch <= limits.max_batch; batch *= 2) {
    if (batch == 1 || batch == 8 || batch == 32) {
      for (const std::int64_t prompt : prompts) add(batch, prompt);
    } else {
      add(batch, kPrompt);
    }
  }
  return sizes;
}

// Its command with another size.
std::vector<std::string> with_size(const std::vector<std::string>& command, const RunSize& size) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--batch" || command[i] == "--prompt" || command[i] == "--new") {
      ++i;
    } else {
      words.push_back(command[i]);
    }
  }
  for (const auto& [flag, value] : {std::pair{"--batch", size.batch}, {"--prompt", size.prompt}, {"--new", kNewTokens}})
    words.insert(words.end(), {flag, fmt::format("{}", value)});
  return words;
}

// The program says itself how long its steps take: once more, not recorded.
Result<void> add_recording_cost(const RecordedProgram& program, const std::string& folder, predict::ProbedRows& rows) {
  const auto& stages = program.opened.page.summary.stages;
  const auto decode = std::ranges::find(stages, "decode", &analyze::Stage::name);
  if (decode == stages.end() || !decode->tpot_p50_ns) return {};
  std::vector<std::string> command = program.implementation.command;
  command.emplace_back("--json");
  const std::string out = folder + "/said.json";
  LLMPROF_LET(const int status, run_child(command, {.file = out}));
  LLMPROF_LET(const std::string text, base::read_file(out, 1 << 26));
  const auto said = base::parse_json(text, out);
  if (status != 0 || !said || !said->is_object() || !said->contains("tpot_p50_ns")) return {};
  const base::Json& own_ns = (*said)["tpot_p50_ns"];
  if (own_ns.is_number()) rows.recording_ns = std::max(0.0, static_cast<double>(*decode->tpot_p50_ns) - own_ns.get<double>());
  return {};
}

Result<Probed> probe_workload(const Arguments& arguments, const RecordedProgram& program, predict::ProbeLimits limits,
                              const std::string& folder) {
  if (program.config.positions > kNewTokens)
    limits.max_context = std::min(limits.max_context, program.config.positions - kNewTokens);
  const std::vector<RunSize> sizes = run_sizes(limits);
  fmt::print(stderr, "llmprof: recording {} at {} sizes, in at most about {}\n",
             base::printable(program.implementation.command.front()), sizes.size(),
             base::human_ns(limits.seconds * 1e9));
  const auto begin = std::chrono::steady_clock::now();
  Probed probed;
  probed.rows.device = program.device.device.name;
  const base::Progress progress = progress_line();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limits.seconds) {
      probed.rows.notes.push_back(
          fmt::format("time is up: {} of {} sizes were left out", sizes.size() - i, sizes.size()));
      break;
    }
    if (!progress({"recording sizes", static_cast<double>(i), static_cast<double>(sizes.size()), "sizes"})) {
      probed.status = 130;
      break;
    }
    const std::string run = fmt::format("{}/size_{}.llmprof", folder, i);
    std::vector<std::string> command{own_program(), "record", "--no-report", "--no-peaks", "--kernels",
                                     "all",         "-o",     run,           "--"};
    for (std::string& word : with_size(program.implementation.command, sizes[i])) command.push_back(std::move(word));
    LLMPROF_LET(const int status, run_child(command, {.file = folder + "/record.log", .errors_too = true}));
    if (status != 0) {
      probed.rows.notes.push_back(
          fmt::format("batch {}, prompt {}: ended with status {}", sizes[i].batch, sizes[i].prompt, status));
      continue;
    }
    LLMPROF_LET(const RecordedProgram other, open_program(arguments, run));
    LLMPROF_LET(predict::ProbedRows rows, predict::rows_of_run(other.opened.run));
    std::vector<std::string> notes = std::move(probed.rows.notes);
    predict::merge(probed.rows, std::move(rows));
    probed.rows.notes = std::move(notes);
    record::remove_run_folder(run);
  }
  if (probed.rows.empty())
    return Error{ErrorCode::kUnsupported, "nothing was measured: the program did not run at any size", ""};
  LLMPROF_TRY(add_recording_cost(program, folder, probed.rows));
  probed.rows.framework = std::string(predict::kEmbedded), probed.rows.version = std::string(base::version());
  return probed;
}

}  // namespace

bool is_workload(const predict::Implementation& implementation) {
  const std::vector<std::string>& command = implementation.command;
  return !command.empty() && std::filesystem::path(command.front()).filename() == predict::kEmbedded;
}

predict::TablesKey RecordedProgram::key() const {
  return {device.device, config, 1, predict::kept_type(config, device.device, "")};
}

Result<RecordedProgram> open_program(const Arguments& arguments, const std::string& name) {
  LLMPROF_LET(OpenedRun opened, open_page(arguments, name, progress_line()));
  const analyze::Summary& summary = opened.page.summary;
  const auto refuse = [&](std::string why, std::string hint) {
    return usage(fmt::format("{}: {}", opened.page.run, why), std::move(hint));
  };
  if (summary.model.empty()) return refuse("its model is not known: " + summary.model_why, "--model NAME|PATH says it");
  if (summary.busy_devices > 1) return refuse("it used several devices: only programs of one can be predicted so", "");
  if (!opened.run.info().prediction.empty()) return refuse("it is a prediction itself", "--from wants a recorded run");
  LLMPROF_LET(model::Config config, model::parse_config(summary.model, opened.page.run));
  LLMPROF_LET(predict::Implementation implementation, predict::read_implementation(opened.run));
  std::string device;
  for (const auto& each : summary.devices) {
    if (each.kind == "gpu" && device.empty()) device = each.name;
  }
  if (device.empty()) return refuse("it used no GPU", "predictions from a recorded step are of GPUs");
  LLMPROF_LET(hw::DeviceAndPeaks found, hw::resolve_device(device));
  return RecordedProgram{std::move(opened), std::move(config), std::move(found), std::move(implementation)};
}

Result<predict::ProgramCost> program_cost(const Arguments& arguments, const RecordedProgram& program,
                                          ProgramTimes times) {
  predict::ProbedRows rows;
  const std::vector<std::string> others = arguments.all("--kernels");
  if (others.empty()) {
    LLMPROF_LET(rows, predict::kept_probed(program.key(), is_workload(program.implementation)));
    if (times == ProgramTimes::kRecorded) rows.recording_ns = 0;
  }
  for (const std::string& name : others) {
    if (base::is_file(name)) {
      LLMPROF_LET(predict::ProbedRows more, predict::read_probed(name));
      predict::merge(rows, std::move(more));
      continue;
    }
    LLMPROF_LET(const RecordedProgram other, open_program(arguments, name));
    LLMPROF_LET(predict::ProbedRows more, predict::rows_of_run(other.opened.run));
    predict::merge(rows, std::move(more));
  }
  return predict::ProgramCost::make(program.implementation, std::move(rows));
}

Result<int> measure_kernels(const Arguments& arguments) {
  LLMPROF_LET(const RecordedProgram program, open_program(arguments, arguments.get("--for")));
  if (!program.device.here) {
    return usage(fmt::format("{} is not on this machine", program.device.device.name),
                 "kernels are measured where the program runs");
  }
  predict::ProbeLimits limits;
  LLMPROF_LET(limits.max_tokens, limit_of(arguments, "--max-tokens", limits.max_tokens));
  LLMPROF_LET(limits.max_batch, limit_of(arguments, "--max-batch", limits.max_batch));
  LLMPROF_LET(limits.max_context, limit_of(arguments, "--max-context", limits.max_context));
  if (arguments.given("--budget")) {
    LLMPROF_LET(const std::int64_t ns, record::parse_duration(arguments.get("--budget")));
    limits.seconds = static_cast<double>(ns) * 1e-9;
  }
  LLMPROF_LET(const TemporaryFolder folder, TemporaryFolder::make());
  LLMPROF_LET(const Probed probed, is_workload(program.implementation) ? probe_workload(arguments, program, limits, folder.path())
                                                        : probe_torch(arguments, program, limits, folder.path()));
  LLMPROF_LET(const std::string kept, predict::keep_probed(program.key(), probed.rows));
  print_measured(probed.rows, kept);
  constexpr int kStoppedBySignal = 128;
  return probed.status >= kStoppedBySignal ? probed.status : 0;
}

}  // namespace llmprof::app

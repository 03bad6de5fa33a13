#include "program_kernels.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/human.h"
#include "base/text_table.h"
#include "bench_verb.h"
#include "hw/resolve.h"
#include "predict/implementation/probe.h"
#include "record/launch/injection.h"
#include "record/record.h"
#include "record_verb.h"

extern char** environ;

namespace llmprof::app {
namespace {

Error usage(std::string message, std::string hint = "") {
  return {ErrorCode::kUsage, std::move(message), std::move(hint)};
}

// A folder that is removed with it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string path = base::env_or("TMPDIR", "/tmp") + "/llmprof-probe-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return Error{ErrorCode::kIo, "no temporary folder can be made", "TMPDIR says where"};
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept { std::swap(path_, other.path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

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

// Standard output goes to `out`. Its exit status.
Result<int> run_prober(const std::vector<std::string>& command, const std::string& out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error{ErrorCode::kNotFound, fmt::format("{} cannot be started", command[0]),
                 "--python PROGRAM names the interpreter that has PyTorch"};
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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

}  // namespace

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
  const std::string spec = folder.path() + "/spec.json", out = folder.path() + "/rows.jsonl";
  LLMPROF_TRY(base::write_file(spec, predict::probe_spec(program.implementation, program.config, limits)));
  const std::string python = python_of(arguments, program.opened.run.info().command);
  fmt::print(stderr, "llmprof: measuring PyTorch's kernels with {}, in at most about {}\n", base::printable(python),
             base::human_ns(limits.seconds * 1e9));
  LLMPROF_LET(const int status,
              run_prober({python, record::library_folder() + "/python/llmprof/_probe.py", spec}, out));
  LLMPROF_LET(predict::ProbedRows rows, predict::read_probed(out));
  if (rows.empty()) {
    return Error{ErrorCode::kUnsupported, fmt::format("nothing was measured: the prober ended with status {}", status),
                 "it needs PyTorch with CUDA; --python PROGRAM names the interpreter"};
  }
  if (status != 0) rows.notes.push_back(fmt::format("the prober ended early, with status {}", status));
  LLMPROF_LET(const std::string kept, predict::keep_probed(program.device.device, rows));
  print_measured(rows, kept);
  constexpr int kStoppedBySignal = 128;
  return status >= kStoppedBySignal ? status : 0;
}

}  // namespace llmprof::app

// llmprof demo: records the embedded transformer and shows the report.

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "demo_serve.h"
#include "given_names.h"
#include "record_verb.h"
#include "verb.h"

namespace llmprof::app {
namespace demo_verb {
namespace {

constexpr std::string_view kName = "llmprof-demo";

constexpr Option kOptions[] = {
    {"--output", "-o", "", "NAME", kName, "Name of the run. The default name is replaced each time."},
    {"--force", "-f", "", "", "", "Replace an existing run of another name."},
    {"--train", "", "", "", "", "Train the embedded GPT-2 for some steps instead of generating text."},
    {"--serve", "", "", "", "",
     "Serve the embedded model, with continuous batching, under a load of requests that is measured from outside, too."},
    {"--device", "", "", "NAME", "auto",
     "`cpu`, `cuda`, or `auto`: a GPU if there is one with a driver and cuBLAS. The model says which it took, and "
     "why."},
    {"--cuda-graph", "", "", "", "", "On a GPU, decode as a CUDA graph."},
    {"--preset", "", "", "NAME", "",
     "Preset of the embedded model, instead of `demo` (on a GPU: `demo-gpu`); `llmprof-workload infer --list-presets` "
     "(or "
     "`train`) lists them."},
    {"--no-peaks", "", "", "", "", "Do not measure this machine's peaks if none are cached; MFU and MBU stay unknown."},
    {"--json", "", "", "", "", "Show the report as JSON."},
};

// Installed beside this program.
Result<std::string> find_workload() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string path = (self.parent_path() / "llmprof-workload").string();
  if (!base::is_file(path)) return Error{ErrorCode::kNotFound, path + " is missing", "reinstall llmprof"};
  return path;
}

Result<int> report(const std::string& folder, bool json) {
  const Verb* verb = find_verb("report");
  std::vector<std::string> words{folder};
  if (json) words.push_back("--json");
  LLMPROF_LET(const Arguments arguments, parse_arguments(*verb, words));
  return verb->run(arguments);
}

// A load that keeps several requests in a step, for some 20 s on a laptop.
Result<int> serve(const Arguments& arguments, const std::string& workload) {
  std::error_code ignored;
  ServeDemo demo{.llmprof = std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
                 .workload = workload,
                 .output = arguments.get("--output"),
                 .server = {"--device", arguments.get("--device")},
                 .load = {"--requests", "40", "--rate", "2", "--prompt", "16..96", "--new", "24", "--ignore-eos", "--warmup", "2"},
                 .peaks = !arguments.on("--no-peaks")};
  if (const std::string preset = arguments.get("--preset"); !preset.empty())
    demo.server.insert(demo.server.end(), {"--preset", preset});
  LLMPROF_LET(const std::string run, run_serve_demo(demo));
  const Result<int> status = report(run, arguments.on("--json"));
  fmt::print(stderr,
             "\nThe run is in {0}. Go on with:\n"
             "  llmprof report {0} requests\n"
             "  llmprof view {0}\n"
             "  llmprof load http://127.0.0.1:8000 --rate 4     # your own server\n",
             run);
  return status;
}

// What is run, without the program's name.
std::vector<std::string> workload_arguments(const Arguments& arguments) {
  std::vector<std::string> words{arguments.on("--train") ? "train" : "infer", "--device", arguments.get("--device")};
  if (const std::string preset = arguments.get("--preset"); !preset.empty()) {
    words.insert(words.end(), {"--preset", preset});
  }
  if (arguments.on("--cuda-graph")) words.emplace_back("--cuda-graph");
  return words;
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  LLMPROF_LET(const std::string workload, find_workload());
  if (arguments.on("--serve")) return serve(arguments, workload);
  const std::vector<std::string> words = workload_arguments(arguments);
  record::RecordOptions options;
  options.command = {workload};
  options.command.insert(options.command.end(), words.begin(), words.end());
  options.output = arguments.get("--output");
  options.force = arguments.on("--force") || options.output == kName;
  options.peaks = !arguments.on("--no-peaks");
  options.announce = [](std::string_view text) { fmt::print(stderr, "llmprof: {}\n", text); };
  options.announce(fmt::format("recording the embedded model: llmprof-workload {}", fmt::join(words, " ")));
  options.program_output = record::ProgramOutput::kToStderr;
  const Recorded recorded = record_and_tell(options, Tally::kNone);
  if (recorded.exit_status != 0 || !recorded.complete) return recorded.exit_status != 0 ? recorded.exit_status : 2;
  const std::string path = short_path(recorded.folder);
  const Result<int> status = report(path, arguments.on("--json"));
  fmt::print(stderr,
             "\nThe run is in {0}. Go on with:\n"
             "  llmprof query {0} \"SELECT name, count(*) AS calls FROM kernel GROUP BY name\"\n"
             "  llmprof report {0} --json\n"
             "  llmprof record -o mine python3 your_program.py\n",
             path);
  return status;
}

}  // namespace
}  // namespace demo_verb

extern const Verb kDemo;
const Verb kDemo{"demo",        "profile the embedded model and show the report", demo_verb::kOptions, {}, false,
                 demo_verb::run};

}  // namespace llmprof::app

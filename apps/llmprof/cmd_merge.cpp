// llmprof merge: several runs as one, on one clock.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "base/human.h"
#include "base/json.h"
#include "given_names.h"
#include "importers/merge_runs.h"
#include "record/record.h"
#include "record/run/capture.h"
#include "verb.h"

namespace llmprof::app {
namespace merge_verb {
namespace {

namespace fs = std::filesystem;
using importers::Merged;
using importers::MergedRun;

constexpr Option kOptions[] = {
    {"--output", "-o", "", "NAME", "merged", "Where the merged run goes."},
    {"--force", "-f", "", "", "", "Replace an existing run of that name."},
    {"--json", "", "", "", "", "Print the result as JSON."},
};
constexpr Positional kPositionals[] = {{"RUN", true, true}};

// The run is made under a temporary name: an existing one is there until the new one is whole.
Result<Merged> merge_beside(const std::vector<trace::Run>& runs, const std::string& folder) {
  const fs::path place(folder);
  const std::string temporary =
      (place.parent_path() / fmt::format(".{}.{}.tmp", place.filename().string(), ::getpid())).string();
  Result<Merged> merged = importers::merge_runs(runs, temporary, progress_line());
  if (!merged) {
    record::remove_run_folder(temporary);
    return merged;
  }
  record::remove_run_folder(folder);
  if (::rename(temporary.c_str(), folder.c_str()) == 0) return merged;
  const int error = errno;
  record::remove_run_folder(temporary);
  return base::errno_error(ErrorCode::kIo, folder, error);
}

std::string clock_words(const importers::Alignment& clock) {
  if (clock.how == "its own") return "the clock of the merged run";
  if (clock.error_ns == 0) return clock.how;
  const std::string error = clock.error_ns ? "at most " + base::human_ns(static_cast<double>(*clock.error_ns)) + " off"
                                           : std::string("error unknown");
  return fmt::format("aligned {}, moved by {}, {}", clock.how, base::human_ns(static_cast<double>(clock.shift_ns)), error);
}

void tell_text(const Merged& merged, const std::string& folder) {
  std::string text;
  for (const MergedRun& run : merged.runs)
    text += fmt::format("{}: {} rows, {}\n", run.name, run.rows, clock_words(run.clock));
  if (merged.both + merged.only_client > 0) {
    text += fmt::format("requests: {} seen by client and server", merged.both);
    if (merged.only_client > 0) text += fmt::format(", {} by the client alone", merged.only_client);
    if (merged.only_server > 0) text += fmt::format(", {} by the server alone", merged.only_server);
    text += "\n";
  }
  fmt::print(stderr, "{}{}\nllmprof report {}\n", text, folder, folder);
}

void tell_json(const Merged& merged, const std::string& folder) {
  base::Json json = json_head("llmprof.merge");
  json["run"] = {{"path", folder}};
  json["runs"] = base::Json::array();
  for (const MergedRun& run : merged.runs) {
    json["runs"].push_back({{"path", run.name},
                            {"rows", run.rows},
                            {"clock", run.clock.how},
                            {"shift_ns", run.clock.shift_ns},
                            {"drift", run.clock.drift},
                            {"clock_error_ns", run.clock.error_ns ? base::Json(*run.clock.error_ns) : base::Json()}});
  }
  json["requests"] = {{"both", merged.both}, {"only_client", merged.only_client}, {"only_server", merged.only_server}};
  print(base::to_text(json));
}

Result<int> run(const Arguments& arguments) {
  if (arguments.positionals.size() < 2)
    return Error{ErrorCode::kUsage, "one run is nothing to merge", "llmprof merge SERVER_RUN CLIENT_RUN -o NAME"};
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  const std::string folder = trace::run_folder(arguments.get("--output"));
  LLMPROF_TRY(check_place(folder, arguments.on("--force")));
  std::vector<trace::Run> runs;
  std::set<fs::path> names;
  for (const std::string& name : arguments.positionals) {
    if (fs::weakly_canonical(trace::run_folder(name)) == fs::weakly_canonical(folder))
      return Error{ErrorCode::kUsage, folder + " is one of the runs to merge", "choose another name with -o"};
    if (!names.insert(fs::weakly_canonical(trace::run_folder(name))).second)
      return Error{ErrorCode::kUsage, name + " is given twice", "everything in it would count twice"};
    LLMPROF_LET(trace::Run opened, record::open_run(name, progress_line()));
    runs.push_back(std::move(opened));
  }
  LLMPROF_LET(const Merged merged, merge_beside(runs, folder));
  if (arguments.on("--json")) {
    tell_json(merged, folder);
  } else {
    tell_text(merged, folder);
  }
  return 0;
}

}  // namespace
}  // namespace merge_verb

extern const Verb kMerge;
const Verb kMerge{"merge",
                  "make one run of several, on one clock",
                  merge_verb::kOptions,
                  merge_verb::kPositionals,
                  false,
                  merge_verb::run};

}  // namespace llmprof::app

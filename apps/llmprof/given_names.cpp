#include "given_names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "record/run/capture.h"
#include "trace/run.h"

namespace llmprof::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRunJson = 16u << 20;

struct FoundRun {
  std::string name;
  std::time_t made = 0;
  std::int64_t changed_ns = 0;  // of those made in the same second, the later one
  bool recorded = true;         // here; else imported, or measured by `bench`
};

// "2026-11-17T15:50:17Z", with or without parts of a second; 0: it is no such text.
std::time_t seconds_of(const std::string& iso) {
  std::tm parts{};
  return ::strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ? 0 : ::timegm(&parts);
}

FoundRun found_run(const fs::path& path) {
  FoundRun run{.name = path.filename().string()};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    run.made = status.st_mtim.tv_sec;
    run.changed_ns = status.st_mtim.tv_nsec + std::int64_t{1'000'000'000} * status.st_mtim.tv_sec;
  }
  const auto text = base::read_file((path / "run.json").string(), kMostRunJson);
  const base::Json json = text ? base::Json::parse(*text, nullptr, false) : base::Json();
  if (!json.is_object()) return run;  // not ingested yet
  const auto word = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  run.recorded = word("source") == "record";
  if (const std::time_t made = seconds_of(word("created")); made > 0) run.made = made;
  return run;
}

std::vector<FoundRun> runs_here() {
  std::vector<FoundRun> runs;
  std::error_code error;
  for (fs::directory_iterator each(".", error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (name.ends_with(".llmprof") && !name.starts_with('.') && is_run(name)) runs.push_back(found_run(each->path()));
  }
  std::ranges::sort(runs, [](const FoundRun& a, const FoundRun& b) {
    return std::tie(a.made, a.changed_ns, a.name) > std::tie(b.made, b.changed_ns, b.name);
  });
  return runs;
}

std::string age_of(std::time_t made) {
  const std::int64_t seconds = std::time(nullptr) - made;
  const auto ago = [](std::int64_t count, std::string_view unit) {
    return fmt::format("{} {}{} ago", count, unit, count == 1 ? "" : "s");
  };
  if (seconds < 0) return "in the future, says its clock";
  if (seconds < 60) return ago(seconds, "second");
  if (seconds < 3600) return ago(seconds / 60, "minute");
  return seconds < 48 * 3600 ? ago(seconds / 3600, "hour") : ago(seconds / (24 * 3600), "day");
}

}  // namespace

bool is_run(const std::string& name) {
  const std::string folder = trace::run_folder(name);
  return base::is_file(folder + "/run.json") || base::is_directory(record::capture_folder(folder));
}

std::vector<std::string> latest_runs(std::size_t count) {
  std::vector<std::string> names;
  for (FoundRun& run : runs_here()) {
    if (names.size() < count) names.push_back(std::move(run.name));
  }
  return names;
}

Result<std::string> latest_run() {
  std::vector<FoundRun> runs = runs_here();
  if (runs.empty()) {
    return Error{ErrorCode::kUsage, "no run is given, and this folder has none",
                 "llmprof record python3 train.py makes one, llmprof demo one of the embedded model"};
  }
  const FoundRun& latest = runs.front();
  fmt::print(stderr, "Using {}, {} {}.\n", base::printable(latest.name), latest.recorded ? "recorded" : "made",
             age_of(latest.made));
  return latest.name;
}

Result<RunArgument> run_argument(const Arguments& arguments, const IsOther& other) {
  const std::vector<std::string>& words = arguments.positionals;
  const bool left_out = words.empty() || (words.size() == 1 && other && other(words.front()));
  if (!left_out) return RunArgument{words.front(), {words.begin() + 1, words.end()}};
  LLMPROF_LET(std::string latest, latest_run());
  return RunArgument{std::move(latest), words};
}

Result<void> check_stage(const std::string& stage, const std::vector<std::string>& stages) {
  if (stage.empty() || std::ranges::find(stages, stage) != stages.end()) return {};
  return Error{ErrorCode::kUsage, fmt::format("the run has no stage '{}'", base::printable(stage)),
               stages.empty()
                   ? "it has no stages at all"
                   : base::did_you_mean(stage, stages) + "it has " + fmt::format("{}", fmt::join(stages, ", "))};
}

Result<void> check_ending(std::string_view flag, const std::string& file,
                          const std::vector<std::string_view>& endings) {
  std::error_code ignored;
  if (file == "-" || fs::is_other(file, ignored)) return {};  // a device or a pipe has no ending
  if (std::ranges::any_of(endings, [&](std::string_view ending) { return file.ends_with(ending); })) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{} {}: the name does not say what to write", flag, base::printable(file)),
               fmt::format("end it in {}", base::one_of({endings.begin(), endings.end()}))};
}

Result<void> check_ending(std::string_view flag, const std::string& file,
                          std::initializer_list<std::string_view> endings) {
  return check_ending(flag, file, std::vector<std::string_view>(endings));
}

Result<void> check_run_name(const std::string& name) {
  constexpr std::string_view kFiles[] = {".json", ".csv",     ".html",    ".svg",    ".png", ".pdf", ".txt", ".xlsx",
                                         ".gz",   ".parquet", ".pftrace", ".sqlite", ".xml", ".md",  ".log"};
  const auto* const found =
      std::ranges::find_if(kFiles, [&](std::string_view ending) { return name.ends_with(ending); });
  if (found == std::end(kFiles)) return {};
  return Error{ErrorCode::kUsage, fmt::format("-o {}: a run is a folder, not a {} file", base::printable(name), *found),
               fmt::format("-o {}; report --html, plot and export write files",
                           base::printable(name.substr(0, name.size() - found->size())))};
}

Result<void> check_place(const std::string& folder, bool force) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return {};
  const bool run = base::is_file(folder + "/run.json");
  if (!base::is_directory(folder) || (!run && !base::list_directory(folder).empty())) {
    return Error{ErrorCode::kUsage, folder + " exists and is not a run; it is left alone",
                 "choose another name with -o"};
  }
  if (run && !force)
    return Error{ErrorCode::kUsage, folder + " exists", "choose another name with -o, or replace it with -f"};
  return {};
}

}  // namespace llmprof::app

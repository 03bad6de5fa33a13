#include "analyze/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"

namespace llmprof::analyze {
namespace {

constexpr const char* kSchema = "llmprof.baseline";

bool good_name(std::string_view name) {
  const auto good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 100 && name.front() != '.' && std::all_of(name.begin(), name.end(), good);
}

Result<std::string> file_of(const std::string& name) {
  if (!good_name(name)) {
    return Error{ErrorCode::kUsage, "'" + name + "' is no name for a baseline",
                 "letters, digits, '.', '_' and '-', at most 100"};
  }
  LLMPROF_LET(const std::string folder, baseline_folder());
  return folder + "/" + name + ".json";
}

}  // namespace

Result<std::string> baseline_folder() {
  const std::string data = base::env_or("XDG_DATA_HOME", "");
  if (!data.empty() && data.front() == '/') return data + "/llmprof/baselines";
  const std::string home = base::env_or("HOME", "");
  if (home.empty()) {
    return Error{ErrorCode::kNotFound, "there is no place for baselines: HOME and XDG_DATA_HOME are not set", ""};
  }
  return home + "/.local/share/llmprof/baselines";
}

Result<std::string> save_baseline(const std::string& name, const std::vector<Digest>& runs) {
  LLMPROF_LET(const std::string file, file_of(name));
  LLMPROF_LET(const std::string folder, baseline_folder());
  LLMPROF_TRY(base::make_directories(folder));
  base::Json json = {{"schema", kSchema}, {"schema_version", 1}, {"name", name}, {"runs", base::Json::array()}};
  for (const Digest& run : runs) json["runs"].push_back(to_json(run));
  LLMPROF_TRY(base::write_file(file, base::to_line(json) + "\n"));
  return file;
}

Result<Side> load_baseline(const std::string& name) {
  LLMPROF_LET(const std::string file, file_of(name));
  if (!base::is_file(file)) {
    return Error{ErrorCode::kNotFound, "there is no baseline '" + name + "'",
                 "llmprof diff --list-baselines lists them; --save-baseline NAME RUN... makes one"};
  }
  LLMPROF_LET(const base::Json json, base::read_json(file));
  if (!json.is_object() || json.value("schema", "") != kSchema || !json.contains("runs") || !json["runs"].is_array()) {
    return Error{ErrorCode::kCorruptInput, file + " is no baseline", "save it again"};
  }
  Side side{.name = "baseline " + name, .runs = {}};
  for (const base::Json& run : json["runs"]) {
    LLMPROF_LET(Digest digest, digest_from_json(run, file));
    side.runs.push_back(std::move(digest));
  }
  if (side.runs.empty()) return Error{ErrorCode::kCorruptInput, file + " holds no run", "save it again"};
  return side;
}

Result<std::vector<BaselineEntry>> list_baselines() {
  LLMPROF_LET(const std::string folder, baseline_folder());
  std::vector<BaselineEntry> entries;
  for (const std::string& file : base::list_directory(folder)) {
    if (!file.ends_with(".json")) continue;
    const Result<Side> side = load_baseline(file.substr(0, file.size() - 5));
    if (!side) continue;
    const Digest& first = side->runs.front();
    BaselineEntry entry{file.substr(0, file.size() - 5), first.created, first.model, first.device, {}};
    for (const Digest& run : side->runs) entry.folders.push_back(run.folder);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace llmprof::analyze

#include "record/run/model_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "model/checkpoint/open_model.h"

namespace llmprof::record {
namespace {

constexpr std::size_t kMostModels = 8;
constexpr std::size_t kMostTextBytes = 1 << 20;

trace::NotedModel note_of(const model::OpenedModel& opened, std::string source, std::string origin) {
  trace::NotedModel note{std::move(source), std::move(origin), opened.config_text, {}};
  for (const auto& [module, number] : opened.config.stored) {
    note.stored[module] = {number.type, number.bytes};
  }
  return note;
}

// Weights have their config beside them; a GGUF file holds its own.
std::string config_of(const std::string& path) {
  if (path.ends_with("/config.json") || path.ends_with(".gguf")) return path;
  return path.substr(0, path.rfind('/') + 1) + "config.json";
}

}  // namespace

Result<trace::NotedModel> given_model(const std::string& name_or_path) {
  LLMPROF_LET(const model::OpenedModel opened, model::open_model(name_or_path));
  return note_of(opened, "given", fmt::format("--model {}: {}", name_or_path, opened.origin));
}

void note_opened_models(const std::vector<host::ModelFile>& files, std::vector<trace::NotedModel>& models) {
  std::vector<std::string> seen;
  for (const host::ModelFile& file : files) {
    if (!file.path.starts_with('/') || !host::is_model_file(file.path)) continue;
    const std::string path = config_of(file.path);
    if (models.size() >= kMostModels) return;
    if (std::find(seen.begin(), seen.end(), path) != seen.end() || !base::is_file(path)) continue;
    seen.push_back(path);
    const auto opened = model::open_model(path);
    if (!opened || opened->config_text.size() > kMostTextBytes) continue;
    const auto same = [&](const trace::NotedModel& model) { return model.text == opened->config_text; };
    if (std::any_of(models.begin(), models.end(), same)) continue;
    models.push_back(note_of(*opened, "opened", fmt::format("{}, {}", file.path, file.how)));
  }
}

}  // namespace llmprof::record

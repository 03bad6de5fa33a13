#include "model/checkpoint/open_model.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/human.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "model/checkpoint/gguf.h"
#include "model/checkpoint/tensor_list.h"
#include "model/zoo/zoo.h"

namespace llmprof::model {

// Models that huggingface_hub has downloaded to this machine. Nothing is fetched.

// "organisation/name", or "name" alone as early models have it.
bool looks_like_hub_id(std::string_view name);

// $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub.
std::string hub_cache_folder();

// The snapshot of a repository folder "models--*": that of its main branch, else the newest. nullopt if it has none.
std::optional<std::string> snapshot_of(const std::string& repository_folder);
// The same of a hub id.
std::optional<std::string> find_in_hub_cache(std::string_view id);

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostConfigBytes = 16 << 20;
constexpr std::string_view kConfigFile = "config.json", kIndexFile = "model.safetensors.index.json",
                           kSingleFile = "model.safetensors";

std::string beside(const std::string& path, std::string_view name) {
  return (fs::path(path).parent_path() / name).string();
}

Result<OpenedModel> open_config(const std::string& path) {
  OpenedModel model;
  model.origin = path;
  LLMPROF_LET(model.config_text, base::read_file(path, kMostConfigBytes));
  const std::size_t first = model.config_text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos || (model.config_text[first] != '{' && model.config_text[first] != '[')) {
    return base::wrong_content(path, std::string_view(model.config_text).substr(0, 64), "a config.json");
  }
  LLMPROF_LET(model.config, parse_config(model.config_text, path));
  model.config.name = path;
  return model;
}

// A config that is not understood: what the headers alone say is still true.
Error with_tensors(Error error, const TensorList& list) {
  if (!list.sizes_known) return error;
  double values = 0, bytes = 0;
  for (const StoredTensor& tensor : list.tensors) {
    values += static_cast<double>(tensor.values);
    bytes += static_cast<double>(tensor.bytes);
  }
  error.hint += fmt::format("{}the files hold {} tensors, {} values, {}", error.hint.empty() ? "" : "; ",
                            list.tensors.size(), base::human_count(values), base::human_bytes(bytes));
  return error;
}

void take_checkpoint(OpenedModel& model, TensorList list) {
  model.checkpoint = join_checkpoint(std::move(list), model.config);
  for (const std::string& note : model.checkpoint->notes) model.notes.push_back(note);
}

// `list` reads the tensors of `path`, whose config lies beside it.
Result<OpenedModel> open_with_config(const std::string& path, Result<TensorList> (*list)(const std::string&)) {
  LLMPROF_LET(TensorList tensors, list(path));
  const std::string config = beside(path, kConfigFile);
  if (!base::is_file(config)) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: no config.json beside it", path),
                 "the names of tensors do not say the number of heads: put the model's config.json into that folder"};
  }
  Result<OpenedModel> model = open_config(config);
  if (!model) return with_tensors(std::move(model.error()), tensors);
  model->origin = path;
  take_checkpoint(*model, std::move(tensors));
  return model;
}

Result<OpenedModel> open_gguf(const std::string& path) {
  LLMPROF_LET(GgufModel file, list_gguf(path));
  OpenedModel model;
  model.origin = path;
  LLMPROF_LET(model.config_text, config_text_of(file, path));
  Result<Config> config = parse_config(model.config_text, path);
  if (!config) return with_tensors(std::move(config.error()), file.list);
  model.config = std::move(*config);
  model.config.name = path;
  take_checkpoint(model, std::move(file.list));
  return model;
}

// The weights in a folder: an index, one file, or none that can be read.
std::optional<std::string> only_safetensors(const std::string& folder, std::vector<std::string>& notes) {
  std::vector<std::string> found;
  bool pickles = false;
  for (const std::string& name : base::list_directory(folder)) {
    const bool other = name.starts_with("adapter_") || name.starts_with("consolidated");  // LoRA; another naming
    if (name.ends_with(".safetensors") && !other) found.push_back(name);
    pickles = pickles || (name.starts_with("pytorch_model") && name.ends_with(".bin"));
  }
  if (found.size() == 1) return folder + "/" + found.front();
  if (found.size() > 1) notes.push_back(fmt::format("{} .safetensors files without an index: not read", found.size()));
  if (found.empty() && pickles) notes.push_back("pytorch_model.bin is a pickle, which is code: not read");
  return std::nullopt;
}

// A folder without config.json: GGUF models need none. Parts of a split one are one model.
Result<OpenedModel> open_only_gguf(const std::string& folder) {
  std::vector<std::string> found;
  for (const std::string& name : base::list_directory(folder)) {
    const bool later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (name.ends_with(".gguf") && !later_part) found.push_back(name);
  }
  if (found.size() == 1) return open_gguf(folder + "/" + found.front());
  std::string hint = "give the folder of a Hugging Face model, its config.json, or a .gguf file";
  if (found.size() > 1) hint = fmt::format("{} .gguf files: give one, as {}/{}", found.size(), folder, found.front());
  return Error{ErrorCode::kNotFound, fmt::format("{}: no config.json in this folder", folder), hint};
}

Result<OpenedModel> open_folder(const std::string& folder) {
  if (const auto snapshot = snapshot_of(folder); snapshot && !base::is_file(folder + "/config.json"))
    return open_folder(*snapshot);
  const std::string config = fmt::format("{}/{}", folder, kConfigFile);
  if (!base::is_file(config)) return open_only_gguf(folder);
  const std::string index = fmt::format("{}/{}", folder, kIndexFile),
                    single = fmt::format("{}/{}", folder, kSingleFile);
  if (base::is_file(index)) return open_with_config(index, list_safetensors_index);
  if (base::is_file(single)) return open_with_config(single, list_safetensors);
  std::vector<std::string> notes;
  if (const auto file = only_safetensors(folder, notes)) return open_with_config(*file, list_safetensors);
  LLMPROF_LET(OpenedModel model, open_config(config));
  model.notes = std::move(notes);
  return model;
}

// By content, not by name: renamed files are common.
Result<OpenedModel> open_file(const std::string& path) {
  std::string beginning;
  {
    LLMPROF_LET(const base::RegularFile file, base::RegularFile::open(path));
    LLMPROF_LET(beginning, file.beginning(64));
  }
  const std::string_view found = base::recognise(beginning);
  if (found == "a GGUF file" || path.ends_with(".gguf")) return open_gguf(path);
  if (found == "a safetensors file" || path.ends_with(".safetensors")) return open_with_config(path, list_safetensors);
  if (path.ends_with(".index.json")) return open_with_config(path, list_safetensors_index);
  return open_config(path);
}

Result<OpenedModel> open_built_in(const ZooEntry& entry) {
  OpenedModel model;
  model.origin = "built-in name " + entry.name;
  model.config_text = entry.config;
  LLMPROF_LET(model.config, config_of(entry));
  if (!entry.notes.empty()) model.notes.push_back(entry.notes);
  return model;
}

Error not_found(const std::string& name) {
  const std::string shown = base::shorten(base::printable(name), 80);
  std::string hint = base::did_you_mean(suggest(name));
  hint += fmt::format(
      "Nothing is fetched: download its config.json, or give a folder or a .gguf file (looked for a copy in {})",
      hub_cache_folder());
  return Error{ErrorCode::kNotFound,
               fmt::format("{}: not a built-in name, a file, or a model in the local Hugging Face cache", shown), hint};
}

// A name that is not spelled as we do: "llama 3.2 1b instruct". An id of the hub is somebody's own model: exact or not
// at all.
Result<OpenedModel> open_alike(const std::string& typed) {
  if (typed.find('/') != std::string::npos || typed.find(".gguf") != std::string::npos) return not_found(typed);
  const std::vector<const ZooEntry*> alike = match_in_zoo(typed);
  if (alike.empty()) return not_found(typed);
  if (alike.size() > 1) {
    std::string names;
    constexpr std::size_t kShown = 8;
    for (std::size_t i = 0; i < std::min(alike.size(), kShown); ++i) names += (i == 0 ? "" : ", ") + alike[i]->name;
    if (alike.size() > kShown) names += fmt::format(" and {} more", alike.size() - kShown);
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} fits several built-in models: {}", base::printable(typed), names),
                 "give one of these names; llmprof model --list has all"};
  }
  LLMPROF_LET(OpenedModel model, open_built_in(*alike.front()));
  model.notes.push_back(fmt::format("{} was taken as {}", base::printable(typed), alike.front()->name));
  return model;
}

bool is_word(std::string_view text) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, allowed);
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

timespec changed(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtim : timespec{};
}

}  // namespace

Result<OpenedModel> open_model(const std::string& name_or_path) {
  if (name_or_path.empty()) return Error{ErrorCode::kUsage, "the name of the model is empty", ""};
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(name_or_path, error));
  if (const ZooEntry* entry = find_in_zoo(name_or_path)) {
    // "org/name" may be a folder that somebody downloaded to: that has more to say.
    if (!exists || name_or_path.find('/') == std::string::npos) {
      LLMPROF_LET(OpenedModel model, open_built_in(*entry));
      if (exists)
        model.notes.push_back(fmt::format("there is a file of that name too: write ./{} for it", name_or_path));
      return model;
    }
  }
  if (base::is_directory(name_or_path)) return open_folder(name_or_path);
  if (exists) return open_file(name_or_path);
  if (const auto snapshot = find_in_hub_cache(name_or_path)) return open_folder(*snapshot);
  return open_alike(name_or_path);
}

bool looks_like_hub_id(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_word(name);
  return is_word(name.substr(0, slash)) && is_word(name.substr(slash + 1));
}

std::string hub_cache_folder() {
  const std::string home = base::env_or("HF_HOME", base::env_or("HOME", "") + "/.cache/huggingface");
  return base::env_or("HF_HUB_CACHE", home + "/hub");
}

std::optional<std::string> snapshot_of(const std::string& repository_folder) {
  const std::string snapshots = repository_folder + "/snapshots";
  if (const auto main = base::read_file(repository_folder + "/refs/main", 256)) {
    const std::string commit = trimmed(*main);
    const std::string path = snapshots + "/" + commit;
    if (is_word(commit) && base::is_directory(path)) return path;
  }
  std::optional<std::string> newest;
  for (const std::string& name : base::list_directory(snapshots)) {
    const std::string path = snapshots + "/" + name;
    if (!base::is_directory(path)) continue;
    const auto later = [](const timespec& a, const timespec& b) {
      return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
    };
    if (!newest || later(changed(path), changed(*newest))) newest = path;
  }
  return newest;
}

std::optional<std::string> find_in_hub_cache(std::string_view id) {
  if (!looks_like_hub_id(id)) return std::nullopt;
  std::string folder = "models--" + std::string(id);
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  return snapshot_of(hub_cache_folder() + "/" + folder);
}

}  // namespace llmprof::model

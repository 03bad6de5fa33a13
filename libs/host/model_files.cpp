#include "host/model_files.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"
#include "host/proc.h"

namespace llmprof::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 64;         // of one recording; sharded weights have dozens
constexpr std::size_t kMostDescriptors = 512;  // of one process, at each look
constexpr std::size_t kMostWords = 64;         // of a command line that are looked for as files
constexpr std::size_t kMostMapsBytes = 8 << 20;

// As the process would find it.
std::string resolved(pid_t pid, std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  const std::string folder = link_target(fmt::format("/proc/{}/cwd", pid));
  return folder.empty() ? "" : fs::path(folder + "/" + std::string(path)).lexically_normal().string();
}

// "org/model": one slash, and letters that such names have.
bool is_hub_name(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  };
  const std::size_t slash = word.find('/');
  return word.size() < 200 && slash != 0 && slash != std::string_view::npos && slash + 1 < word.size() &&
         word.find('/', slash + 1) == std::string_view::npos && word.find("..") == std::string_view::npos &&
         std::all_of(word.begin(), word.end(), is_plain);
}

// Where the process keeps what it downloaded, as huggingface_hub decides it.
std::string hub_cache(pid_t pid) {
  if (const std::string cache = variable(pid, "HF_HUB_CACHE"); !cache.empty()) return resolved(pid, cache);
  if (const std::string home = variable(pid, "HF_HOME"); !home.empty()) return resolved(pid, home + "/hub");
  if (const std::string cache = variable(pid, "XDG_CACHE_HOME"); !cache.empty())
    return resolved(pid, cache + "/huggingface/hub");
  const std::string home = variable(pid, "HOME");
  return home.empty() ? "" : home + "/.cache/huggingface/hub";
}

}  // namespace

bool is_model_file(std::string_view path) {
  const std::string_view name = base::base_name(path);
  return name == "config.json" || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") ||
         name.ends_with(".gguf");
}

std::vector<std::string> mapped_model_files(std::string_view maps) {
  std::vector<std::string> paths;
  for (const std::string_view line : base::split(maps, '\n')) {
    const std::size_t path = line.find('/');  // no field before it has one
    if (path == std::string_view::npos || !is_model_file(line)) continue;
    if (paths.empty() || paths.back() != line.substr(path)) paths.emplace_back(line.substr(path));
  }
  return paths;
}

void ModelFiles::add(std::string path, std::string_view how, pid_t pid) {
  if (path.empty() || found_.size() >= kMostFiles) return;
  const auto same = [&](const ModelFile& file) { return file.path == path; };
  if (std::any_of(found_.begin(), found_.end(), same)) return;
  found_.push_back({std::move(path), fmt::format("{} process {}", how, pid)});
}

void ModelFiles::add_cached(pid_t pid, std::string_view name) {
  std::string folder(name);
  folder.replace(folder.find('/'), 1, "--");
  const std::string cache = hub_cache(pid);
  if (cache.empty()) return;
  const std::string snapshots = fmt::format("{}/models--{}/snapshots", cache, folder);
  for (const std::string& snapshot : base::list_directory(snapshots)) {
    const std::string path = fmt::format("{}/{}/config.json", snapshots, snapshot);
    if (base::is_file(path)) add(path, "named on the command line of", pid);
  }
}

void ModelFiles::look_at_arguments(pid_t pid, std::string_view arguments) {
  std::size_t looked = 0;
  for (std::string_view word : base::split(arguments, '\0')) {
    if (looked == kMostWords) return;
    if (word.starts_with("--") && word.find('=') != std::string_view::npos) word.remove_prefix(word.find('=') + 1);
    if (word.empty() || word.starts_with('-') || word.size() > 2048) continue;
    ++looked;
    const std::string path = resolved(pid, word);
    if (is_model_file(word)) {
      if (base::is_file(path)) add(path, "named on the command line of", pid);
    } else if (base::is_file(path + "/config.json")) {
      add(path + "/config.json", "named on the command line of", pid);
    } else if (is_hub_name(word)) {
      add_cached(pid, word);
    }
  }
}

void ModelFiles::look_at_files(pid_t pid) {
  if (found_.size() >= kMostFiles) return;
  for (std::string& path : mapped_model_files(maps(pid, kMostMapsBytes))) add(std::move(path), "mapped by", pid);
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  DIR* descriptors = ::opendir(folder.c_str());
  if (descriptors == nullptr) return;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(descriptors)) {
    if (entry->d_name[0] == '.' || ++seen > kMostDescriptors) continue;
    std::string target = link_target(folder + "/" + entry->d_name);
    if (target.starts_with('/') && is_model_file(target)) add(std::move(target), "open in", pid);
  }
  ::closedir(descriptors);
}

}  // namespace llmprof::host

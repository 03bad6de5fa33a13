#include "model/checkpoint/hub_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"

namespace llmprof::model {
namespace {

namespace fs = std::filesystem;

bool is_word(std::string_view text) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, allowed);
}

timespec changed(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mtim : timespec{};
}

}  // namespace

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
    const std::string commit(base::trimmed(*main));
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

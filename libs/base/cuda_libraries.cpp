#include "base/cuda_libraries.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/strings.h"

namespace llmprof::base {
namespace {

namespace fs = std::filesystem;

void add(std::vector<std::string>& found, const fs::path& folder, std::string_view library) {
  std::error_code error;
  const fs::path file = folder / library;
  if (fs::exists(file, error)) found.push_back(file.string());
}

// Folders inside `folder`, by name, the last (the newest version) first.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) folders.push_back(at->path());
  }
  std::sort(folders.rbegin(), folders.rend());
  return folders;
}

void add_toolkits(std::vector<std::string>& found, std::string_view library) {
  std::vector<fs::path> toolkits;
  if (const std::string home = env_or("CUDA_HOME", ""); !home.empty()) toolkits.emplace_back(home);
  toolkits.emplace_back("/usr/local/cuda");
  for (const fs::path& folder : folders_in("/usr/local")) {
    if (folder.filename().string().starts_with("cuda-")) toolkits.push_back(folder);
  }
  for (const fs::path& toolkit : toolkits) {
    add(found, toolkit / "lib64", library);
    add(found, toolkit / "targets/x86_64-linux/lib", library);
    add(found, toolkit / "extras/CUPTI/lib64", library);
  }
}

// The packages of a Python environment: <prefix>/lib/python3.*/site-packages/nvidia/*/lib.
void add_python(std::vector<std::string>& found, const fs::path& prefix, std::string_view library) {
  for (const fs::path& python : folders_in(prefix / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : folders_in(python / packages / "nvidia")) add(found, package / "lib", library);
    }
  }
}

// The environment that `python3` on PATH belongs to.
fs::path python_prefix() {
  const std::string path = env_or("PATH", "");
  for (const fs::path folder : split(path, ':')) {
    std::error_code error;
    if (!folder.empty() && fs::exists(folder / "python3", error)) return folder.parent_path();
  }
  return {};
}

}  // namespace

std::vector<std::string> cuda_library_candidates(std::string_view library) {
  std::vector<std::string> found{std::string(library)};  // the loader's own search first
  add_toolkits(found, library);
  if (const std::string environment = env_or("VIRTUAL_ENV", ""); !environment.empty()) {
    add_python(found, environment, library);
  }
  if (const fs::path prefix = python_prefix(); !prefix.empty()) add_python(found, prefix, library);
  return found;
}

}  // namespace llmprof::base

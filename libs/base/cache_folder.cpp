#include "base/cache_folder.h"

#include "base/file.h"

namespace llmprof::base {

std::string cache_folder() {
  if (const std::string folder = env_or("LLMPROF_CACHE_DIR", ""); !folder.empty()) return folder;
  if (const std::string folder = env_or("XDG_CACHE_HOME", ""); folder.starts_with('/')) return folder + "/llmprof";
  if (const std::string home = env_or("HOME", ""); !home.empty()) return home + "/.cache/llmprof";
  return "";
}

}  // namespace llmprof::base

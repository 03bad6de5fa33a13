#pragma once
// Where this user's programs keep what can be made again: $LLMPROF_CACHE_DIR, $XDG_CACHE_HOME/llmprof or
// ~/.cache/llmprof. "" if there is no such place. It need not exist yet.

#include <string>

namespace llmprof::base {

std::string cache_folder();

}  // namespace llmprof::base

#pragma once
// Which llmprof this is.

#include <string_view>

namespace llmprof::base {

std::string_view version();            // "0.1.0"
std::string_view build_description();  // "0.1.0 (commit 1a2b3c4, Release, GNU 12.2.0, CUDA headers: yes)"

}  // namespace llmprof::base

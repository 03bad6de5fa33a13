#pragma once
// What somebody may have meant who typed a name that does not exist.

#include <span>
#include <string>
#include <string_view>

namespace llmprof::bench {

// "did you mean gemm? " or, when nothing is near, "".
std::string nearest(std::string_view typed, std::span<const std::string_view> known);

}  // namespace llmprof::bench

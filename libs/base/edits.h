#pragma once
#include <cstddef>
#include <string_view>

namespace llmprof::base {

// Insertions, deletions and replacements of a character that turn `a` into `b`: how far a typed name is from a known
// one.
std::size_t edits(std::string_view a, std::string_view b);

}  // namespace llmprof::base

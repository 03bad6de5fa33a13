#pragma once
// Parquet strings are UTF-8. Names come from strangers' programs and may be any bytes.

#include <string>
#include <string_view>

namespace llmprof::trace {

// The text with every byte that is no part of valid UTF-8, and every NUL, written as \xNN (four characters).
std::string storable(std::string_view text);

}  // namespace llmprof::trace

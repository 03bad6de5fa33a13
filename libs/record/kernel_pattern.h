#pragma once
// Kernels by the names that people read, for a collector that knows them by their mangled names only.

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::record {

// Patterns (`*`, `?`) of mangled names that a name like the table kernel's stands for, or, with `wildcards`, a pattern
// of such names: "gemm<4, Tile>" is "_Z4gemmI*4Tile*". They match every kernel of that name, and may match a few more:
// what mangling abbreviates or writes otherwise (types that were named before, numbers, lambdas) is left open.
std::vector<std::string> mangled_patterns(std::string_view name, bool wildcards);

// At commas that stand outside of brackets: "a<1, 2>,b" is "a<1, 2>" and "b".
std::vector<std::string> split_names(std::string_view text);

}  // namespace llmprof::record

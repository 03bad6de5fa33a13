#pragma once
// Two designs side by side.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

struct DiffRow {
  std::string part;       // "model", "memory", "prefill", …
  std::string name;       // "KV cache per token"
  std::string_view unit;  // "", "B", "FLOP", "ns", "tokens/s", "FLOP/B"
  std::optional<double> a, b;
  std::optional<double> ratio() const { return a && b && *a > 0 ? std::optional(*b / *a) : std::nullopt; }
};

// Quantities that neither of them knows are left out.
std::vector<DiffRow> diff(const Design& a, const Design& b);

}  // namespace llmprof::analyze::design

#include "bench/nearest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace llmprof::bench {
namespace {

constexpr std::size_t kLongest = 64;

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string_view> known) {
  if (typed.empty() || typed.size() > kLongest) return "";
  std::string_view best;
  std::size_t least = std::max<std::size_t>(typed.size() / 3, 1) + 1;
  for (const std::string_view name : known) {
    const std::size_t apart = name.starts_with(typed) ? 0 : base::edits(typed, name);
    if (apart < least) {
      least = apart;
      best = name;
    }
  }
  return best.empty() ? "" : fmt::format("did you mean {}? ", best);
}

}  // namespace llmprof::bench

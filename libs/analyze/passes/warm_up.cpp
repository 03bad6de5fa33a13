#include "analyze/passes/step_time.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kMuchLonger = 2;  // times the usual time
constexpr std::size_t kManySteps = 8, kNormalAgain = 3;

std::int64_t quantile(std::vector<std::int64_t> values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

// How many steps at the begin are warming up.
std::size_t warming(const std::vector<std::int64_t>& lasted, bool prefill) {
  const std::size_t steps = lasted.size();
  if (steps < kManySteps) {
    if (!prefill || steps < 2) return 0;
    return lasted[0] > kMuchLonger * quantile({lasted.begin() + 1, lasted.end()}, 0.5) ? 1 : 0;
  }
  const std::vector<std::int64_t> later(lasted.begin() + static_cast<std::ptrdiff_t>(steps / 2), lasted.end());
  const std::int64_t usual = quantile(later, 0.5);
  const std::int64_t longest = std::max(usual + usual / 4, quantile(later, 0.98));
  std::size_t warm = 0, normal = 0;
  for (std::size_t i = 0; i < steps / 4 && normal < kNormalAgain; ++i) {
    normal = lasted[i] > longest ? 0 : normal + 1;
    if (normal == 0) warm = i + 1;
  }
  return warm;
}

}  // namespace

std::vector<bool> warm_up_steps(const std::vector<Step>& steps, const trace::Strings& strings) {
  using Size = std::tuple<std::int64_t, std::int64_t>;
  std::map<std::tuple<std::int64_t, std::uint32_t, Size>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (const std::string_view stage = strings.text(step.stage); stage == "compile" || stage == "load") continue;
    const Size size{step.size.batch.value_or(0), step.size.tokens.value_or(step.size.rows.value_or(0))};
    alike[{step.thread_id, step.stage.id, size}].push_back(i);
  }
  std::vector<bool> out(steps.size());
  for (const auto& [kind, places] : alike) {
    const bool prefill = strings.text(steps[places.front()].stage) == "prefill";
    std::vector<std::int64_t> lasted;
    for (const std::size_t i : places)
      lasted.push_back(std::max<std::int64_t>(0, steps[i].end_ns - (prefill ? steps[i].begin_ns : steps[i].turn())));
    // A prefill of unknown size may be longer because its prompt is.
    const bool sized = std::get<1>(std::get<2>(kind)) > 0;
    for (std::size_t i = 0; i < warming(lasted, prefill && sized); ++i) out[places[i]] = true;
  }
  return out;
}

}  // namespace llmprof::analyze

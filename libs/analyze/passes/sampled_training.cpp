#include "analyze/passes/sampled_training.h"

#include <algorithm>
#include <span>

#include "analyze/names/range_words.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kLeastSamples = 10;  // of the forward and of the backward functions
constexpr std::int64_t kLeastChanges = 3;
// A pass that lasts n samples and a bit has n or n + 1 of them: where nine of ten have two, a pass lasts 1.9, and none
// can have fallen between two samples.
constexpr std::size_t kLeastOfPass = 2;
constexpr double kSharePlain = 0.9;
// Twice as long as the short ones: two passes that samples do not separate.
constexpr double kTooLong = 1.6, kShareTooLong = 0.05;
constexpr double kTwoPasses = 1.9;

struct Streak {  // samples of one part in a row
  LoopPart part = LoopPart::kNothing;
  std::size_t first = 0, last = 0;  // of the samples
  std::size_t size = 0;
};

std::vector<Streak> streaks_of(std::span<const LoopSample> samples) {
  std::vector<Streak> out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].part == LoopPart::kNothing) continue;
    if (out.empty() || out.back().part != samples[i].part) out.push_back({samples[i].part, i, i, 0});
    out.back().last = i;
    ++out.back().size;
  }
  return out;
}

std::vector<std::size_t> sizes_of(std::span<const Streak> streaks, LoopPart part) {
  std::vector<std::size_t> sizes;
  for (const Streak& streak : streaks) {
    if (streak.part == part) sizes.push_back(streak.size);
  }
  return sizes;
}

std::size_t quantile(std::vector<std::size_t> sizes, double share) {
  const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sizes.size() - 1));
  std::ranges::nth_element(sizes, at);
  return *at;
}

double share_of(const std::vector<std::size_t>& sizes, double more_than) {
  const auto more = std::ranges::count_if(sizes, [&](std::size_t n) { return static_cast<double>(n) > more_than; });
  return static_cast<double>(more) / static_cast<double>(sizes.size());
}

// A forward pass that no backward pass follows learns nothing: validation or generation. Where several such passes
// come before one that does, samples show one long streak; its end is as long as a forward pass usually is.
void find_forward_only(std::vector<LoopSample>& samples, bool by_length) {
  const std::vector<Streak> streaks = streaks_of(samples);
  const std::size_t usual = quantile(sizes_of(streaks, LoopPart::kForward), 0.5);
  for (std::size_t i = 0; i < streaks.size(); ++i) {
    const Streak& streak = streaks[i];
    if (streak.part != LoopPart::kForward) continue;
    const bool learns = i + 1 < streaks.size() && streaks[i + 1].part == LoopPart::kBackward;
    std::size_t others = learns ? 0 : streak.size;
    // At least a whole pass more: a pass that others disturb is longer, too.
    if (by_length && static_cast<double>(streak.size) >= kTwoPasses * static_cast<double>(usual) &&
        streak.size > usual + 2)
      others = std::max(others, streak.size - usual);
    for (std::size_t at = streak.first; others > 0; ++at) {
      if (samples[at].part != LoopPart::kForward) continue;
      samples[at].part = LoopPart::kForwardOnly;
      --others;
    }
  }
}

bool can_be_counted(std::span<const Streak> streaks, LoopPart part) {
  const std::vector<std::size_t> sizes = sizes_of(streaks, part);
  if (sizes.empty() || share_of(sizes, kLeastOfPass - 1) < kSharePlain) return false;
  return share_of(sizes, kTooLong * static_cast<double>(quantile(sizes, 0.25)) + 1) <= kShareTooLong;
}

// A sample tells that the part was there at this moment. Between two of them the change is somewhere: in the middle, on
// average.
std::vector<LoopPass> passes_of(std::span<const LoopSample> samples, std::span<const Streak> streaks) {
  std::vector<LoopPass> passes;
  for (const Streak& streak : streaks) {
    const LoopSample &first = samples[streak.first], &last = samples[streak.last];
    passes.push_back({.part = streak.part,
                      .begin_ns = first.at_ns - first.weight_ns / 2,
                      .end_ns = last.at_ns + last.weight_ns / 2,
                      .samples = static_cast<std::int64_t>(streak.size)});
    if (passes.size() < 2) continue;
    LoopPass& before = passes[passes.size() - 2];
    const std::int64_t last_before_ns = samples[streaks[passes.size() - 2].last].at_ns;
    const std::int64_t middle_ns = last_before_ns + (first.at_ns - last_before_ns) / 2;
    constexpr std::int64_t kNear = 2;  // periods: nothing else was there in between
    if (first.at_ns - last_before_ns <= kNear * first.weight_ns || before.end_ns > passes.back().begin_ns)
      before.end_ns = passes.back().begin_ns = middle_ns;
  }
  return passes;
}

}  // namespace

std::string_view loop_stage(LoopPart part) {
  static constexpr std::array<std::string_view, kLoopParts> kNames{"", "forward", "backward", "optimizer",
                                                                   "forward only"};
  return kNames[static_cast<std::size_t>(part)];
}

LoopPart loop_part(std::string_view function, const std::vector<RangePattern>& patterns) {
  if (function.starts_with("std::") || function.starts_with("__gnu_cxx::")) return LoopPart::kNothing;
  // The class and the method: "gpt2::GPT2::Forward" is a pass whatever its namespaces are called.
  if (const std::size_t method = function.rfind("::"); method != std::string_view::npos && method > 0) {
    const std::size_t scope = function.rfind("::", method - 1);
    if (scope != std::string_view::npos) function.remove_prefix(scope + 2);
  }
  const Meaning meaning = meaning_of(function, "", "", patterns);
  if (meaning.kind == RangeKind::kStep) {
    if (meaning.stage == "forward") return LoopPart::kForward;
    if (meaning.stage == "backward") return LoopPart::kBackward;
    if (meaning.stage == "optimizer" || meaning.stage == "update") return LoopPart::kOptimizer;
    if (meaning.stage == "validation" || meaning.stage == "generation") return LoopPart::kForwardOnly;
    return LoopPart::kNothing;
  }
  // Parts have a direction, too, for loops that call them one by one, and for threads that work for them alone.
  switch (direction_of(function)) {
    case Direction::kForward:
      return LoopPart::kForward;
    case Direction::kBackward:
      return LoopPart::kBackward;
    case Direction::kNeither:
      break;
  }
  return LoopPart::kNothing;
}

std::optional<SampledLoop> find_loop(std::vector<LoopSample>& samples) {
  const auto of = [&](LoopPart part) { return std::ranges::count(samples, part, &LoopSample::part); };
  if (of(LoopPart::kForward) < kLeastSamples || of(LoopPart::kBackward) < kLeastSamples) return std::nullopt;
  SampledLoop loop;
  const std::vector<Streak> seen = streaks_of(samples);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (seen[i - 1].part == LoopPart::kForward && seen[i].part == LoopPart::kBackward) ++loop.changes;
  }
  if (loop.changes < kLeastChanges) return std::nullopt;
  const std::vector<LoopSample> as_seen = samples;
  find_forward_only(samples, true);
  // The length of a stretch tells nothing where passes are uneven, nor where few are longer: others disturbed them.
  if (!can_be_counted(streaks_of(samples), LoopPart::kForward) || of(LoopPart::kForwardOnly) < kLeastSamples) {
    samples = as_seen;
    find_forward_only(samples, false);
  }
  const std::vector<Streak> streaks = streaks_of(samples);
  loop.passes = passes_of(samples, streaks);
  const auto count = [&](LoopPart part) {
    loop.counted[static_cast<std::size_t>(part)] = std::ranges::count(streaks, part, &Streak::part);
  };
  if (!can_be_counted(streaks, LoopPart::kForward) || !can_be_counted(streaks, LoopPart::kBackward)) return loop;
  count(LoopPart::kForward);
  count(LoopPart::kBackward);
  const bool updates = of(LoopPart::kOptimizer) > 0;
  const bool updates_counted = updates && can_be_counted(streaks, LoopPart::kOptimizer);
  if (updates_counted) count(LoopPart::kOptimizer);
  loop.countable = updates_counted || !updates;
  return loop;
}

}  // namespace llmprof::analyze

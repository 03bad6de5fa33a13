// Warp stall reasons, by hardware counters.

#include <array>

#include "analyze/rules/tools.h"

namespace llmprof::analyze::stall_reasons {
namespace {

constexpr double kLeastTime = 0.1;   // of the counted kernels' time
constexpr double kNearRoof = 0.6;    // from there on the roof is what holds it back
constexpr double kLeastStall = 0.3;  // of all warps that waited
constexpr std::int64_t kLeastSamples = 1000;

struct Words {
  std::string_view reason, waits_for, advice;
};
constexpr std::array<Words, 11> kWords = {
    {{"long_scoreboard", "global or local memory",
      "Load earlier and more at once (wider loads, asynchronous copies, more stages), or keep more warps resident."},
     {"lg_throttle", "the queue of global memory instructions",
      "Use wider loads: fewer instructions for the same bytes."},
     {"short_scoreboard", "shared memory or special functions", "Avoid bank conflicts; keep values in registers."},
     {"mio_throttle", "the queue of shared memory and special functions", "Fewer, wider accesses to shared memory."},
     {"math_pipe_throttle", "an arithmetic unit", "The unit is the limit: tensor cores, or a narrower type."},
     {"tex_throttle", "the texture queue", "Fewer texture instructions."},
     {"barrier", "other warps of the block at a barrier", "Smaller blocks, or barriers between fewer warps."},
     {"membar", "a memory barrier", "Fewer or narrower fences."},
     {"no_instruction", "the next instruction: caches of instructions miss, or the kernel is too short",
      "Less unrolling; for very short kernels, fusing them."},
     {"wait", "a fixed latency of the instruction before", "More independent instructions per thread, or more warps."},
     {"drain", "writes to memory at its end", "Write less or earlier."}}};

const Words* words_of(std::string_view reason) {
  const auto found = std::ranges::find(kWords, reason, &Words::reason);
  return found == kWords.end() ? nullptr : &*found;
}

std::string rows_of(const std::string& kernel) {
  return fmt::format(
      "SELECT k.id, c.metric, c.value, c.unit FROM counter AS c JOIN counted_kernel AS k ON k.id = c.scope_id WHERE "
      "c.scope = 'kernel' AND c.metric LIKE 'smsp__%warps_issue_stalled_%' AND k.name = {} ORDER BY k.id, c.value DESC",
      sql_literal(kernel));
}

double all_stalled(const CountedKernel& kernel) {
  double sum = 0;
  for (const CountedKernel::Stall& stall : kernel.stalls)
    sum += stall.reason == "selected" || stall.reason == "not_selected" ? 0 : stall.warps;
  return sum;
}

Finding finding_of(const CountedKernel& kernel, const CountedKernel::Stall& stall, const Words& words, double of) {
  Finding out{.part = short_kernel(kernel.name)};
  out.title = fmt::format("{} waits for {}", short_kernel(kernel.name), words.waits_for);
  out.text = fmt::format("Of the warps that wait{}, {} wait for that; the kernel reaches {} of its roof.",
                         kernel.stalls_of_resident ? "" : " when an instruction issues",
                         human_percent(stall.warps / all_stalled(kernel)), human_percent(kernel.of_roof));
  const std::string rows = rows_of(kernel.name);
  out.add_fraction("kernel.stall_" + stall.reason, fmt::format("warps that wait for {}", words.waits_for),
                   stall.warps / all_stalled(kernel),
                   kernel.stalls_of_resident
                       ? human_percent(all_stalled(kernel)) + " of the resident warps wait"
                       : fmt::format("{:.1f} waiting warps per issued instruction", all_stalled(kernel)),
                   "counted", rows);
  out.add_fraction("kernel.of_roof", "minimum time at the device's roofs, of its time", kernel.of_roof,
                   human_ns(kernel.time_ns) + " in all launches", "counted");
  if (kernel.occupancy)
    out.add_fraction("kernel.occupancy", "active warps", kernel.occupancy, "warps that fit", "counted");
  const double time = static_cast<double>(kernel.time_ns), gain = time * (1 - *kernel.of_roof);
  out.set_gain(
      gain, of,
      fmt::format("{} at {} of the roof: {} above it", human_ns(time), human_percent(kernel.of_roof), human_ns(gain)));
  out.advice = {std::string(words.advice)};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

// Samples of warps tell what a kernel waits for, not whether it could be faster.
std::optional<Finding> from_samples(const RuleInput& run, const KernelStalls& kernel) {
  if (kernel.share < kLeastTime || kernel.samples < kLeastSamples) return std::nullopt;
  double waiting = 0;
  const StallReason* top = nullptr;
  for (const auto& reason : kernel.reasons) {
    if (reason.reason == "selected" || reason.reason == "not_selected") continue;
    waiting += reason.share;
    if (top == nullptr && words_of(reason.reason) != nullptr) top = &reason;
  }
  if (top == nullptr || top->share < kLeastStall * waiting) return std::nullopt;
  const auto counted = std::ranges::find(run.summary.imported.counted, kernel.kernel, &CountedKernel::name);
  const bool known = counted != run.summary.imported.counted.end() && counted->of_roof;
  if (known && *counted->of_roof >= kNearRoof) return std::nullopt;
  const Words& words = *words_of(top->reason);
  Finding out{.part = short_kernel(kernel.kernel)};
  out.title = fmt::format("{} waits for {}", short_kernel(kernel.kernel), words.waits_for);
  out.text = fmt::format("{} of its samples of waiting warps say so.", human_percent(top->share / waiting));
  if (!kernel.places.empty() && !kernel.places.front().file.empty())
    out.text += fmt::format(" Most of its samples are at {}:{}.", kernel.places.front().file,
                            kernel.places.front().line.value_or(0));
  const std::string rows = fmt::format(
      "SELECT offset_bytes, file, line, reason, sum(samples) AS samples FROM stall WHERE kernel = {} GROUP BY ALL "
      "ORDER BY samples DESC",
      sql_literal(kernel.kernel));
  out.add_fraction("kernel.sampled_" + top->reason, fmt::format("warps that wait for {}", words.waits_for),
                   top->share / waiting,
                   fmt::format("{:.0f} samples of its waiting warps", waiting * static_cast<double>(kernel.samples)),
                   "measured", rows);
  out.add_fraction("kernel.samples", "samples of warps in this kernel", kernel.share,
                   fmt::format("{} samples of warps in the run", run.summary.counters.stall_samples), "measured", rows);
  out.advice = {std::string(words.advice)};
  if (!known) {
    out.verdict = Verdict::kInconclusive;
    out.text += " Hardware counters show whether it could be faster.";
    out.next = "llmprof record --counters roofline --counters-method kernel --counters-kernels PATTERN -- PROGRAM";
  }
  return out;
}

RuleResult check_samples(const RuleInput& run) {
  RuleResult out;
  for (const KernelStalls& kernel : run.summary.counters.stalls) {
    if (std::optional<Finding> found = from_samples(run, kernel)) out.findings.push_back(std::move(*found));
  }
  out.why = fmt::format(
      "of {} kernels with samples of warps none has 10 % of the samples and one reason with 30 % of its waiting warps",
      run.summary.counters.stalls.size());
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const auto& counted = run.summary.imported.counted;
  if (std::ranges::none_of(counted, [](const CountedKernel& kernel) { return !kernel.stalls.empty(); })) {
    if (!run.summary.counters.stalls.empty()) return check_samples(run);
    return not_applicable(
        fmt::format("{} kernels with hardware counters, 0 of them with stall reasons", counted.size()));
  }
  double total = 0;
  for (const CountedKernel& kernel : counted) total += kernel.time_ns;
  RuleResult out;
  int small = 0, short_of_time = 0, near = 0, spread = 0;
  for (const CountedKernel& kernel : counted) {
    const LaunchShape* shape = find_by(run.facts.launch_shapes, kernel.name, &LaunchShape::kernel);
    const auto top =
        std::ranges::find_if(kernel.stalls, [](const auto& stall) { return words_of(stall.reason) != nullptr; });
    if (kernel.time_ns < kLeastTime * total)
      ++short_of_time;
    else if (shape != nullptr && shape->blocks < shape->units)
      ++small;
    else if (!kernel.of_roof || *kernel.of_roof >= kNearRoof)
      ++near;
    else if (top == kernel.stalls.end() || top->warps < kLeastStall * all_stalled(kernel))
      ++spread;
    else
      out.findings.push_back(finding_of(kernel, *top, *words_of(top->reason), total));
  }
  out.why = fmt::format(
      "of {} counted kernels {} take less than 10 % of the time, {} have fewer blocks than the device has "
      "multiprocessors (too small for stalls to matter), {} are at 60 % of their roof or more or have none, {} have no "
      "reason above 30 %",
      counted.size(), short_of_time, small, near, spread);
  return out;
}

}  // namespace llmprof::analyze::stall_reasons

// Kernels that read the same bytes from memory again because the L2 cache does not hold them.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::low_l2_hits {
namespace {

constexpr double kLowHits = 0.5;
constexpr double kLeastTimes = 1.5;  // bytes moved, of those that must move
constexpr double kLeastTime = 0.05;  // of the counted kernels' time

Finding finding_of(const CountedKernel& kernel, const NeededBytes& needed, double of) {
  const double moved = *kernel.dram_bytes, time = static_cast<double>(kernel.time_ns);
  const double gain = time * (1 - needed.bytes / moved);
  Finding out{.part = short_kernel(kernel.name)};
  out.title = fmt::format("{} moves {:.1f} times the bytes it needs; {} of its reads hit the L2 cache",
                          short_kernel(kernel.name), moved / needed.bytes, human_percent(kernel.l2_hits));
  out.text = "Memory bounds it, and what one block has read is gone before the next block needs it.";
  const std::string rows = fmt::format(
      "SELECT k.id, c.metric, c.value, c.unit FROM counter AS c JOIN counted_kernel AS k ON k.id = c.scope_id WHERE "
      "c.scope = 'kernel' AND k.name = {} AND (c.metric LIKE 'lts__t_sector%' OR c.metric LIKE 'dram__bytes%')",
      sql_literal(kernel.name));
  out.add_fraction("kernel.l2_hits", "sectors found in the L2 cache", kernel.l2_hits, "sectors asked for", "counted",
                   rows);
  out.add_number("kernel.dram_bytes", "bytes read from and written to memory, all launches", moved, "B", "counted",
                 rows);
  out.add_number(
      "kernel.needed_bytes", "operands and results, each once", needed.bytes, "B", "analytic",
      fmt::format(
          "SELECT g.m, g.n, g.k, g.type_a FROM kernel AS k JOIN gemm AS g ON g.id = k.gemm_id WHERE k.name = {}",
          sql_literal(kernel.name)));
  out.set_gain(gain, of,
               fmt::format("{} bound by memory for {}; {} are needed: {} of {}", human_ns(time), human_bytes(moved),
                           human_bytes(needed.bytes), human_ns(gain), human_ns(time)));
  out.advice = {"Let blocks that share operands run at the same time (order of tiles, swizzle), or use larger tiles.",
                "Try other algorithms of the library for this shape: llmprof bench gemm."};
  out.next = "llmprof bench gemm --from RUN";
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const auto& counted = run.summary.imported.counted;
  double total = 0;
  int with_hits = 0, low = 0, unknown = 0;
  for (const CountedKernel& kernel : counted) total += kernel.time_ns, with_hits += kernel.l2_hits ? 1 : 0;
  if (with_hits == 0)
    return not_applicable(
        fmt::format("{} kernels with hardware counters, 0 of them with hits of the L2 cache", counted.size()));
  RuleResult out;
  for (const CountedKernel& kernel : counted) {
    if (!kernel.l2_hits || *kernel.l2_hits >= kLowHits || !kernel.dram_bytes || kernel.bound != "memory") continue;
    ++low;
    const auto needed = std::ranges::find(run.facts.needed_bytes, kernel.name, &NeededBytes::kernel);
    if (needed == run.facts.needed_bytes.end() || needed->launches != kernel.launches)
      ++unknown;
    else if (*kernel.dram_bytes >= kLeastTimes * needed->bytes && kernel.time_ns >= kLeastTime * total)
      out.findings.push_back(finding_of(kernel, *needed, total));
  }
  out.why = fmt::format(
      "of {} kernels with counted hits {} are bound by memory and below 50 %; of {} of these the bytes they need are "
      "unknown, and a kernel that reads everything once has few hits and loses nothing",
      with_hits, low, unknown);
  return out;
}

}  // namespace llmprof::analyze::low_l2_hits

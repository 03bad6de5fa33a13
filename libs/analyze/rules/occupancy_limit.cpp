// Kernels of which too few warps fit a multiprocessor to hide the latency of memory.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::occupancy_limit {
namespace {

constexpr double kLow = 0.5;         // occupancy
constexpr double kLeastTime = 0.05;  // of the GPU time
constexpr double kNearRoof = 0.6;

struct Seen {
  const LaunchShape& shape;
  Occupancy occupancy;
  double time_ns = 0, gpu_ns = 0;
  const CountedKernel* counted = nullptr;
};

std::string advice(const std::string& limiter) {
  if (limiter == "registers")
    return "Fewer registers per thread: __launch_bounds__, smaller tiles per thread, or num_warps in Triton.";
  if (limiter == "shared memory") return "Less shared memory per block: fewer stages or smaller tiles.";
  return "Another block size: of this one too few blocks fit a multiprocessor.";
}

Finding finding_of(const Seen& seen) {
  const LaunchShape& shape = seen.shape;
  Finding out{.part = short_kernel(shape.kernel)};
  out.title = fmt::format("{}: {} limits the occupancy to {}", short_kernel(shape.kernel), seen.occupancy.limiter,
                          human_percent(seen.occupancy.occupancy));
  out.text = fmt::format(
      "{} blocks of {} threads fit a multiprocessor; the kernel is no matrix product, so warps in flight are what "
      "hides the latency of memory.",
      seen.occupancy.blocks, shape.threads);
  const std::string rows = fmt::format(
      "SELECT DISTINCT grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, shared_bytes FROM kernel WHERE "
      "name = {}",
      sql_literal(shape.kernel));
  out.add_fraction("kernel.theoretical_occupancy", "warps that fit at once with these resources",
                   seen.occupancy.occupancy, "warps of a multiprocessor", "analytic", rows);
  out.add_number("kernel.registers", "registers per thread", shape.registers, "", "measured", rows);
  out.add_number("kernel.shared_bytes", "shared memory per block", shape.shared_bytes, "B", "measured", rows);
  out.add_number("kernel.threads", "threads per block", shape.threads, "", "measured", rows);
  out.add_fraction("kernel.gpu_share", "its time", seen.time_ns / seen.gpu_ns, human_ns(seen.gpu_ns) + " of kernels",
                   "measured");
  out.advice = {advice(seen.occupancy.limiter)};
  out.next = "llmprof advise ncu -- PROGRAM";
  if (seen.counted == nullptr || !seen.counted->of_roof) {
    out.verdict = Verdict::kInconclusive;
    out.text += " Hardware counters show whether that slows it down.";
    return out;
  }
  out.add_fraction("kernel.of_roof", "minimum time at the device's roofs, of its time", seen.counted->of_roof,
                   human_ns(seen.counted->time_ns), "counted");
  const double gain = seen.time_ns * (1 - *seen.counted->of_roof);
  out.set_gain(gain, seen.gpu_ns,
               fmt::format("{} at {} of the roof: {} above it", human_ns(seen.time_ns),
                           human_percent(seen.counted->of_roof), human_ns(gain)));
  return out;
}

// All stages together, estimates of graph nodes included.
double time_of_kernel(const Summary& summary, const std::string& name, const LaunchShape& shape) {
  double sum = 0;
  for (const KernelTime& kernel : summary.gpu.kernels) {
    if (kernel.name == name) sum += kernel.time_ns;
  }
  return sum > 0 ? sum : static_cast<double>(shape.time_ns);
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const double gpu_ns = run.summary.coverage.gpu_ns;
  int looked = 0, unknown = 0, products = 0, small = 0, low = 0;
  RuleResult out;
  for (const LaunchShape& shape : run.facts.launch_shapes) {
    const double time = time_of_kernel(run.summary, shape.kernel, shape);
    if (gpu_ns <= 0 || time < kLeastTime * gpu_ns) continue;
    ++looked;
    const auto limits = sm_limits(shape.chip);
    if (!limits) {
      ++unknown;
      continue;
    }
    const Occupancy occupancy = occupancy_of(shape, *limits);
    if (occupancy.occupancy >= kLow) continue;
    ++low;
    const auto counted = std::ranges::find(run.summary.imported.counted, shape.kernel, &CountedKernel::name);
    const bool known = counted != run.summary.imported.counted.end();
    if (is_product(shape.kernel) || is_attention(shape.kernel) || is_collective(shape.kernel))
      ++products;
    else if (shape.blocks < shape.units * std::max<std::int64_t>(1, occupancy.blocks))
      ++small;
    else if (!known || counted->of_roof.value_or(0) < kNearRoof)
      out.findings.push_back(finding_of({shape, occupancy, time, gpu_ns, known ? &*counted : nullptr}));
  }
  if (looked == 0)
    return not_applicable(fmt::format("{} kernels with known registers, 0 of them with 5 % of the GPU time",
                                      run.facts.launch_shapes.size()));
  out.why = fmt::format(
      "of {} kernels with 5 % of the GPU time or more {} have an occupancy below 50 %: {} are matrix products, "
      "attention or collectives, which need few warps, and {} have too few blocks to fill the device; of {} the "
      "device's limits are unknown",
      looked, low, products, small, unknown);
  return out;
}

}  // namespace llmprof::analyze::occupancy_limit

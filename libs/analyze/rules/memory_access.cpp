// Kernels whose loads and stores use the memory badly: scattered over sectors, in the same banks of shared memory, or
// of registers that were spilled. All three need counters of single kernels that the set `access` has, or Nsight
// Compute.

#include "analyze/rules/tools.h"

namespace llmprof::analyze {
namespace {

constexpr double kSectorBytes = 32;
constexpr double kMostWhenCoalesced = 16;  // sectors of a warp's load of 16 bytes a thread: no load needs more
constexpr double kLeastUse = 0.5;          // of a sector's bytes
constexpr double kLeastConflicts = 0.2;    // of the wavefronts of shared memory
constexpr double kLeastLocal = 0.1;        // of the sectors asked of L1
constexpr double kLeastTime = 0.05;        // of the counted kernels' time
constexpr double kLeastGain = 0.02;        // of the same: what shared memory or L1 lose in vain must matter
constexpr const char* kCommand = "llmprof record --counters access --counters-kernels '*'";

std::string counter_rows(const CountedKernel& kernel, std::string_view metrics) {
  return fmt::format(
      "SELECT k.id, c.metric, c.value, c.unit FROM counter AS c JOIN counted_kernel AS k ON k.id = c.scope_id WHERE "
      "c.scope = 'kernel' AND k.name = {} AND c.metric LIKE '{}'",
      sql_literal(kernel.name), metrics);
}

bool takes(const CountedKernel& kernel, double ns) { return kernel.time_ns > 0 && kernel.time_ns >= ns; }

// Looks at the kernels whose `value` was counted: find(kernel, time of all kernels) has a finding or none, and
// say(highest value) is what holds where none has.
template <class Value, class Find, class Say>
RuleResult check_kernels(const RuleInput& run, std::string_view what, Value value, Find find, Say say) {
  const std::vector<CountedKernel>& all = run.summary.imported.counted;
  double total = 0, most = 0;
  for (const CountedKernel& kernel : all) total += kernel.time_ns;
  RuleResult out;
  int looked_at = 0;
  for (const CountedKernel& kernel : all) {
    const std::optional<double> seen = value(kernel);
    if (!seen) continue;
    ++looked_at;
    most = std::max(most, *seen);
    if (std::optional<Finding> found = find(kernel, total)) out.findings.push_back(std::move(*found));
  }
  if (looked_at == 0)
    return not_applicable(
        fmt::format("{} kernels with hardware counters, 0 of them with {} ({})", all.size(), what, kCommand));
  out.why = fmt::format("{} kernels counted{}", looked_at, say(most));
  return out;
}

// Of the sectors that loads asked for, the share that no way of loading the same bytes would need. Bytes per sector say
// it; without them only what no width of access explains counts.
std::optional<double> wasted_sectors(const CountedKernel& kernel) {
  if (kernel.bytes_per_load_sector && *kernel.bytes_per_load_sector > 0) {
    const double use = std::min(1.0, *kernel.bytes_per_load_sector / kSectorBytes);
    return use < kLeastUse ? std::optional(1 - use) : std::nullopt;
  }
  if (!kernel.sectors_per_load || *kernel.sectors_per_load <= kMostWhenCoalesced) return std::nullopt;
  return 1 - kMostWhenCoalesced / *kernel.sectors_per_load;
}

Finding uncoalesced(const CountedKernel& kernel, double wasted, double of) {
  const double time = static_cast<double>(kernel.time_ns), gain = time * wasted;
  Finding out{.part = short_kernel(kernel.name)};
  out.title = kernel.bytes_per_load_sector ? fmt::format("{} uses {:.0f} of the 32 bytes of each sector it loads",
                                                         short_kernel(kernel.name), *kernel.bytes_per_load_sector)
                                           : fmt::format("{} asks for {:.1f} sectors with each load of a warp",
                                                         short_kernel(kernel.name), *kernel.sectors_per_load);
  out.text =
      "Threads of a warp load from places that are far from each other: memory and caches move whole sectors of 32 "
      "bytes, most of which nobody needs.";
  constexpr std::string_view kMetrics = "l1tex__t_%_pipe_lsu_mem_global_op_%";
  if (kernel.sectors_per_load)
    out.add_number("kernel.sectors_per_load",
                   "sectors of one load of a warp; 4 is ideal for 4 bytes a thread, 16 for 16 bytes, 32 is the most",
                   kernel.sectors_per_load, "", "counted", counter_rows(kernel, kMetrics));
  if (kernel.sectors_per_store)
    out.add_number("kernel.sectors_per_store", "sectors of one store of a warp", kernel.sectors_per_store, "",
                   "counted", counter_rows(kernel, kMetrics));
  if (kernel.bytes_per_load_sector)
    out.add_number("kernel.bytes_per_load_sector", "bytes needed of each sector of 32 bytes",
                   kernel.bytes_per_load_sector, "B", "counted",
                   counter_rows(kernel, "smsp__sass_%data_bytes%mem_global_op_ld%"));
  out.set_gain(gain, of,
               fmt::format("{} of the sectors it loads are not needed: at most {} of {}", human_percent(wasted),
                           human_ns(gain), human_ns(time)));
  out.advice = {"Let neighbouring threads load neighbouring elements: change the layout, or which thread does what.",
                "Where the layout is given, load a tile as it lies into shared memory and transpose it there."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

Finding conflicts(const CountedKernel& kernel, double of) {
  const double time = static_cast<double>(kernel.time_ns), gain = time * *kernel.shared_busy * *kernel.bank_conflicts;
  Finding out{.part = short_kernel(kernel.name)};
  out.title = fmt::format("{} of {}'s accesses to shared memory are repeated for bank conflicts",
                          human_percent(kernel.bank_conflicts), short_kernel(kernel.name));
  out.text =
      "Threads of a warp address different words in the same bank of shared memory, so that one access takes several "
      "cycles.";
  out.add_fraction("kernel.bank_conflicts", "wavefronts that conflicts cost", kernel.bank_conflicts,
                   "wavefronts of shared memory", "counted");
  out.add_fraction("kernel.shared_busy", "cycles in which L1 worked on shared memory", kernel.shared_busy,
                   "cycles of the kernel", "counted");
  out.set_gain(gain, of,
               fmt::format("shared memory is busy for {} of {}, {} of that with conflicts: {}",
                           human_percent(kernel.shared_busy), human_ns(time), human_percent(kernel.bank_conflicts),
                           human_ns(gain)));
  out.advice = {"Pad the rows of the tile by one element, or swizzle them, so that columns spread over all banks.",
                "Use wider accesses (8 or 16 bytes a thread): fewer wavefronts for the same bytes."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

Finding spills(const CountedKernel& kernel, double of) {
  const double time = static_cast<double>(kernel.time_ns), gain = time * *kernel.local_share;
  Finding out{.part = short_kernel(kernel.name)};
  out.title = fmt::format("{} of the sectors that {} asks for are local memory", human_percent(kernel.local_share),
                          short_kernel(kernel.name));
  out.text =
      "Registers that do not fit are spilled to local memory, and arrays with indices that the compiler does not know "
      "live there: both cost loads and stores that the algorithm does not need.";
  out.add_fraction("kernel.local_share", "sectors of local memory", kernel.local_share,
                   "sectors of local and global memory asked of L1", "counted");
  if (kernel.local_bytes)
    out.add_number("kernel.local_bytes", "bytes of local memory, all launches", kernel.local_bytes, "B", "counted",
                   counter_rows(kernel, "l1tex__t_sectors_pipe_lsu_mem_local_op_%"));
  out.set_gain(gain, of,
               fmt::format("{} of what it asks of L1, so at most {} of {}", human_percent(kernel.local_share),
                           human_ns(gain), human_ns(time)));
  out.advice = {"Allow more registers per thread (__launch_bounds__, maxrregcount; Triton: fewer or more warps).",
                "Smaller tiles, less unrolling; index small arrays by constants only, so that they stay in registers."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

}  // namespace

namespace uncoalesced_access {
RuleResult check(const RuleInput& run) {
  const auto value = [](const CountedKernel& kernel) {
    const bool known = kernel.sectors_per_load || kernel.bytes_per_load_sector;
    return known ? std::optional(kernel.sectors_per_load.value_or(0)) : std::nullopt;
  };
  const auto find = [](const CountedKernel& kernel, double total) {
    const std::optional<double> wasted = wasted_sectors(kernel);
    const bool found = wasted && takes(kernel, kLeastTime * total);
    return found ? std::optional(uncoalesced(kernel, *wasted, total)) : std::nullopt;
  };
  return check_kernels(run, "sectors of loads", value, find, [](double most) {
    return fmt::format(", at most {:.1f} sectors per load; up to 16 may be 16 bytes a thread", most);
  });
}
}  // namespace uncoalesced_access

namespace bank_conflicts {
RuleResult check(const RuleInput& run) {
  const auto lost = [](const CountedKernel& kernel) {
    const bool known = kernel.bank_conflicts && kernel.shared_busy;
    return known ? std::optional(*kernel.shared_busy * *kernel.bank_conflicts) : std::nullopt;
  };
  const auto find = [&](const CountedKernel& kernel, double total) {
    const bool found = *kernel.bank_conflicts >= kLeastConflicts && *lost(kernel) > 0 &&
                       takes(kernel, kLeastGain * total / *lost(kernel));
    return found ? std::optional(conflicts(kernel, total)) : std::nullopt;
  };
  return check_kernels(run, "bank conflicts", lost, find, [](double most) {
    return fmt::format("; conflicts take at most {} of the cycles of one", human_percent(most));
  });
}
}  // namespace bank_conflicts

namespace local_memory {
RuleResult check(const RuleInput& run) {
  const auto find = [](const CountedKernel& kernel, double total) {
    const bool found = *kernel.local_share >= kLeastLocal && takes(kernel, kLeastTime * total);
    return found ? std::optional(spills(kernel, total)) : std::nullopt;
  };
  const auto value = [](const CountedKernel& kernel) { return kernel.local_share; };
  return check_kernels(run, "local memory", value, find, [](double most) {
    return fmt::format("; local memory is at most {} of the sectors of one", human_percent(most));
  });
}
}  // namespace local_memory

}  // namespace llmprof::analyze

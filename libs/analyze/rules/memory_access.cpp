// Kernels whose loads and stores use the memory badly: scattered over sectors, in the same banks of shared memory, or
// of registers that were spilled. All three need counters of single kernels that the set `access` has, or Nsight
// Compute.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/rules/wording.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace memory_access {
namespace {

constexpr double kSectorBytes = 32;
constexpr double kMostWhenCoalesced = 16;  // sectors of a warp's load of 16 bytes a thread: no load needs more
constexpr double kLeastUse = 0.5;          // of a sector's bytes
constexpr double kLeastConflicts = 0.2;    // of the wavefronts of shared memory
constexpr double kLeastLocal = 0.1;        // of the sectors asked of L1
constexpr double kLeastTime = 0.05;        // of the counted kernels' time
constexpr double kLeastGain = 0.02;        // of the same: what shared memory or L1 lose in vain must matter
constexpr const char* kCommand = "llmprof record --counters access --counters-kernels '*'";

double time_of(const CountedKernel& kernel) { return static_cast<double>(kernel.time_ns); }

bool takes(const CountedKernel& kernel, double ns) { return kernel.time_ns > 0 && time_of(kernel) >= ns; }

double total_time(const RuleInput& run) {
  double total = 0;
  for (const CountedKernel& kernel : run.summary.imported.counted) total += time_of(kernel);
  return total;
}

Evidence counted(std::string name, std::string what, const std::optional<double>& value, std::string unit,
                 const CountedKernel& kernel, std::string_view metrics) {
  return number(
      std::move(name), std::move(what), value, std::move(unit), "counted",
      fmt::format("SELECT k.id, c.metric, c.value, c.unit FROM counter AS c JOIN counted_kernel AS k ON k.id = "
                  "c.scope_id WHERE c.scope = 'kernel' AND k.name = {} AND c.metric LIKE '{}'",
                  sql_literal(kernel.name), metrics));
}

// How many of the kernels with counters say what a rule asks for.
template <class Known>
std::optional<RuleResult> none_known(const RuleInput& run, std::string_view what, Known known) {
  const auto& all = run.summary.imported.counted;
  if (std::any_of(all.begin(), all.end(), known)) return std::nullopt;
  return not_applicable(
      fmt::format("{} kernels with hardware counters, 0 of them with {} ({})", all.size(), what, kCommand));
}

// ---- sectors
// ---------------------------------------------------------------------------------------------------------

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
  Finding out{.rule = "uncoalesced_access", .part = short_kernel(kernel.name)};
  out.title = kernel.bytes_per_load_sector ? fmt::format("{} uses {:.0f} of the 32 bytes of each sector it loads",
                                                         short_kernel(kernel.name), *kernel.bytes_per_load_sector)
                                           : fmt::format("{} asks for {:.1f} sectors with each load of a warp",
                                                         short_kernel(kernel.name), *kernel.sectors_per_load);
  out.text =
      "Threads of a warp load from places that are far from each other: memory and caches move whole sectors of 32 "
      "bytes, most of which nobody needs.";
  constexpr std::string_view kMetrics = "l1tex__t_%_pipe_lsu_mem_global_op_%";
  if (kernel.sectors_per_load) {
    out.evidence.push_back(counted("kernel.sectors_per_load",
                                   "sectors of one load of a warp; 4 is ideal for 4 bytes a thread, 16 for 16 bytes, "
                                   "32 is the most",
                                   kernel.sectors_per_load, "", kernel, kMetrics));
  }
  if (kernel.sectors_per_store) {
    out.evidence.push_back(counted("kernel.sectors_per_store", "sectors of one store of a warp",
                                   kernel.sectors_per_store, "", kernel, kMetrics));
  }
  if (kernel.bytes_per_load_sector) {
    out.evidence.push_back(counted("kernel.bytes_per_load_sector", "bytes needed of each sector of 32 bytes",
                                   kernel.bytes_per_load_sector, "B", kernel,
                                   "smsp__sass_%data_bytes%mem_global_op_ld%"));
  }
  const double time = time_of(kernel), gain = time * wasted;
  set_gain(out, gain, of,
           fmt::format("{} of the sectors it loads are not needed: at most {} of {}", base::human_percent(wasted),
                       base::human_ns(gain), base::human_ns(time)));
  out.advice = {"Let neighbouring threads load neighbouring elements: change the layout, or which thread does what.",
                "Where the layout is given, load a tile as it lies into shared memory and transpose it there."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

RuleResult check_sectors(const RuleInput& run) {
  const auto known = [](const CountedKernel& kernel) {
    return kernel.sectors_per_load.has_value() || kernel.bytes_per_load_sector.has_value();
  };
  if (auto none = none_known(run, "sectors of loads", known)) return *none;
  const double total = total_time(run);
  RuleResult out;
  std::int64_t looked_at = 0;
  double most = 0;
  for (const CountedKernel& kernel : run.summary.imported.counted) {
    if (!known(kernel)) continue;
    ++looked_at;
    most = std::max(most, kernel.sectors_per_load.value_or(0));
    const std::optional<double> wasted = wasted_sectors(kernel);
    if (wasted && takes(kernel, kLeastTime * total)) out.findings.push_back(uncoalesced(kernel, *wasted, total));
  }
  out.why = fmt::format("{} kernels counted, at most {:.1f} sectors per load; up to 16 may be 16 bytes a thread",
                        looked_at, most);
  return out;
}

// ---- bank conflicts
// --------------------------------------------------------------------------------------------------

Finding conflicts(const CountedKernel& kernel, double of) {
  const double time = time_of(kernel), gain = time * *kernel.shared_busy * *kernel.bank_conflicts;
  Finding out{.rule = "bank_conflicts", .part = short_kernel(kernel.name)};
  out.title = fmt::format("{} of {}'s accesses to shared memory are repeated for bank conflicts",
                          base::human_percent(kernel.bank_conflicts), short_kernel(kernel.name));
  out.text =
      "Threads of a warp address different words in the same bank of shared memory, so that one access takes several "
      "cycles.";
  out.evidence.push_back(fraction("kernel.bank_conflicts", "wavefronts that conflicts cost", kernel.bank_conflicts,
                                  "wavefronts of shared memory", "counted"));
  out.evidence.push_back(fraction("kernel.shared_busy", "cycles in which L1 worked on shared memory",
                                  kernel.shared_busy, "cycles of the kernel", "counted"));
  set_gain(out, gain, of,
           fmt::format("shared memory is busy for {} of {}, {} of that with conflicts: {}",
                       base::human_percent(kernel.shared_busy), base::human_ns(time),
                       base::human_percent(kernel.bank_conflicts), base::human_ns(gain)));
  out.advice = {"Pad the rows of the tile by one element, or swizzle them, so that columns spread over all banks.",
                "Use wider accesses (8 or 16 bytes a thread): fewer wavefronts for the same bytes."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

RuleResult check_conflicts(const RuleInput& run) {
  const auto known = [](const CountedKernel& kernel) { return kernel.bank_conflicts && kernel.shared_busy; };
  if (auto none = none_known(run, "bank conflicts", known)) return *none;
  const double total = total_time(run);
  RuleResult out;
  std::int64_t looked_at = 0;
  double most = 0;
  for (const CountedKernel& kernel : run.summary.imported.counted) {
    if (!known(kernel)) continue;
    ++looked_at;
    const double lost = *kernel.shared_busy * *kernel.bank_conflicts;
    most = std::max(most, lost);
    if (*kernel.bank_conflicts >= kLeastConflicts && lost > 0 && takes(kernel, kLeastGain * total / lost))
      out.findings.push_back(conflicts(kernel, total));
  }
  out.why = fmt::format("{} kernels counted; conflicts take at most {} of the cycles of one", looked_at,
                        base::human_percent(most));
  return out;
}

// ---- local memory
// ----------------------------------------------------------------------------------------------------

Finding spills(const CountedKernel& kernel, double of) {
  const double time = time_of(kernel), gain = time * *kernel.local_share;
  Finding out{.rule = "local_memory", .part = short_kernel(kernel.name)};
  out.title = fmt::format("{} of the sectors that {} asks for are local memory",
                          base::human_percent(kernel.local_share), short_kernel(kernel.name));
  out.text =
      "Registers that do not fit are spilled to local memory, and arrays with indices that the compiler does not know "
      "live there: both cost loads and stores that the algorithm does not need.";
  constexpr std::string_view kMetrics = "l1tex__t_sectors_pipe_lsu_mem_local_op_%";
  out.evidence.push_back(fraction("kernel.local_share", "sectors of local memory", kernel.local_share,
                                  "sectors of local and global memory asked of L1", "counted"));
  if (kernel.local_bytes) {
    out.evidence.push_back(counted("kernel.local_bytes", "bytes of local memory, all launches", kernel.local_bytes, "B",
                                   kernel, kMetrics));
  }
  set_gain(out, gain, of,
           fmt::format("{} of what it asks of L1, so at most {} of {}", base::human_percent(kernel.local_share),
                       base::human_ns(gain), base::human_ns(time)));
  out.advice = {"Allow more registers per thread (__launch_bounds__, maxrregcount; Triton: fewer or more warps).",
                "Smaller tiles, less unrolling; index small arrays by constants only, so that they stay in registers."};
  out.next = "llmprof advise ncu -- PROGRAM";
  return out;
}

RuleResult check_local(const RuleInput& run) {
  const auto known = [](const CountedKernel& kernel) { return kernel.local_share.has_value(); };
  if (auto none = none_known(run, "local memory", known)) return *none;
  const double total = total_time(run);
  RuleResult out;
  std::int64_t looked_at = 0;
  double most = 0;
  for (const CountedKernel& kernel : run.summary.imported.counted) {
    if (!known(kernel)) continue;
    ++looked_at;
    most = std::max(most, *kernel.local_share);
    if (*kernel.local_share >= kLeastLocal && takes(kernel, kLeastTime * total))
      out.findings.push_back(spills(kernel, total));
  }
  out.why = fmt::format("{} kernels counted; local memory is at most {} of the sectors of one", looked_at,
                        base::human_percent(most));
  return out;
}

}  // namespace
}  // namespace memory_access

extern const Rule kUncoalescedAccess, kBankConflicts, kLocalMemory;

const Rule kUncoalescedAccess = {
    .name = "uncoalesced_access",
    .title = "Loads that are scattered over sectors",
    .meaning =
        "Looks at kernels with hardware counters that take at least 5 % of the counted time. Found where threads need "
        "less than half of the bytes of the sectors that they load, or, where those bytes were not counted, where a "
        "warp's load asks for more than 16 sectors, which no width of access explains. Gain, at most: the kernel's "
        "time, in proportion to the sectors that are not needed. `llmprof record --counters "
        "access --counters-kernels '*'` counts sectors; `access,bytes_per_load_sector` those bytes, too.",
    .check = memory_access::check_sectors};

const Rule kBankConflicts = {
    .name = "bank_conflicts",
    .title = "Bank conflicts in shared memory",
    .meaning =
        "Looks at kernels with hardware counters. Found where at least 20 % of the wavefronts of shared memory are "
        "repeated for bank conflicts and these take at least 2 % of the counted time. Gain: the cycles that shared "
        "memory was busy with them. `llmprof record --counters access --counters-kernels '*'` counts them.",
    .check = memory_access::check_conflicts};

const Rule kLocalMemory = {
    .name = "local_memory",
    .title = "Spilled registers and arrays of threads",
    .meaning =
        "Looks at kernels with hardware counters that take at least 5 % of the counted time. Found where at least 10 % "
        "of the sectors that loads and stores ask L1 for are local memory. Gain, at most: the kernel's time in that "
        "proportion. `llmprof record --counters access --counters-kernels '*'` counts them.",
    .check = memory_access::check_local};

}  // namespace llmprof::analyze

// Every rule: its function here, what is said of it in rules.md. Adding one: docs/how-to-add/rule.md.

#include "analyze/rules/rule.h"

#include <algorithm>

#include "base/asset.h"
#include "base/strings.h"

// clang-format off
#define LLMPROF_RULES(X) \
  X(bandwidth_floor) X(wide_weights) X(kv_cache_traffic) X(idle_tensor_cores) X(tile_waves) X(small_batch) \
  X(launch_bound) X(compile_in_loop) X(host_sync) X(pageable_copies) X(idle_gaps) X(unfused_chains) \
  X(missing_overlap) X(logits_sampling) X(load_time) X(throttled_clocks) X(allocator_churn) \
  X(redundant_traffic) X(low_l2_hits) X(uncoalesced_access) X(bank_conflicts) X(local_memory) \
  X(occupancy_limit) X(stall_reasons) X(moe_imbalance) X(prefill_interference) X(graph_padding) \
  X(queueing) X(kv_pressure) X(preemption) X(step_padding) X(host_bound_scheduling) X(prefix_cache_misses) \
  X(straggling_rank) X(cpu_oversubscribed) X(spinning_threads) X(lock_contention) X(cpu_limit) X(kernel_time)
// clang-format on

namespace llmprof::analyze {

#define LLMPROF_DECLARE(rule)             \
  namespace rule {                        \
  RuleResult check(const RuleInput& run); \
  }
LLMPROF_RULES(LLMPROF_DECLARE)

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

namespace {

// "## name: title", perhaps "- stages: decode mixed", then what it means in one line.
std::vector<Rule> read_rules() {
  std::vector<Rule> all;
  for (const std::string_view line : base::split(base::find_asset(assets(), "rules/rules.md"), '\n')) {
    if (line.starts_with("## ")) {
      const std::size_t colon = line.find(": ");
      all.push_back({.name = line.substr(3, colon - 3), .title = line.substr(colon + 2)});
    } else if (line.starts_with("- stages: ")) {
      all.back().stages = line.substr(10);
    } else if (!all.empty() && !line.empty()) {
      all.back().meaning = line;
    }
  }
#define LLMPROF_CHECK(rule) \
  for (Rule & each : all)   \
    if (each.name == #rule) each.check = rule::check;
  LLMPROF_RULES(LLMPROF_CHECK)
  return all;
}

}  // namespace

std::span<const Rule* const> rules() {
  static const std::vector<Rule> all = read_rules();
  static const std::vector<const Rule*> pointers = [] {
    std::vector<const Rule*> out;
    for (const Rule& rule : all) out.push_back(&rule);
    return out;
  }();
  return pointers;
}

const Rule* find_rule(std::string_view name) {
  const auto found = std::ranges::find(rules(), name, &Rule::name);
  return found == rules().end() ? nullptr : *found;
}

}  // namespace llmprof::analyze

#include "analyze/passes/kernel_sums.h"

namespace llmprof::analyze {
namespace {

constexpr std::size_t kMostKinds = 1u << 18;  // at once: some 80 MB

std::uint64_t both(trace::Name high, std::uint64_t low) { return static_cast<std::uint64_t>(high.id) << 32 | low; }

trace::OptionalId known(std::int64_t id) { return id == kNull ? std::nullopt : trace::OptionalId(id); }

}  // namespace

std::size_t KernelSums::Hash::operator()(const Kind& kind) const {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : kind) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

void KernelSums::add(const Kernels& kernels, const std::vector<trace::AttributionRow>& places) {
  std::vector<trace::Name> names(kernels.texts.size());  // code 0 is NULL
  for (std::size_t i = 1; i < names.size(); ++i) names[i] = strings_.intern(kernels.texts[i]);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const trace::AttributionRow& place = places[i];
    const trace::Name name = names[static_cast<std::size_t>(kernels.name[i])];
    const bool in_step = place.step_id.has_value();
    const Kind kind{both(place.stage, in_step ? 1 : 0),
                    both(place.module, name.id),
                    both(place.op, place.module_source.id),
                    static_cast<std::uint64_t>(kernels.device_id[i]),
                    static_cast<std::uint64_t>(place.gemm_id.value_or(kNull)),
                    static_cast<std::uint64_t>(kernels.node(i)),
                    static_cast<std::uint64_t>(kernels.stack_id[i])};
    const auto [found, first] = places_.try_emplace(kind, rows_.size());
    if (first) {
      rows_.push_back({.stage = place.stage,
                       .in_step = in_step,
                       .module = place.module,
                       .op = place.op,
                       .module_source = place.module_source,
                       .name = name,
                       .device_id = kernels.device_id[i],
                       .gemm_id = place.gemm_id,
                       .graph_node_id = known(kernels.node(i)),
                       .stack_id = known(kernels.stack_id[i])});
    }
    trace::KernelSumRow& row = rows_[found->second];
    ++row.kernels;
    row.gemm_calls += place.gemm_call ? 1 : 0;
    row.time_ns += kernels.end_ns[i] - kernels.begin_ns[i];
    if (kernels.stream[i] != kNull && kernels.graph_launch_id[i] == kNull) {
      ++row.launches;
      if (kernels.launch_end_ns[i] != kNull) ++row.timed_launches;
      if (kernels.launch_end_ns[i] != kNull && kernels.launch_begin_ns[i] != kNull)
        row.launch_ns += kernels.launch_end_ns[i] - kernels.launch_begin_ns[i];
    }
    if (rows_.size() == kMostKinds) finish();
  }
}

void KernelSums::finish() {
  for (const trace::KernelSumRow& row : rows_) sink_(row);
  rows_.clear();
  places_.clear();
}

}  // namespace llmprof::analyze

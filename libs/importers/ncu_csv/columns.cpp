#include "importers/ncu_csv/columns.h"

#include <unordered_map>

namespace llmprof::importers::ncu {

Column column_of(std::string_view title) {
  static const std::unordered_map<std::string_view, Column> kTitles{{"ID", Column::kId},
                                                                    {"Process ID", Column::kPid},
                                                                    {"Process Name", Column::kProcess},
                                                                    {"Kernel Name", Column::kKernel},
                                                                    {"Stream", Column::kStream},
                                                                    {"Block Size", Column::kBlock},
                                                                    {"Grid Size", Column::kGrid},
                                                                    {"Device", Column::kDevice},
                                                                    {"CC", Column::kCapability},
                                                                    {"Metric Name", Column::kMetricName},
                                                                    {"Metric Unit", Column::kMetricUnit},
                                                                    {"Metric Value", Column::kMetricValue},
                                                                    {"Host Name", Column::kIgnored},
                                                                    {"Context", Column::kIgnored},
                                                                    {"Section Name", Column::kIgnored},
                                                                    {"Body Item Label", Column::kIgnored}};
  if (const auto found = kTitles.find(title); found != kTitles.end()) return found->second;
  // NVTX columns; what says nothing about the kernel but about the machine it ran on.
  if (title.find(':') != std::string_view::npos || title.starts_with("Rule ") || title.starts_with("Estimated "))
    return Column::kIgnored;
  for (const std::string_view machine : {"device__", "numa__", "nvlink__", "c2clink__"}) {
    if (title.starts_with(machine)) return Column::kIgnored;
  }
  return Column::kMetric;
}

Use use_of(std::string_view metric) {
  if (metric == "gpu__time_duration.sum" || metric == "gpu__time_duration" || metric == "Duration")
    return Use::kDuration;
  if (metric == "gpu__time_duration.max" || metric == "gpu__time_duration.avg") return Use::kDuration;
  if (metric == "profiler__replayer_passes") return Use::kPasses;
  if (metric == "launch__registers_per_thread" || metric == "Registers Per Thread") return Use::kRegisters;
  if (metric == "launch__shared_mem_per_block_static" || metric == "Static Shared Memory Per Block")
    return Use::kStaticShared;
  if (metric == "launch__shared_mem_per_block_dynamic" || metric == "Dynamic Shared Memory Per Block")
    return Use::kDynamicShared;
  return Use::kNone;
}

}  // namespace llmprof::importers::ncu

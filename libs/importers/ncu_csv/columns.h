#pragma once
// What the columns and metrics of a CSV of Nsight Compute are, by their titles.

#include <cstdint>
#include <string_view>

namespace llmprof::importers::ncu {

enum class Column : std::uint8_t {
  kIgnored,
  kMetric,
  kId,
  kPid,
  kProcess,
  kKernel,
  kStream,
  kBlock,
  kGrid,
  kDevice,
  kCapability,
  kMetricName,
  kMetricUnit,
  kMetricValue,
};
Column column_of(std::string_view title);

// What a metric gives beside its counter.
enum class Use : std::uint8_t { kNone, kDuration, kPasses, kRegisters, kStaticShared, kDynamicShared };
Use use_of(std::string_view metric);

}  // namespace llmprof::importers::ncu

#pragma once
// The metrics of inference servers that are understood, one line each. From the servers' documentation.

#include <cstdint>
#include <span>
#include <string_view>

namespace llmprof::analyze {

enum class MetricRole : std::uint8_t { kNumber, kShare, kCounter, kLatency, kPrefixQueries, kPrefixHits };

struct KnownMetric {
  std::string_view name;  // of the family: without _bucket, _sum, _count
  std::string_view server, what;
  MetricRole role;
  std::string_view unit = "";
  double factor = 1;  // to the unit
};

std::span<const KnownMetric> known_metrics();

}  // namespace llmprof::analyze

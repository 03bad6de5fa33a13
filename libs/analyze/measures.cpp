#include "analyze/measures.h"

namespace llmprof::analyze {

std::span<const MeasureKind> measure_kinds() { return {}; }
const MeasureKind* find_measure_kind(std::string_view) { return nullptr; }
std::vector<Measure> measures(const Summary&) { return {}; }

const Measure* find_measure(const std::vector<Measure>& all, std::string_view full_name) {
  for (const Measure& measure : all) {
    if (measure.full_name() == full_name) return &measure;
  }
  return nullptr;
}

}  // namespace llmprof::analyze

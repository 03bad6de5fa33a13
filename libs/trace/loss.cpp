#include "trace/loss.h"

#include <fmt/format.h>

#include "base/human.h"

namespace llmprof::trace {

std::string describe(const LossEntry& entry) {
  const std::string_view label = entry.severity == name_of(Severity::kDataLoss)   ? "LOST"
                                 : entry.severity == name_of(Severity::kDegraded) ? "incomplete"
                                                                                  : "note";
  const std::string unit = entry.count == 1 ? base::singular(entry.unit) : std::string(entry.unit);
  std::string text = fmt::format("{}: {}, {} {}: {}", label, entry.name, entry.count, unit, entry.meaning);
  if (!entry.detail.empty()) text += fmt::format(" ({})", entry.detail);
  if (!entry.remedy.empty()) text += fmt::format(". To do: {}", entry.remedy);
  return text;
}

}  // namespace llmprof::trace

#pragma once
// What `llmprof counters` shows, as text and as JSON.

#include "hw/counters/catalog.h"
#include "hw/counters/host_library.h"
#include "verb.h"

namespace llmprof::app {

using WantedMethod = std::optional<hw::counters::Method>;  // nothing: all of them

// Every chip with the passes of every set.
std::string chips_text();
base::Json chips_json();

// Sets and counters of a chip.
std::string chip_text(const hw::counters::Chip& chip, WantedMethod method);
base::Json chip_json(const hw::counters::Chip& chip, WantedMethod method);

// What was asked for by name, with formulas, and what all of it needs together. `library` may be null: passes then come
// from the table.
struct Asked {
  const hw::counters::Selection& selection;
  const hw::counters::Chip& chip;
  WantedMethod method;
  const hw::counters::HostLibrary* library;
};
std::string asked_text(const Asked& asked);
base::Json asked_json(const Asked& asked);
// Passes of all that was asked for; nothing where they are not known; an error where the chip refuses.
Result<std::optional<int>> passes_together(const Asked& asked, hw::counters::Method method);

// Metrics of the chip by a pattern: `*` and `?`, or a part of the name.
struct RawMetric {
  std::string name, unit, text;
  bool ranges = false, sampled = false;
};
Result<std::vector<RawMetric>> raw_metrics(const hw::counters::HostLibrary& library, const std::string& chip,
                                           const std::string& pattern, WantedMethod method);
std::string raw_text(const std::vector<RawMetric>& metrics);
base::Json raw_json(const std::vector<RawMetric>& metrics);

}  // namespace llmprof::app

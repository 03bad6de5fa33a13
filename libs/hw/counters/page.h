#pragma once
#include <string>

namespace llmprof::hw::counters {

// docs/format/counters.md with its generated part (counters, sets, passes) renewed from the catalogue.
std::string with_current_catalog(std::string page);

}  // namespace llmprof::hw::counters

#pragma once
// Reads the catalogue's file (catalog.json); apart from the embedded one for tests.

#include <string_view>
#include <vector>

#include "hw/counters/catalog.h"

namespace llmprof::hw::counters {

struct CatalogFile {
  std::vector<Chip> chips;
  std::vector<Counter> counters;
  std::vector<Set> sets;
};
Result<CatalogFile> parse_catalog(std::string_view text, std::string_view where);

}  // namespace llmprof::hw::counters

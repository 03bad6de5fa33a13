#pragma once
// In how many passes a set or counter can be read on a chip: a table (passes.json) computed by CUPTI's host library,
// so that it is known where there is none. A test holds it against the library.

#include <optional>
#include <string>
#include <string_view>

#include "hw/counters/catalog.h"

namespace llmprof::hw::counters {

// Of a set or a counter. 1 when sampled: what would need more is not sampled. Nothing where the chip or the method does
// not offer it.
std::optional<int> passes_of(std::string_view set_or_counter, std::string_view chip, Method method);

// CUPTI's version that computed the table.
int passes_version();

// docs/format/counters.md with its generated part (counters, sets, passes) renewed from the catalogue.
std::string with_current_catalog(std::string page);

}  // namespace llmprof::hw::counters

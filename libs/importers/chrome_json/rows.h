#pragma once
// Events of a trace to rows: processes, threads, devices, ranges, operators, API calls, kernels, copies, graph launches
// and nodes, products and attention by their shapes, stacks, allocations; launches joined to what they launched.

#include <memory>

#include "importers/chrome_json/reader.h"

namespace llmprof::importers::chrome_json {

std::unique_ptr<EventTaker> make_rows(Sink& sink);
// What could only be told at the end: kernels whose launch never came, open ranges, products and their kernels.
Result<void> finish_rows(EventTaker& rows);

}  // namespace llmprof::importers::chrome_json

#pragma once
// Events of devices to rows: kernels, copies and fills, as Kineto and as XLA write them.

#include <string_view>

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/graphs.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/names.h"

namespace llmprof::importers::chrome_json {

Work kernel_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id);
Work copy_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id);

// "Memcpy HtoD (Pinned -> Device)", "MemcpyD2H", "Memset (Device)" -> "host_to_device", …; "" if it does not say.
std::string_view copy_direction(std::string_view name);

// The number behind a key in text that is not parsed further: integer_in(R"("correlation_id":"7")",
// "correlation_id\"").
std::int64_t integer_in(std::string_view text, std::string_view key);
// Fills what XLA writes as text: "regs:43 static_shared:0 dynamic_shared:36864 grid:352,1,1 block:128,1,1".
void take_xla_details(std::string_view raw, Work& work);

}  // namespace llmprof::importers::chrome_json

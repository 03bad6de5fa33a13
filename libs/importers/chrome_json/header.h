#pragma once
// What a trace says about itself beside its events.

#include <cstdint>
#include <optional>
#include <string>

#include "importers/chrome_json/event.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

struct Origin {
  bool kineto = false;
  bool with_stack = false;
  std::optional<bool> record_shapes;  // unknown in files that do not say
  std::optional<std::int64_t> base_time_ns;
  std::string tool = "Chrome trace";
};

// Adds what `header` says to what is known.
void take(const Header& header, Origin& origin);
// The clock of a file whose first event is at `first_ns`.
FileClock clock_of(const Origin& origin, std::int64_t first_ns);

}  // namespace llmprof::importers::chrome_json

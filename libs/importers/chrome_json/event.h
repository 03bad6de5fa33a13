#pragma once
// One event of a trace, as plain data: what the reader (reader.h) makes of its JSON and the rows (rows.h) are made
// from. Texts are views that live until the next chunk.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace llmprof::importers::chrome_json {

inline constexpr std::int64_t kUnknown = INT64_MIN;

// A pid or tid: a number, or a text ("Spans", "PyTorch Profiler").
struct Lane {
  std::int64_t number = kUnknown;
  std::string_view text;
};

// What stands in "args" and is known by name. kUnknown or "": not there. Raw: JSON text as written.
struct Arguments {
  std::int64_t external_id = kUnknown, correlation = kUnknown, device = kUnknown, context = kUnknown, stream = kUnknown;
  std::array<std::int64_t, 3> grid{kUnknown, kUnknown, kUnknown}, block{kUnknown, kUnknown, kUnknown};
  std::int64_t registers = kUnknown, shared_bytes = kUnknown, bytes = kUnknown;
  std::int64_t graph_node_id = kUnknown, graph_id = kUnknown;
  std::int64_t sequence = kUnknown;
  std::int64_t address = kUnknown, total_allocated = kUnknown, total_reserved = kUnknown, device_type = kUnknown;
  std::string_view dims, types, concrete,
      strides;            // "Input Dims", "Input type", "Concrete Inputs", "Input Strides": raw
  std::string_view name;  // of metadata events
  std::string_view collective, process_group, dtype;  // "Collective name", "Process Group Name", "dtype"
  std::string_view group_description, group_ranks;    // "Process Group Description", "Process Group Ranks"
  std::int64_t in_elements = kUnknown, out_elements = kUnknown, group_size = kUnknown;
  std::string_view raw;  // all of it
};

struct Event {
  char phase = 0;  // X, B, E, i, I, C, M, s, t, f, b, n, e, …
  std::string_view category, name;
  Lane pid, tid;
  std::int64_t ts_ns = kUnknown;   // microseconds of the file times 1000, rounded
  std::int64_t dur_ns = kUnknown;  // of X
  std::int64_t id = kUnknown;      // of flows and asynchronous events
  Arguments args;
  std::uint64_t offset = 0;  // of its first byte in the content
};

// What stands beside "traceEvents".
struct Header {
  std::optional<std::int64_t> base_time_ns;  // baseTimeNanoseconds
  std::string_view device_properties;        // raw JSON array; "" if absent
  std::string_view distributed_info;         // raw JSON object
  std::string_view other;  // raw JSON object of everything else that is small (schemaVersion, versions, flags)
};

}  // namespace llmprof::importers::chrome_json

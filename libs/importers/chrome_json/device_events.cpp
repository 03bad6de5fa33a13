#include "importers/chrome_json/device_events.h"

#include <array>
#include <charconv>
#include <limits>

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::int64_t kMaxDevices = 4096;

trace::OptionalInt32 small(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

std::int64_t device_of(const Event& event) {
  if (event.args.device >= 0 && event.args.device < kMaxDevices) return event.args.device;
  return event.pid.number >= 0 && event.pid.number < kMaxDevices ? event.pid.number : 0;
}

template <class Row>
void fill_common(const Event& event, std::int64_t end_ns, Lanes& lanes, trace::Id id, Row& row) {
  row.id = id;
  row.begin_ns = event.ts_ns;
  row.end_ns = end_ns;
  row.device_id = lanes.device(device_of(event));
  if (event.args.stream != kUnknown) {
    row.stream = event.args.stream;
  } else if (event.tid.number != kUnknown) {
    row.stream = event.tid.number;
  }
}

std::string_view host_memory(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("Pinned") ? "pinned" : has("Pageable") ? "pageable" : has("Managed") ? "managed" : "";
}

Work work_of(const Event& event) {
  return {.row = {},
          .external_id = event.args.external_id,
          .graph_node = event.args.graph_node_id > 0 ? event.args.graph_node_id : kUnknown,
          .graph = event.args.graph_id > 0 ? event.args.graph_id : kUnknown};
}

}  // namespace

std::string_view copy_direction(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Memset") || has("memset")) return "fill";
  if (has("HtoD") || has("H2D")) return "host_to_device";
  if (has("DtoH") || has("D2H")) return "device_to_host";
  if (has("DtoD") || has("D2D")) return "device_to_device";
  if (has("PtoP") || has("P2P") || has("Peer")) return "peer";
  return has("HtoH") || has("H2H") ? "host_to_host" : "";
}

std::int64_t integer_in(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return kUnknown;
  const std::size_t digit = text.find_first_not_of("\": ", found + key.size());
  if (digit == std::string_view::npos) return kUnknown;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + digit, text.data() + text.size(), number);
  return error == std::errc{} ? number : kUnknown;
}

Work kernel_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id) {
  trace::KernelRow row;
  fill_common(event, end_ns, lanes, id, row);
  row.name = names(event.name);
  row.grid_x = small(event.args.grid[0]), row.grid_y = small(event.args.grid[1]),
  row.grid_z = small(event.args.grid[2]);
  row.block_x = small(event.args.block[0]), row.block_y = small(event.args.block[1]);
  row.block_z = small(event.args.block[2]);
  row.registers = small(event.args.registers);
  row.shared_bytes = small(event.args.shared_bytes);
  Work work = work_of(event);
  work.row = row;
  return work;
}

Work copy_of(const Event& event, std::int64_t end_ns, Lanes& lanes, Names& names, trace::Id id) {
  trace::CopyRow row;
  fill_common(event, end_ns, lanes, id, row);
  row.direction = names(copy_direction(event.name));
  row.host_memory = names(host_memory(event.name));
  row.bytes = event.args.bytes > 0 ? event.args.bytes : 0;
  Work work = work_of(event);
  work.row = row;
  return work;
}

void take_xla_details(std::string_view raw, Work& work) {
  if (auto* const copy = std::get_if<trace::CopyRow>(&work.row)) {
    const std::int64_t bytes = integer_in(raw, "size:");
    if (bytes > 0) copy->bytes = bytes;
    return;
  }
  auto& kernel = std::get<trace::KernelRow>(work.row);
  const auto triple = [&](std::string_view key) {
    std::array<trace::OptionalInt32, 3> sides;
    std::size_t at = raw.find(key);
    for (std::size_t i = 0; i < sides.size() && at != std::string_view::npos; ++i) {
      at = raw.find_first_of(i == 0 ? ":" : ",", at);
      if (at == std::string_view::npos) break;
      sides[i] = small(integer_in(raw.substr(at++), i == 0 ? ":" : ","));
    }
    return sides;
  };
  const auto grid = triple(" grid:"), block = triple(" block:");
  kernel.grid_x = grid[0], kernel.grid_y = grid[1], kernel.grid_z = grid[2];
  kernel.block_x = block[0], kernel.block_y = block[1], kernel.block_z = block[2];
  kernel.registers = small(integer_in(raw, "regs:"));
  const std::int64_t fixed = integer_in(raw, "static_shared:"), dynamic = integer_in(raw, "dynamic_shared:");
  if (fixed >= 0 && dynamic >= 0 && fixed < INT32_MAX && dynamic < INT32_MAX)
    kernel.shared_bytes = small(fixed + dynamic);
}

}  // namespace llmprof::importers::chrome_json

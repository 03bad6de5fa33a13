#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/layout.h"
#include "report/sections.h"

namespace llmprof::report {

namespace {

using analyze::AllocationGroup;
using analyze::DeviceMemory;
using analyze::MemoryPoint;
using base::Json;

// Beside the name and the highest value.
std::size_t curve_columns() { return std::min<std::size_t>(64, line_width() - 32); }

std::string bytes_text(std::int64_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

std::string open_text(const std::vector<analyze::OpenRanges>& processes) {
  std::string text;
  for (const analyze::OpenRanges& open : processes) {
    std::string path;
    for (std::size_t i = 0; i < open.names.size(); ++i) {
      if (i > 0 && open.names[i] == open.names[i - 1]) continue;  // a stage and its step
      path += (path.empty() ? "" : " › ") + open.names[i];
    }
    text += (text.empty() ? "" : "; ") + (processes.size() > 1 ? fmt::format("in {} {}", open.pid, path) : path);
  }
  return text.empty() ? "no range" : text;
}

std::string curve(const Page& page, const std::vector<MemoryPoint>& points, std::string_view what,
                  std::int64_t highest) {
  return fmt::format("  {:<12}{}  up to {}\n", what,
                     sparkline(highest_in_parts(points, curve_columns()), curve_columns(), page.unicode),
                     bytes_text(highest));
}

std::string driver_lines(const Page& page, const DeviceMemory& device) {
  if (!device.driver_peak_bytes) return "";
  const std::int64_t begin = device.driver_over_time.front().ts_ns;
  return curve(page, device.driver_over_time, "driver", *device.driver_peak_bytes) +
         wrapped(
             fmt::format("By the driver, all programs together: {} at first, highest {}{}, after {}; open then: {}.",
                         bytes_text(device.driver_first_bytes.value_or(0)), bytes_text(*device.driver_peak_bytes),
                         device.total_bytes > 0 ? " of " + bytes_text(device.total_bytes) : "",
                         time_cell(*device.driver_peak_ns - begin), open_text(device.driver_open_ranges)));
}

std::string allocation_lines(const Page& page, const DeviceMemory& device) {
  if (device.allocations == 0) return "";
  const std::int64_t begin = device.over_time.front().ts_ns;
  std::string out = curve(page, device.over_time, "allocations", device.peak_bytes);
  out += wrapped(fmt::format("By {}: highest {} {} after the first; open then: {}.",
                             counted(device.allocations, "allocation"), bytes_text(device.peak_bytes),
                             time_cell(device.peak_ns - begin), open_text(device.open_ranges)));
  if (device.never_freed > 0) {
    out += wrapped(fmt::format("Never freed: {}, {}.", counted(device.never_freed, "allocation"),
                               bytes_text(device.never_freed_bytes)));
  }
  return out;
}

std::string peak_table(const Page& page, const TableText& tables, const DeviceMemory& device, const Json& at_peak) {
  if (device.at_peak.empty()) return "";
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(at_peak.size(), page.top); ++i) rows.push_back(at_peak[i]);
  constexpr std::string_view kTable = "device_memory.devices[].allocations.at_peak[]";
  std::string out = tables.above(kTable) + tables.rows(kTable, rows);
  std::int64_t listed = 0;
  for (const AllocationGroup& group : device.at_peak) listed += group.allocations;
  if (listed < device.at_peak_allocations)
    out +=
        wrapped(fmt::format("The {} largest of {} allocations that were there.", listed, device.at_peak_allocations));
  return out;
}

std::string process_lines(const DeviceMemory& device) {
  std::string out;
  for (const analyze::ProcessDeviceMemory& process : device.processes) {
    if (device.processes.size() < 2 && process.source != "driver") continue;  // the allocations say the same
    const std::string name = process.name.substr(process.name.rfind('/') + 1);
    out += wrapped(fmt::format("{} {}: at most {}, by {}.", name.empty() ? "(unknown)" : name, process.pid,
                               bytes_text(process.peak_bytes),
                               process.source == "driver" ? "the driver" : "its allocations"));
  }
  return out;
}

}  // namespace

std::string device_memory_section(const Page& page, const Style& style, const TableText& tables) {
  const analyze::DeviceMemories& memories = page.summary.device_memory;
  std::string out;
  bool allocations = false;
  for (std::size_t i = 0; i < memories.devices.size(); ++i) {
    const DeviceMemory& device = memories.devices[i];
    const Json& json = tables.report()["device_memory"]["devices"][i]["allocations"];
    allocations = allocations || device.allocations > 0;
    out += style.heading("Memory of " + (device.name.empty() ? "a device" : device.name)) + driver_lines(page, device) +
           allocation_lines(page, device) +
           peak_table(page, tables, device, json.is_null() ? Json::array() : json["at_peak"]) + process_lines(device);
  }
  if (allocations && memories.caching_allocator) {
    out += wrapped(
        "PyTorch's caching allocator takes memory from the device in segments and divides it among tensors by itself: "
        "an "
        "allocation here is a segment, and its range is the one in which the segment was taken.");
  }
  return out;
}

namespace {

using analyze::AllocatorPool;
using analyze::DeviceAllocator;

constexpr std::size_t kShownStacks = 10;

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1));
}

std::string name_of(const DeviceAllocator& device) {
  if (!device.name.empty()) return device.name;
  return device.ordinal ? fmt::format("GPU {}", *device.ordinal) : "a device";
}

std::string event_lines(const DeviceAllocator& device, bool unicode) {
  if (device.allocations == 0) return "";
  std::string out;
  if (!device.held_over_time.empty()) {
    out += fmt::format("  {:<12}{}  up to {}\n", "held",
                       sparkline(highest_in_parts(device.held_over_time, curve_columns()), curve_columns(), unicode),
                       bytes_text(*device.held_peak_bytes));
  }
  std::string text = fmt::format("Of {}, at most {} were in use at the same time, {} after the first event",
                                 counted(device.allocations, "allocation"), bytes_text(device.peak_bytes),
                                 time_cell(device.peak_ns - device.begin_ns));
  if (device.held_at_peak_bytes) {
    const std::int64_t idle = *device.held_at_peak_bytes - device.peak_bytes;
    text += fmt::format(". The allocator held {} of the device then: {}, {} % of it, were not in use",
                        bytes_text(*device.held_at_peak_bytes), bytes_text(idle),
                        percent_cell(share(idle, *device.held_at_peak_bytes)));
    text += fmt::format(". It held most, {}, {} after the first event", bytes_text(*device.held_peak_bytes),
                        time_cell(*device.held_peak_ns - device.begin_ns));
  }
  return out + wrapped(text + ".");
}

std::string stack_table(std::string_view title, const Json& stacks, std::string_view path, const TableText& tables,
                        std::size_t top) {
  if (stacks.empty()) return "";
  const std::size_t shown = std::min(stacks.size(), std::max(top, kShownStacks));
  Json rows = Json::array();
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    if (i < shown)
      rows.push_back(stacks[i]);
    else
      rest += stacks[i]["bytes"].get<std::int64_t>();
  }
  std::string out = wrapped(title) + tables.rows(path, rows, SIZE_MAX);
  if (rest > 0) out += wrapped(fmt::format("{} more stacks, {}.", stacks.size() - shown, bytes_text(rest)));
  return out;
}

AllocatorPool total_of(const std::vector<AllocatorPool>& pools) {
  AllocatorPool total;
  total.requested_bytes = 0;
  for (const AllocatorPool& pool : pools) {
    total.segments += pool.segments;
    total.bytes += pool.bytes;
    total.allocated_bytes += pool.allocated_bytes;
    total.active_bytes += pool.active_bytes;
    total.free_bytes += pool.free_bytes;
    total.between_bytes += pool.between_bytes;
    total.largest_free_bytes = std::max(total.largest_free_bytes, pool.largest_free_bytes);
    if (!pool.requested_bytes) total.requested_bytes.reset();
    if (total.requested_bytes) *total.requested_bytes += *pool.requested_bytes;
  }
  return total;
}

std::string pool_lines(const DeviceAllocator& device, const Json& pools, const TableText& tables) {
  if (device.pools.empty()) return "";
  const AllocatorPool total = total_of(device.pools);
  std::string text = fmt::format("At the snapshot: {}, {}; {} given to the program", counted(total.segments, "segment"),
                                 bytes_text(total.bytes), bytes_text(total.allocated_bytes));
  if (total.requested_bytes) text += fmt::format(" (which had asked for {})", bytes_text(*total.requested_bytes));
  text += fmt::format(
      "; {} free, {} % of it: {} between what is in use, {} could be given back; the largest free piece "
      "has {}.",
      bytes_text(total.free_bytes), percent_cell(share(total.free_bytes, total.bytes)), bytes_text(total.between_bytes),
      bytes_text(total.free_bytes - total.between_bytes), bytes_text(total.largest_free_bytes));
  return wrapped(text) + tables.rows("allocators.devices[].pools[]", pools, SIZE_MAX);
}

}  // namespace

std::string allocator_section(const Page& page, const Style& style, const TableText& tables) {
  const analyze::Allocators& all = page.summary.allocators;
  std::string out;
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    const DeviceAllocator& device = all.devices[i];
    const Json& json = tables.report()["allocators"]["devices"][i];
    const Json events = json["events"].is_null() ? Json::object() : json["events"];
    out += style.heading("Allocator of " + name_of(device)) + event_lines(device, page.unicode);
    out += stack_table("In use at that moment, by stack:", events.value("at_peak", Json::array()),
                       "allocators.devices[].events.at_peak[]", tables, page.top);
    out += stack_table(
        fmt::format("Allocated after the first event and never freed: {}, {}. What grows here from step to step leaks.",
                    counted(device.never_freed_allocations, "allocation"), bytes_text(device.never_freed_bytes)),
        events.value("never_freed", Json::array()), "allocators.devices[].events.never_freed[]", tables, page.top);
    out += pool_lines(device, json["pools"], tables);
  }
  for (const std::string& text : all.out_of_memory) out += wrapped("OUT OF MEMORY: " + text + ".");
  return out;
}

}  // namespace llmprof::report

#include "report/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/host.h"
#include "report/sparkline.h"

namespace llmprof::report {
namespace {

using analyze::AllocationGroup;
using analyze::DeviceMemory;
using analyze::MemoryPoint;
using base::Json;

constexpr std::size_t kColumns = 64;

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
                     sparkline(highest_in_parts(points, kColumns), kColumns, page.unicode), bytes_text(highest));
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

}  // namespace llmprof::report

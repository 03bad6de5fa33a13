#include "report/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/host.h"
#include "report/sparkline.h"

namespace llmprof::report {
namespace {

using analyze::AllocationGroup;
using analyze::DeviceMemory;
using analyze::MemoryPoint;
using base::Align;
using base::Json;
using base::maybe;
using base::text_or_null;

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

std::string peak_table(const Page& page, const DeviceMemory& device) {
  if (device.at_peak.empty()) return "";
  const bool functions =
      std::ranges::any_of(device.at_peak, [](const AllocationGroup& group) { return !group.function.empty(); });
  std::vector<base::TextTable::Column> columns = {{"range", Align::kLeft, true}};
  if (functions) columns.push_back({"function", Align::kLeft, true});
  for (const char* title : {"kind", "allocations", "bytes", "largest", "% of peak"}) columns.push_back({title});
  base::TextTable table(columns);
  std::int64_t listed = 0;
  for (std::size_t i = 0; i < device.at_peak.size(); ++i) {
    const AllocationGroup& group = device.at_peak[i];
    listed += group.allocations;
    if (i >= page.top) continue;
    std::vector<std::string> row = {group.ranges.empty() ? "(no range)" : group.ranges};
    if (functions) row.push_back(group.function.empty() ? "-" : group.function);
    const double share =
        static_cast<double>(group.bytes) / static_cast<double>(std::max<std::int64_t>(device.peak_bytes, 1));
    for (std::string cell : {group.kind, std::to_string(group.allocations), bytes_text(group.bytes),
                             bytes_text(group.largest_bytes), percent_cell(share)}) {
      row.push_back(std::move(cell));
    }
    table.add(row);
  }
  std::string out = wrapped("There at that moment, by the ranges in which it was allocated:") + table.render(kWidth);
  if (listed < device.at_peak_allocations) {
    out +=
        wrapped(fmt::format("The {} largest of {} allocations that were there.", listed, device.at_peak_allocations));
  }
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

Json points_json(const std::vector<MemoryPoint>& points) {
  Json out = Json::array();
  for (const MemoryPoint& point : points) out.push_back({{"ts_ns", point.ts_ns}, {"bytes", point.rss_bytes}});
  return out;
}

Json open_json(const std::vector<analyze::OpenRanges>& processes) {
  Json out = Json::array();
  for (const analyze::OpenRanges& open : processes) out.push_back({{"pid", open.pid}, {"names", open.names}});
  return out;
}

Json allocations_json(const DeviceMemory& device) {
  if (device.allocations == 0) return nullptr;
  Json there = Json::array();
  for (const AllocationGroup& group : device.at_peak) {
    there.push_back({{"ranges", text_or_null(group.ranges)},
                     {"function", text_or_null(group.function)},
                     {"kind", text_or_null(group.kind)},
                     {"allocations", group.allocations},
                     {"bytes", group.bytes},
                     {"largest_bytes", group.largest_bytes}});
  }
  return {{"allocations", device.allocations},
          {"never_freed", device.never_freed},
          {"never_freed_bytes", device.never_freed_bytes},
          {"peak_bytes", device.peak_bytes},
          {"peak_ns", device.peak_ns},
          {"open_ranges", open_json(device.open_ranges)},
          {"at_peak", there},
          {"at_peak_allocations", device.at_peak_allocations},
          {"over_time", points_json(device.over_time)}};
}

Json driver_json(const DeviceMemory& device) {
  if (!device.driver_peak_bytes) return nullptr;
  return {{"first_bytes", maybe(device.driver_first_bytes)},
          {"peak_bytes", maybe(device.driver_peak_bytes)},
          {"peak_ns", maybe(device.driver_peak_ns)},
          {"open_ranges", open_json(device.driver_open_ranges)},
          {"over_time", points_json(device.driver_over_time)}};
}

}  // namespace

std::string device_memory_section(const Page& page, const Style& style) {
  const analyze::DeviceMemories& memories = page.summary.device_memory;
  std::string out;
  bool allocations = false;
  for (const DeviceMemory& device : memories.devices) {
    allocations = allocations || device.allocations > 0;
    out += style.heading("Memory of " + (device.name.empty() ? "a device" : device.name)) + driver_lines(page, device) +
           allocation_lines(page, device) + peak_table(page, device) + process_lines(device);
  }
  if (allocations && memories.caching_allocator) {
    out += wrapped(
        "PyTorch's caching allocator takes memory from the device in segments and divides it among tensors by itself: "
        "an "
        "allocation here is a segment, and its range is the one in which the segment was taken.");
  }
  return out;
}

Json device_memory_json(const Page& page) {
  const analyze::DeviceMemories& memories = page.summary.device_memory;
  Json devices = Json::array();
  for (const DeviceMemory& device : memories.devices) {
    Json processes = Json::array();
    for (const analyze::ProcessDeviceMemory& process : device.processes) {
      processes.push_back({{"name", text_or_null(process.name)},
                           {"pid", process.pid},
                           {"peak_bytes", process.peak_bytes},
                           {"peak_ns", process.peak_ns},
                           {"source", process.source}});
    }
    devices.push_back({{"name", text_or_null(device.name)},
                       {"total_bytes", device.total_bytes},
                       {"allocations", allocations_json(device)},
                       {"driver", driver_json(device)},
                       {"processes", processes}});
  }
  return {{"devices", devices}, {"allocations_are_segments", memories.caching_allocator}};
}

}  // namespace llmprof::report

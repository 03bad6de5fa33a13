#include "report/allocator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "report/host.h"
#include "report/sparkline.h"

namespace llmprof::report {
namespace {

using analyze::AllocatingStack;
using analyze::AllocatorPool;
using analyze::DeviceAllocator;
using base::Align;
using base::Json;
using base::maybe;
using base::text_or_null;

constexpr std::size_t kColumns = 64;
constexpr std::size_t kShownStacks = 10;

std::string bytes_text(std::int64_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

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
                       sparkline(highest_in_parts(device.held_over_time, kColumns), kColumns, unicode),
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

std::string stack_table(std::string_view title, const std::vector<AllocatingStack>& stacks, std::size_t top,
                        std::int64_t whole, std::string_view of) {
  if (stacks.empty()) return "";
  base::TextTable table({{"stack, innermost first", Align::kLeft, true},
                         {"allocations"},
                         {"bytes"},
                         {"largest"},
                         {fmt::format("% of {}", of)}});
  const std::size_t shown = std::min(stacks.size(), std::max(top, kShownStacks));
  std::int64_t rest = 0;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const AllocatingStack& stack = stacks[i];
    if (i >= shown) rest += stack.bytes;
    if (i >= shown) continue;
    table.add({stack.path.empty() ? "(no stack)" : stack.path, std::to_string(stack.allocations),
               bytes_text(stack.bytes), bytes_text(stack.largest_bytes), percent_cell(share(stack.bytes, whole))});
  }
  std::string out = wrapped(title) + table.render(kWidth);
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

std::string pool_lines(const DeviceAllocator& device) {
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
  base::TextTable table({{"pool", Align::kLeft, true},
                         {"segments"},
                         {"held"},
                         {"in use"},
                         {"free"},
                         {"% free"},
                         {"between"},
                         {"largest free"}});
  for (const AllocatorPool& pool : device.pools) {
    table.add({pool.kind.empty() ? "-" : pool.kind, std::to_string(pool.segments), bytes_text(pool.bytes),
               bytes_text(pool.active_bytes), bytes_text(pool.free_bytes),
               percent_cell(share(pool.free_bytes, pool.bytes)), bytes_text(pool.between_bytes),
               bytes_text(pool.largest_free_bytes)});
  }
  return wrapped(text) + table.render(kWidth);
}

Json stacks_json(const std::vector<AllocatingStack>& stacks) {
  Json out = Json::array();
  for (const AllocatingStack& stack : stacks) {
    out.push_back({{"stack", text_or_null(stack.path)},
                   {"allocations", stack.allocations},
                   {"bytes", stack.bytes},
                   {"largest_bytes", stack.largest_bytes}});
  }
  return out;
}

Json pools_json(const std::vector<AllocatorPool>& pools) {
  Json out = Json::array();
  for (const AllocatorPool& pool : pools) {
    out.push_back({{"kind", text_or_null(pool.kind)},
                   {"segments", pool.segments},
                   {"bytes", pool.bytes},
                   {"allocated_bytes", pool.allocated_bytes},
                   {"active_bytes", pool.active_bytes},
                   {"requested_bytes", maybe(pool.requested_bytes)},
                   {"free_bytes", pool.free_bytes},
                   {"between_bytes", pool.between_bytes},
                   {"largest_free_bytes", pool.largest_free_bytes}});
  }
  return out;
}

}  // namespace

std::string allocator_section(const Page& page, const Style& style) {
  const analyze::Allocators& all = page.summary.allocators;
  std::string out;
  for (const DeviceAllocator& device : all.devices) {
    out += style.heading("Allocator of " + name_of(device)) + event_lines(device, page.unicode);
    out += stack_table("In use at that moment, by stack:", device.at_peak, page.top, device.peak_bytes, "peak");
    out += stack_table(
        fmt::format("Allocated after the first event and never freed: {}, {}. What grows here from step to step leaks.",
                    counted(device.never_freed_allocations, "allocation"), bytes_text(device.never_freed_bytes)),
        device.never_freed, page.top, device.never_freed_bytes, "them");
    out += pool_lines(device);
  }
  for (const std::string& text : all.out_of_memory) out += wrapped("OUT OF MEMORY: " + text + ".");
  return out;
}

Json allocator_json(const Page& page) {
  const analyze::Allocators& all = page.summary.allocators;
  if (all.devices.empty()) return nullptr;
  Json devices = Json::array();
  for (const DeviceAllocator& device : all.devices) {
    Json points = Json::array();
    for (const auto& point : device.held_over_time)
      points.push_back({{"ts_ns", point.ts_ns}, {"bytes", point.rss_bytes}});
    Json events = nullptr;
    if (device.allocations > 0) {
      events = {{"allocations", device.allocations},
                {"begin_ns", device.begin_ns},
                {"peak_bytes", device.peak_bytes},
                {"peak_ns", device.peak_ns},
                {"held_at_peak_bytes", maybe(device.held_at_peak_bytes)},
                {"held_peak_bytes", maybe(device.held_peak_bytes)},
                {"held_peak_ns", maybe(device.held_peak_ns)},
                {"held_over_time", points},
                {"at_peak", stacks_json(device.at_peak)},
                {"at_peak_allocations", device.at_peak_allocations},
                {"never_freed", stacks_json(device.never_freed)},
                {"never_freed_allocations", device.never_freed_allocations},
                {"never_freed_bytes", device.never_freed_bytes}};
    }
    devices.push_back({{"name", text_or_null(device.name)},
                       {"ordinal", maybe(device.ordinal)},
                       {"events", events},
                       {"pools", pools_json(device.pools)}});
  }
  return {{"devices", devices}, {"out_of_memory", all.out_of_memory}};
}

}  // namespace llmprof::report

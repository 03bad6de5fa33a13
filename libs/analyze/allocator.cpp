#include "analyze/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/device_memory.h"
#include "analyze/host_memory.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {
namespace {

constexpr std::size_t kShownPoints = 120;

struct Changes {
  std::vector<MemoryChange> given, held;
};

Result<std::map<std::int64_t, Changes>> read_changes(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "sql/allocator_changes"));
  std::map<std::int64_t, Changes> devices;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    Changes& changes = devices[v[0][i]];
    std::vector<MemoryChange>& all = v[1][i] != 0 ? changes.held : changes.given;
    all.push_back({v[2][i], v[4][i]});
    if (v[3][i] != trace::Columns::kNull) all.push_back({v[3][i], -v[4][i]});
  }
  return devices;
}

enum class Asked : std::uint8_t { kAtPeak, kNeverFreed };

Result<std::vector<AllocatingStack>> read_stacks(const trace::Run& run, Asked asked, const DeviceAllocator& device,
                                                 std::int64_t& allocations, std::int64_t& bytes) {
  std::string sql(find_question("sql/allocator_stacks")->sql);
  constexpr std::string_view kAsked = "SELECT 0 AS device, 0 AS moment, false AS never_freed";
  const bool never_freed = asked == Asked::kNeverFreed;
  sql.replace(sql.find(kAsked), kAsked.size(),
              fmt::format("SELECT {} AS device, {} AS moment, {} AS never_freed", device.device_id,
                          never_freed ? device.begin_ns : device.peak_ns, never_freed));
  LLMPROF_LET(const trace::ResultTable table, run.query(sql));
  LLMPROF_LET(std::vector<AllocatingStack> stacks, rows_as<AllocatingStack>(table));
  allocations = bytes = 0;
  for (const AllocatingStack& stack : stacks) allocations += stack.allocations, bytes += stack.bytes;
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, never_freed ? bytes : device.peak_bytes));
  for (AllocatingStack& stack : stacks) stack.share = static_cast<double>(stack.bytes) / whole;
  return stacks;
}

Result<void> fill_events(const trace::Run& run, const Changes& changes, DeviceAllocator& device) {
  const std::vector<MemoryPoint> given = allocated_over_time(changes.given);
  if (given.empty()) return {};
  const MemoryPoint highest = *std::ranges::max_element(given, {}, &MemoryPoint::rss_bytes);
  device.begin_ns = given.front().ts_ns;
  device.peak_bytes = highest.rss_bytes;
  device.peak_ns = highest.ts_ns;
  const std::vector<MemoryPoint> held = allocated_over_time(changes.held);
  if (!held.empty()) {
    const MemoryPoint most = *std::ranges::max_element(held, {}, &MemoryPoint::rss_bytes);
    device.held_peak_bytes = most.rss_bytes;
    device.held_peak_ns = most.ts_ns;
    device.held_at_peak_bytes = value_at(held, device.peak_ns);
    device.held_over_time = thinned(held, kShownPoints);
  }
  std::int64_t unused = 0;
  LLMPROF_LET(device.at_peak, read_stacks(run, Asked::kAtPeak, device, device.at_peak_allocations, unused));
  LLMPROF_LET(device.never_freed,
              read_stacks(run, Asked::kNeverFreed, device, device.never_freed_allocations, device.never_freed_bytes));
  return {};
}

Result<void> fill_pools(const trace::Run& run, Allocators& all) {
  LLMPROF_LET(std::vector<AllocatorPool> pools, ask_rows<AllocatorPool>(run, "sql/allocator_pools"));
  for (AllocatorPool& pool : pools) {
    const auto device = std::ranges::find(all.devices, pool.device_id, &DeviceAllocator::device_id);
    if (device == all.devices.end()) continue;
    pool.free_share = static_cast<double>(pool.free_bytes) / static_cast<double>(std::max<std::int64_t>(pool.bytes, 1));
    device->pools.push_back(std::move(pool));
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> value_at(const std::vector<MemoryPoint>& points, std::int64_t ts_ns) {
  const auto after = std::ranges::upper_bound(points, ts_ns, {}, &MemoryPoint::ts_ns);
  if (after == points.begin()) return std::nullopt;
  return std::prev(after)->rss_bytes;
}

Result<Allocators> allocators(const trace::Run& run) {
  Allocators all;
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/allocator_devices"));
  if (table.rows.empty()) return all;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    all.devices.emplace_back();
    all.devices.back().device_id = row.integer("id");
    all.devices.back().name = row.text("name");
    all.devices.back().ordinal = row.maybe_integer("ordinal");
    all.devices.back().allocations = row.integer("allocations");
  }
  LLMPROF_LET(const auto changes, read_changes(run));
  for (DeviceAllocator& device : all.devices) {
    const auto own = changes.find(device.device_id);
    if (own != changes.end()) LLMPROF_TRY(fill_events(run, own->second, device));
  }
  LLMPROF_TRY(fill_pools(run, all));
  LLMPROF_LET(const trace::ResultTable notes,
              run.query("SELECT text FROM note WHERE subject = 'out of memory' ORDER BY ts_ns LIMIT 20"));
  for (const auto& row : notes.rows) all.out_of_memory.push_back(row[0].text);
  return all;
}

}  // namespace llmprof::analyze

#include "importers/table_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "importers/protocol.h"
#include "trace/rows.h"

namespace llmprof::importers {
namespace {

constexpr std::int64_t kMostId = std::int64_t{1} << 48;
// Columns that are moments of the file's clock. Other columns in ns are durations.
constexpr std::array<std::string_view, 11> kMoments{"begin_ns",    "end_ns",     "ts_ns",   "launch_begin_ns",
                                                    "launch_end_ns", "captured_ns", "arrival_ns", "sent_ns",
                                                    "scheduled_ns", "first_token_ns", "last_token_ns"};
// What the assembler writes itself, or what is no importer's business.
constexpr std::array<std::string_view, 7> kOwnTables{"source",     "loss",         "peak",          "bench",
                                                     "bench_axis", "bench_sample", "collector_cost"};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

bool is_id(const trace::Column& column) {
  return column.type == trace::ColumnType::kInt64 &&
         (column.name == "id" || column.name == "graph" || column.name.ends_with("_id"));
}

}  // namespace

TablePlan::TablePlan(const trace::Table& table) : table_(&table) {
  const bool makes_process = table.name == "process", makes_thread = table.name == "thread",
             makes_device = table.name == "device";
  for (const trace::Column& column : table.columns) {
    Cell cell{static_cast<std::uint32_t>(column.offset), -1, Refers::kAny, false};
    if (column.type == trace::ColumnType::kName) {
      names_.push_back(cell.offset);
      continue;
    }
    if (column.nullable) {
      cell.present = static_cast<std::int32_t>(column.present_offset);
      bools_.push_back(static_cast<std::uint32_t>(column.present_offset));
    }
    if (column.type == trace::ColumnType::kBool) bools_.push_back(cell.offset);
    if (column.type == trace::ColumnType::kBool && column.nullable) absent_bools_.push_back(cell);
    if (is_id(column)) {
      const bool own = column.name == "id";
      if (column.name == "process_id" || (own && makes_process)) cell.refers = Refers::kProcess;
      if (column.name == "thread_id" || (own && makes_thread)) cell.refers = Refers::kThread;
      if (column.name == "device_id" || (own && makes_device)) cell.refers = Refers::kDevice;
      cell.needed = column.name == "process_id" && !column.nullable;
      ids_.push_back(cell);
    } else if (std::ranges::find(kMoments, column.name) != kMoments.end()) {
      times_.push_back(cell);
    }
  }
  const auto time_of = [&](std::string_view name) -> const Cell* {
    const trace::Column* column = table.find(name);
    if (column == nullptr) return nullptr;
    const auto found = std::ranges::find(times_, static_cast<std::uint32_t>(column->offset), &Cell::offset);
    return found == times_.end() ? nullptr : &*found;
  };
  begin_ = time_of("begin_ns"), end_ = time_of("end_ns");
  launch_begin_ = time_of("launch_begin_ns"), launch_end_ = time_of("launch_end_ns");
}

bool TablePlan::shifts(std::string_view column) const {
  return std::ranges::find(times_, static_cast<std::uint32_t>(table_->find(column)->offset), &Cell::offset) !=
         times_.end();
}

bool TablePlan::first_time(const std::byte* row, std::int64_t& ns) const {
  for (const Cell& cell : times_) {
    if (cell.present >= 0 && load<std::uint8_t>(row + cell.present) != 1) continue;
    ns = load<std::int64_t>(row + cell.offset);
    return true;
  }
  return false;
}

bool TablePlan::flags_are_bools(std::byte* rows, std::size_t count) const {
  for (const Cell& cell : absent_bools_) {
    for (std::byte *row = rows, *end = rows + count * table_->row_bytes; row != end; row += table_->row_bytes)
      if (row[cell.present] == std::byte{0}) row[cell.offset] = std::byte{0};
  }
  std::uint8_t all = 0;
  for (const std::uint32_t offset : bools_) {
    const std::byte* at = rows + offset;
    for (std::size_t i = 0; i < count; ++i, at += table_->row_bytes) all |= static_cast<std::uint8_t>(*at);
  }
  return all <= 1;
}

Result<void> TablePlan::map_ids(std::byte* rows, std::size_t count, const Cell& cell, FileMap& map) const {
  const auto* merged = cell.refers == Refers::kProcess  ? &map.processes
                       : cell.refers == Refers::kThread ? &map.threads
                       : cell.refers == Refers::kDevice ? &map.devices
                                                        : nullptr;
  if (merged != nullptr && merged->empty()) merged = nullptr;
  std::int64_t most = map.most_id;
  for (std::byte *row = rows, *end = rows + count * table_->row_bytes; row != end; row += table_->row_bytes) {
    if (cell.present >= 0 && row[cell.present] == std::byte{0}) continue;
    std::int64_t id = load<std::int64_t>(row + cell.offset);
    if (id == 0) {
      if (!cell.needed) continue;
      map.uses_process = true;
      store(row + cell.offset, map.process_id);
      continue;
    }
    if (id < 0 || id > kMostId) return broken_protocol("an id out of range");
    most = std::max(most, id);
    id += map.id_base;
    if (merged != nullptr) {
      if (const auto found = merged->find(id); found != merged->end()) id = found->second;
    }
    store(row + cell.offset, id);
  }
  map.most_id = most;
  return {};
}

Result<void> TablePlan::map_names(std::byte* rows, std::size_t count, std::uint32_t offset, const FileMap& map) const {
  std::byte* at = rows + offset;
  for (std::size_t i = 0; i < count; ++i, at += table_->row_bytes) {
    const auto id = load<std::uint32_t>(at);
    if (id >= map.names.size()) return broken_protocol("a name that was not defined");
    store(at, map.names[id]);
  }
  return {};
}

void TablePlan::shift(std::byte* rows, std::size_t count, const Cell& cell, const FileMap& map,
                      std::vector<char>& bad) const {
  if (map.shift_ns == 0) return;
  std::byte* row = rows;
  for (std::size_t i = 0; i < count; ++i, row += table_->row_bytes) {
    if (cell.present >= 0 && row[cell.present] == std::byte{0}) continue;
    std::int64_t sum = 0;
    if (__builtin_add_overflow(load<std::int64_t>(row + cell.offset), map.shift_ns, &sum)) {
      if (bad.empty()) bad.assign(count, 0);
      bad[i] = 1;
    }
    store(row + cell.offset, sum);
  }
}

void TablePlan::check_order(std::byte* rows, std::size_t count, const Cell& begin, const Cell& end,
                            std::vector<char>& bad) const {
  const std::byte* row = rows;
  for (std::size_t i = 0; i < count; ++i, row += table_->row_bytes) {
    if (begin.present >= 0 && row[begin.present] == std::byte{0}) continue;
    if (end.present >= 0 && row[end.present] == std::byte{0}) continue;
    const auto from = load<std::int64_t>(row + begin.offset), to = load<std::int64_t>(row + end.offset);
    std::int64_t duration = 0;  // one that overflows would break every sum
    if (to >= from && !__builtin_sub_overflow(to, from, &duration)) continue;
    if (bad.empty()) bad.assign(count, 0);
    bad[i] = 1;
  }
}

void TablePlan::note_times(const std::byte* rows, std::size_t count, FileMap& map) const {
  if (begin_ == nullptr || begin_->present >= 0 || table_->name == "process" || table_->name == "thread") return;
  std::int64_t first = map.has_times ? map.first_ns : std::numeric_limits<std::int64_t>::max();
  std::int64_t last = map.has_times ? map.last_ns : std::numeric_limits<std::int64_t>::min();
  const std::byte* row = rows;
  for (std::size_t i = 0; i < count; ++i, row += table_->row_bytes) {
    first = std::min(first, load<std::int64_t>(row + begin_->offset));
    if (end_ == nullptr || (end_->present >= 0 && row[end_->present] == std::byte{0})) continue;
    last = std::max(last, load<std::int64_t>(row + end_->offset));
  }
  map.has_times = true;
  map.first_ns = first, map.last_ns = std::max(first, last);
}

Result<std::size_t> TablePlan::apply(std::byte* rows, std::size_t count, FileMap& map) const {
  if (!flags_are_bools(rows, count)) return broken_protocol("a flag that is neither 0 nor 1");
  for (const Cell& cell : ids_) LLMPROF_TRY(map_ids(rows, count, cell, map));
  for (const std::uint32_t offset : names_) LLMPROF_TRY(map_names(rows, count, offset, map));
  std::vector<char> bad;  // empty: none
  for (const Cell& cell : times_) shift(rows, count, cell, map, bad);
  if (begin_ != nullptr && end_ != nullptr) check_order(rows, count, *begin_, *end_, bad);
  if (launch_begin_ != nullptr && launch_end_ != nullptr) check_order(rows, count, *launch_begin_, *launch_end_, bad);
  if (!bad.empty()) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (bad[i] != 0) continue;
      if (kept != i) std::memcpy(rows + kept * table_->row_bytes, rows + i * table_->row_bytes, table_->row_bytes);
      ++kept;
    }
    count = kept;
  }
  if (count > 0) note_times(rows, count, map);
  return count;
}

const TablePlan* plan_of(std::int64_t place) {
  static const std::vector<TablePlan> plans = [] {
    std::vector<TablePlan> all;
    all.reserve(trace::tables().size());  // plans hold pointers into themselves
    for (const trace::Table* table : trace::tables()) all.emplace_back(*table);
    return all;
  }();
  if (place < 0 || static_cast<std::size_t>(place) >= plans.size()) return nullptr;
  const TablePlan& plan = plans[static_cast<std::size_t>(place)];
  const bool own = std::ranges::find(kOwnTables, plan.table().name) != kOwnTables.end();
  return own || plan.table().kind != trace::TableKind::kFact ? nullptr : &plan;
}

}  // namespace llmprof::importers

#include "importers/merge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "importers/table_plan.h"
#include "trace/rows.h"
#include "trace/run_writer.h"

namespace llmprof::importers {
namespace {

// Readings of wall time beside the run's clock: two runs on one clock differ by what wall time was corrected between.
constexpr std::int64_t kOneClockNs = 20'000'000;
constexpr std::int64_t kDriftSpanNs = 10'000'000'000;  // the least between two pairs of readings that tell a drift

struct WallPair {
  std::int64_t ts_ns, wall_ns, error_ns;
};

Result<std::vector<WallPair>> wall_pairs(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query("SELECT ts_ns, wall_ns, error_ns FROM clock_sync ORDER BY ts_ns"));
  std::vector<WallPair> pairs;
  for (const auto& row : table.rows) pairs.push_back({row[0].as_int(), row[1].as_int(), row[2].as_int()});
  return pairs;
}

Result<std::set<std::string>> hosts_of(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query("SELECT DISTINCT host FROM process WHERE host IS NOT NULL"));
  std::set<std::string> hosts;
  for (const auto& row : table.rows) hosts.insert(row[0].text);
  return hosts;
}

bool share_a_host(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& host) { return b.contains(host); });
}

const WallPair& nearest(const std::vector<WallPair>& pairs, std::int64_t wall_ns) {
  return *std::ranges::min_element(
      pairs, {}, [&](const WallPair& pair) { return std::abs(pair.wall_ns - wall_ns); });
}

// What is added to a time of `own` near a moment of wall time, so that it is one of `main`.
std::int64_t shift_at(const std::vector<WallPair>& main, const std::vector<WallPair>& own, std::int64_t wall_ns) {
  const WallPair &a = nearest(main, wall_ns), &b = nearest(own, wall_ns);
  return (b.wall_ns - b.ts_ns) - (a.wall_ns - a.ts_ns);
}

Result<Alignment> align_by_wall(const trace::Run& main, const trace::Run& own) {
  LLMPROF_LET(const std::vector<WallPair> a, wall_pairs(main));
  LLMPROF_LET(const std::vector<WallPair> b, wall_pairs(own));
  Alignment out;
  if (a.empty() || b.empty()) {
    out.how = "unknown: a run does not say which time of day it is from";
    return out;
  }
  LLMPROF_LET(const std::set<std::string> hosts, hosts_of(main));
  LLMPROF_LET(const std::set<std::string> others, hosts_of(own));
  const std::int64_t from = shift_at(a, b, b.front().wall_ns), to = shift_at(a, b, b.back().wall_ns);
  const bool same_kind = main.info().clock == own.info().clock && own.info().clock == "CLOCK_MONOTONIC_RAW";
  if (same_kind && share_a_host(hosts, others) && std::abs(from) < kOneClockNs) {
    out.error_ns = 0, out.how = "the same clock";
    return out;
  }
  out.shift_ns = from, out.drift_from_ns = b.front().ts_ns, out.how = "by wall time";
  if (b.back().ts_ns - b.front().ts_ns >= kDriftSpanNs)
    out.drift = static_cast<double>(to - from) / static_cast<double>(b.back().ts_ns - b.front().ts_ns);
  return out;
}

struct Moments {
  std::string source;
  std::int64_t begin_ns = 0;  // sent, or arrived
  std::optional<std::int64_t> first_ns;
};
using Named = std::unordered_map<std::string, std::vector<Moments>>;

Result<Named> named_requests(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query("SELECT name, coalesce(source, ''), CASE WHEN source = 'client' THEN sent_ns "
                        "WHEN coalesce(arrival_seen, true) THEN arrival_ns END, first_token_ns "
                        "FROM request WHERE name IS NOT NULL"));
  Named named;
  for (const auto& row : table.rows) {
    if (!row[2].is_null()) named[row[0].text].push_back({row[1].text, row[2].as_int(), row[3].maybe_int()});
  }
  return named;
}

// A name that a run has twice tells nothing.
const Moments* only(const Named& named, const std::string& name) {
  const auto found = named.find(name);
  return found == named.end() || found->second.size() != 1 ? nullptr : found->second.data();
}

// A server cannot have a request before it was sent, nor its client a token before it was made.
Bounds bounds_of(const Named& main, const Named& own, const Alignment& clock) {
  Bounds bounds;
  for (const auto& [name, rows] : main) {
    const Moments *const a = only(main, name), *const b = only(own, name);
    if (a == nullptr || b == nullptr || (a->source == "client") == (b->source == "client")) continue;
    ++bounds.requests;
    const bool own_is_client = b->source == "client";
    const auto bound = [&](std::int64_t main_ns, std::int64_t own_ns, bool own_first) {
      const std::int64_t ns = main_ns - clock.at(own_ns);
      if (own_first) bounds.most_ns = std::min(bounds.most_ns, ns);
      if (!own_first) bounds.least_ns = std::max(bounds.least_ns, ns);
    };
    bound(a->begin_ns, b->begin_ns, own_is_client);
    if (a->first_ns && b->first_ns) bound(*a->first_ns, *b->first_ns, !own_is_client);
  }
  return bounds;
}

// Rows of a run's table as the writer takes them.
class RowMaker {
 public:
  RowMaker(const trace::Table& table, const Alignment& clock, trace::RunWriter& writer)
      : table_(table), plan_(table), clock_(clock), writer_(writer) {}

  std::string sql() const {
    std::string columns;
    for (const trace::Column& column : table_.columns)
      columns += (columns.empty() ? "" : ", ") + trace::sql_identifier(column.name);
    return fmt::format("SELECT {} FROM {}", columns, trace::sql_identifier(table_.name));
  }

  std::span<std::byte> rows_of(const trace::ColumnChunk& chunk) {
    rows_.assign(chunk.count * table_.row_bytes, std::byte{0});
    for (std::size_t column = 0; column < table_.columns.size(); ++column) fill(chunk, column);
    return rows_;
  }

 private:
  void fill(const trace::ColumnChunk& chunk, std::size_t place) {
    const trace::Column& column = table_.columns[place];
    const bool real = column.type == trace::ColumnType::kDouble, moment = plan_.shifts(column.name);
    std::byte* row = rows_.data();
    for (std::size_t i = 0; i < chunk.count; ++i, row += table_.row_bytes) {
      const bool known = real ? !std::isnan(chunk.reals[place][i])
                              : column.type == trace::ColumnType::kName || chunk.values[place][i] != trace::Columns::kNull;
      if (!known) continue;
      if (column.nullable && column.type != trace::ColumnType::kName) row[column.present_offset] = std::byte{1};
      if (real) {
        put(row + column.offset, chunk.reals[place][i]);
      } else {
        put_whole(row + column.offset, column.type, chunk, moment ? clock_.at(chunk.values[place][i]) : chunk.values[place][i]);
      }
    }
  }
  template <class T>
  static void put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof value);
  }
  void put_whole(std::byte* at, trace::ColumnType type, const trace::ColumnChunk& chunk, std::int64_t value) {
    switch (type) {
      case trace::ColumnType::kInt32:
        return put(at, static_cast<std::int32_t>(value));
      case trace::ColumnType::kBool:
        return put(at, static_cast<std::uint8_t>(value != 0));
      case trace::ColumnType::kName:
        return put(at, name(chunk, static_cast<std::size_t>(value)));
      default:
        return put(at, value);
    }
  }
  // Codes hold over all pieces of a result; 0 is NULL.
  std::uint32_t name(const trace::ColumnChunk& chunk, std::size_t code) {
    if (names_.size() <= code) names_.resize(code + 1);
    if (code != 0 && names_[code] == 0) names_[code] = writer_.strings().intern(chunk.names[code]).id;
    return names_[code];
  }

  const trace::Table& table_;
  TablePlan plan_;
  const Alignment& clock_;
  trace::RunWriter& writer_;
  std::vector<std::byte> rows_;
  std::vector<std::uint32_t> names_;
};

// Devices that several runs tell of: one GPU by its UUID, the CPU of a host.
class KnownDevices {
 public:
  // The device of the merged run that this one is, or 0: it is new.
  std::int64_t find(const trace::Strings& strings, const trace::DeviceRow& row, const std::set<std::string>& hosts) {
    for (const Known& known : known_) {
      const bool same_gpu = !known.uuid.empty() && known.uuid == strings.text(row.uuid);
      const bool same_cpu = known.kind == "cpu" && known.kind == strings.text(row.kind) &&
                            known.name == strings.text(row.name) && share_a_host(known.hosts, hosts);
      if (same_gpu || same_cpu) return known.id;
    }
    return 0;
  }
  void add(const trace::Strings& strings, const trace::DeviceRow& row, const std::set<std::string>& hosts) {
    known_.push_back({row.id, std::string(strings.text(row.kind)), std::string(strings.text(row.name)),
                      std::string(strings.text(row.uuid)), hosts});
  }

 private:
  struct Known {
    std::int64_t id;
    std::string kind, name, uuid;
    std::set<std::string> hosts;
  };
  std::vector<Known> known_;
};

class Merger {
 public:
  Merger(trace::RunWriter& writer, const base::Progress& progress) : writer_(writer), progress_(progress) {}

  Result<MergedRun> take(const trace::Run& run, Alignment clock) {
    MergedRun out{.name = run.folder(), .rows = 0, .clock = std::move(clock)};
    LLMPROF_TRY(take_devices(run));
    for (const trace::Table* table : trace::tables()) {
      if (table->kind != trace::TableKind::kFact || table->name == "device") continue;
      LLMPROF_TRY(take_table(run, *table, out));
    }
    add_source(run, out);
    next_base_ += map_.most_id + 1;
    return out;
  }

 private:
  Result<void> take_devices(const trace::Run& run) {
    map_ = {};
    map_.id_base = next_base_;
    LLMPROF_LET(const std::set<std::string> hosts, hosts_of(run));
    const trace::Table& table = trace::table_of<trace::DeviceRow>();
    const Alignment none;
    RowMaker maker(table, none, writer_);
    TablePlan plan(table);
    Result<void> applied;
    LLMPROF_TRY(run.column_chunks(maker.sql(), [&](const trace::ColumnChunk& chunk) {
      const std::span<std::byte> rows = maker.rows_of(chunk);
      name_all();
      const Result<std::size_t> kept = plan.apply(rows.data(), chunk.count, map_);
      if (!kept) applied = kept.error();
      for (std::size_t i = 0; kept && i < *kept; ++i) add_device(rows.data() + i * table.row_bytes, hosts);
      return static_cast<bool>(applied);
    }));
    return applied;
  }
  void add_device(const std::byte* bytes, const std::set<std::string>& hosts) {
    trace::DeviceRow row;
    std::memcpy(static_cast<void*>(&row), bytes, sizeof row);
    if (const std::int64_t known = devices_.find(writer_.strings(), row, hosts); known != 0) {
      map_.devices.emplace(row.id, known);
      return;
    }
    devices_.add(writer_.strings(), row, hosts);
    writer_.add(row);
  }

  Result<void> take_table(const trace::Run& run, const trace::Table& table, MergedRun& out) {
    RowMaker maker(table, out.clock, writer_);
    TablePlan plan(table);
    Result<void> applied;
    LLMPROF_TRY(run.column_chunks(maker.sql(), [&](const trace::ColumnChunk& chunk) {
      const std::span<std::byte> rows = maker.rows_of(chunk);
      name_all();
      Result<std::size_t> kept = plan.apply(rows.data(), chunk.count, map_);
      if (!kept) {
        applied = std::move(kept.error());
        return false;
      }
      keep(table, rows.data(), *kept);
      out.rows += static_cast<std::int64_t>(*kept);
      if (!progress_({.what = "merging"})) applied = Error{ErrorCode::kInterrupted, "interrupted", ""};
      return static_cast<bool>(applied);
    }));
    return applied;
  }
  // Peaks of a device that was known already are known, too.
  void keep(const trace::Table& table, std::byte* rows, std::size_t count) {
    if (table.name != "peak" || map_.devices.empty()) return writer_.add_rows(table, rows, count);
    for (std::size_t i = 0; i < count; ++i) {
      trace::PeakRow row;
      std::memcpy(static_cast<void*>(&row), rows + i * table.row_bytes, sizeof row);
      if (row.device_id > map_.id_base) writer_.add(row);
    }
  }
  // The names of rows are those of the run already.
  void name_all() {
    const std::size_t known = map_.names.size();
    map_.names.resize(writer_.strings().size() + 1);
    for (std::size_t i = known; i < map_.names.size(); ++i) map_.names[i] = static_cast<std::uint32_t>(i);
  }
  void add_source(const trace::Run& run, const MergedRun& merged) {
    const auto name = [&](std::string_view text) { return writer_.strings().intern(text); };
    trace::SourceRow row;
    row.id = next_base_ + ++map_.most_id;
    row.file = name(run.folder().substr(run.folder().find_last_of('/') + 1));
    row.format = name("run");
    row.tool = name("llmprof " + run.info().llmprof_version);
    for (const trace::TableFile& file : run.info().files) row.bytes += file.bytes;
    row.clock = name(run.info().clock + ", " + merged.clock.how);
    row.shift_ns = merged.clock.shift_ns;
    row.clock_error_ns = merged.clock.error_ns;
    writer_.add(row);
  }

  trace::RunWriter& writer_;
  const base::Progress& progress_;
  KnownDevices devices_;
  FileMap map_;
  std::int64_t next_base_ = 0;
};

void count_requests(const std::vector<Named>& all, Merged& out) {
  std::set<std::string> servers, clients;
  for (const Named& named : all) {
    for (const auto& [name, rows] : named) {
      for (const Moments& row : rows) (row.source == "client" ? clients : servers).insert(name);
    }
  }
  for (const std::string& name : servers) (clients.contains(name) ? out.both : out.only_server) += 1;
  out.only_client = static_cast<std::int64_t>(clients.size()) - out.both;
}

}  // namespace

std::int64_t Alignment::at(std::int64_t ns) const {
  return ns + shift_ns + std::llround(drift * static_cast<double>(ns - drift_from_ns));
}

Alignment within(Alignment by_wall, const Bounds& bounds) {
  Alignment out = std::move(by_wall);
  if (bounds.least_ns == INT64_MIN || bounds.most_ns == INT64_MAX) return out;
  const std::int64_t room_ns = bounds.most_ns - bounds.least_ns;
  out.shift_ns += bounds.least_ns + room_ns / 2;
  out.error_ns = (std::abs(room_ns) + 1) / 2;
  out.how = fmt::format("{}, then by what must come before what in {} requests of both{}", out.how, bounds.requests,
                        room_ns < 0 ? "; these contradict each other, the clocks drifted" : "");
  return out;
}

Result<Merged> merge_runs(const std::vector<trace::Run>& runs, const std::string& folder,
                          const base::Progress& progress) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Merger merger(writer, progress);
  Merged out;
  std::vector<Named> requests;
  for (const trace::Run& run : runs) {
    LLMPROF_LET(Named named, named_requests(run));
    Alignment clock{.how = "its own", .error_ns = 0};
    if (&run != &runs.front()) {
      LLMPROF_LET(clock, align_by_wall(runs.front(), run));
      if (!clock.error_ns) clock = within(std::move(clock), bounds_of(requests.front(), named, clock));
    }
    requests.push_back(std::move(named));
    LLMPROF_LET(MergedRun merged, merger.take(run, std::move(clock)));
    out.runs.push_back(std::move(merged));
  }
  count_requests(requests, out);
  trace::RunInfo info = runs.front().info();
  info.files.clear();
  info.created.clear();
  for (const trace::Run& run : runs) {
    for (const trace::NotedModel& model : run.info().models) {
      if (&run != &runs.front()) info.models.push_back(model);
    }
  }
  LLMPROF_TRY(writer.finish(std::move(info), progress));
  return out;
}

}  // namespace llmprof::importers

#include "record/log/cuda_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "record/log/ledger.h"
#include "record/log/names.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

using wire::CounterScope;

constexpr std::size_t kMostNamed = 64;  // of those that a loss is told of

std::string_view scope_name(CounterScope scope) {
  switch (scope) {
    case CounterScope::kGraph:
      return "graph";
    case CounterScope::kKernel:
      return "kernel";
    case CounterScope::kSample:
      return "sample";
    default:
      return "range";
  }
}

std::string_view method_name(CounterScope scope) {
  return scope == CounterScope::kKernel ? "kernel" : scope == CounterScope::kSample ? "sampled" : "range";
}

}  // namespace

CudaCounters::Measurement& CudaCounters::open(std::uint32_t number) {
  const auto [found, added] = open_.try_emplace(number);
  if (added) order_.push_back(number);
  return found->second;
}

void CudaCounters::window(const wire::CounterWindowRecord& record, trace::Name name, const CounterPlace& place) {
  const bool known = record.scope >= CounterScope::kRange && record.scope <= CounterScope::kSample;
  if (!known || record.pass >= record.passes) {
    ++unknown_;
    return;
  }
  Measurement& measurement = open(record.measurement);
  const bool again = std::any_of(measurement.windows.begin(), measurement.windows.end(),
                                 [&](const Window& window) { return window.row.pass == record.pass; });
  const bool other = measurement.scope != record.scope || measurement.passes != record.passes;
  if (!measurement.windows.empty() && (again || other)) {
    ++unknown_;
    return;
  }
  measurement.scope = record.scope;
  measurement.passes = record.passes;
  Window& window = measurement.windows.emplace_back();
  fill(window.row, record);
  window.row.name = name;
  window.row.process_id = place.process_id;
  window.row.thread_id = place.thread_id;
  window.row.device_id = place.device_id;
  window.correlation = record.correlation;
  ++kept_;
  const bool waits = record.scope == CounterScope::kKernel || record.scope == CounterScope::kGraph;
  if (waits && record.correlation != 0) wanted_.try_emplace(record.correlation);
}

void CudaCounters::dropped(std::uint32_t measurement) { open(measurement).dropped = true; }

void CudaCounters::value(std::uint32_t measurement_number, trace::Name metric, double value) {
  Measurement& measurement = open(measurement_number);
  if (measurement.values.size() == kMostValues) {
    ++unknown_;
    return;
  }
  measurement.values.push_back({metric, value});
  ++kept_;
}

void CudaCounters::write_older_half() {
  for (std::size_t left = order_.size() / 2 + 1; left > 0 && !order_.empty(); --left) write_oldest();
}

void CudaCounters::write_all() {
  while (!order_.empty()) write_oldest();
}

void CudaCounters::write_oldest() {
  const auto found = open_.find(order_.front());
  order_.pop_front();
  Measurement& measurement = found->second;
  kept_ -= measurement.windows.size() + measurement.values.size();
  write(measurement);
  for (const Window& window : measurement.windows) wanted_.erase(window.correlation);
  open_.erase(found);
}

void CudaCounters::write(Measurement& measurement) {
  if (measurement.windows.empty()) {
    if (!measurement.dropped) without_window_ += static_cast<std::int64_t>(measurement.values.size());
    return;
  }
  std::ranges::sort(measurement.windows, {}, [](const Window& window) { return window.row.pass; });
  trace::OptionalId kernel_id;
  const trace::Id window_id = write_windows(measurement, kernel_id);
  if (measurement.values.empty()) {
    count(in_vain_, measurement.windows.front().row.name);
  } else {
    // A kernel that CUPTI executed again, or lost, has no row: its window has its name.
    write_values(measurement, kernel_id.value_or(window_id));
  }
}

trace::Id CudaCounters::write_windows(Measurement& measurement, trace::OptionalId& kernel_id) {
  const trace::Name scope = writer_.strings().intern(scope_name(measurement.scope));
  const trace::Name method = writer_.strings().intern(method_name(measurement.scope));
  const trace::Id first_id = next_id_;
  for (Window& window : measurement.windows) {
    const Execution* execution = find(window.correlation);
    trace::CounterWindowRow& row = window.row;
    row.id = next_id_++;
    row.counter_window_id = first_id;
    row.scope = scope;
    row.method = method;
    if (execution != nullptr && measurement.scope == CounterScope::kKernel) row.kernel_id = execution->kernel_id;
    if (execution != nullptr && measurement.scope == CounterScope::kGraph)
      row.graph_launch_id = execution->graph_launch_id;
    writer_.add(row);
    if (!kernel_id) kernel_id = row.kernel_id;
  }
  return first_id;
}

void CudaCounters::write_values(const Measurement& measurement, trace::Id scope_id) {
  trace::CounterRow row;
  row.scope = writer_.strings().intern(scope_name(measurement.scope));
  row.method = writer_.strings().intern(method_name(measurement.scope));
  row.scope_id = scope_id;
  row.passes = measurement.passes;
  ++written_;
  for (const Value& value : measurement.values) {
    if (!std::isfinite(value.value)) {
      count(empty_, value.metric);
      continue;
    }
    row.id = next_id_++;
    row.metric = value.metric;
    row.value = value.value;
    row.unit = unit_of(value.metric);
    writer_.add(row);
  }
}

trace::Name CudaCounters::unit_of(trace::Name metric) {
  const auto [found, added] = units_.try_emplace(metric.id);
  if (added) {
    const std::string_view unit = metric_unit(writer_.strings().text(metric));
    if (!unit.empty()) found->second = writer_.strings().intern(unit);
  }
  return found->second;
}

void CudaCounters::count(std::map<trace::Id, std::int64_t>& counts, trace::Name name) {
  const bool named = counts.size() < kMostNamed || counts.contains(name.id);
  ++counts[named ? name.id : 0];
}

void CudaCounters::add_losses(Ledger& ledger, trace::OptionalId process_id) const {
  const auto add = [&](std::int64_t count, const std::string& detail) {
    ledger.add(trace::Loss::kCountersSkipped, count, process_id, detail);
  };
  const auto name_of = [&](trace::Id id) {
    const std::string_view name =
        id == 0 ? "others" : writer_.strings().text(trace::Name{static_cast<std::uint32_t>(id)});
    return std::string(name.substr(0, name.find('<')));  // arguments of templates may fill pages
  };
  add(without_window_, "values whose window is missing");
  for (const auto& [id, count] : empty_) add(count, fmt::format("{}: the device gave no value", name_of(id)));
  for (const auto& [id, count] : in_vain_) {
    add(count, fmt::format("{}: no values: its measurement was not completed", name_of(id)));
  }
}

std::string_view metric_unit(std::string_view metric) {
  const auto ends = [&](std::string_view suffix) { return metric.ends_with(suffix); };
  const auto counts = [&](std::string_view what) { return metric.find(what) != std::string_view::npos; };
  if (ends(".pct") || counts(".pct_of_peak") || counts("_pct")) return "%";
  const bool rate = ends(".per_second");
  if (counts(".ratio") || counts(".max_rate") || (counts(".per_") && !rate)) return "";
  if (counts("bytes")) return rate ? "bytes/s" : "bytes";
  if (counts("time_duration")) return rate ? "" : "ns";
  if (counts("sectors")) return rate ? "sectors/s" : "sectors";
  if (counts("cycles")) return rate ? "cycles/s" : "cycles";
  if (counts("sm__ops_path")) return rate ? "operations/s" : "operations";
  if (counts("inst")) return rate ? "instructions/s" : "instructions";
  if (counts("requests")) return rate ? "requests/s" : "requests";
  if (counts("warps")) return rate ? "warps/s" : "warps";
  return "";
}

namespace {

// Sums stop at the largest number: a log may claim any count.
void add_up(std::int64_t& sum, std::uint64_t more) {
  if (__builtin_add_overflow(sum, bounded(more), &sum)) sum = INT64_MAX;
}

}  // namespace

std::size_t CudaStalls::Hash::operator()(const Place& place) const {
  std::uint64_t mixed = place.cubin;
  for (const std::uint64_t part : {place.pc_offset, static_cast<std::uint64_t>(place.device_id),
                                   std::uint64_t{place.kernel} << 32 | place.reason, std::uint64_t{place.issued}}) {
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15ull;
    mixed ^= mixed >> 29;
  }
  return mixed;
}

void CudaStalls::take(const wire::StallRecord& record, const Names& names, trace::Id device_id) {
  if (record.samples == 0) return;
  const Place place{record.cubin, record.pc_offset, device_id, names.kernel.id, names.reason.id, record.issued != 0};
  auto found = places_.find(place);
  if (found == places_.end()) {
    if (places_.size() == kMostPlaces) return add_up(lost_, record.samples);
    found = places_.emplace(place, Seen{}).first;
  }
  Seen& seen = found->second;
  add_up(seen.samples, record.samples);
  if (names.file.id != 0) seen.file = names.file, seen.line = record.line;
}

void CudaStalls::write(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id) {
  std::vector<std::pair<Place, Seen>> sorted(places_.begin(), places_.end());
  places_.clear();
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto key = [](const Place& p) {
      return std::tie(p.device_id, p.kernel, p.cubin, p.pc_offset, p.reason, p.issued);
    };
    return key(a.first) < key(b.first);
  });
  trace::StallRow row;
  row.process_id = process_id;
  for (const auto& [place, seen] : sorted) {
    row.id = next_id++;
    row.device_id = place.device_id;
    row.kernel.id = place.kernel;
    row.cubin = static_cast<std::int64_t>(place.cubin);
    row.offset_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(place.pc_offset, INT64_MAX));
    row.reason.id = place.reason;
    row.issued = place.issued;
    row.samples = seen.samples;
    row.file = seen.file;
    row.line = seen.line != 0 ? trace::OptionalInt(seen.line) : trace::OptionalInt();
    writer.add(row);
  }
}

}  // namespace llmprof::record

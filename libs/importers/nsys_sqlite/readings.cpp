#include "importers/nsys_sqlite/readings.h"

#include <array>
#include <map>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kMostMetrics = 10'000;

struct Metric {
  trace::Name name, unit;
  bool hertz = false;  // named [MHz], stored in Hz
  bool dram = false;   // a part of dram_active
};

// What llmprof itself reads has one name, whoever read it (hw/telemetry_metrics.h); the others keep Nsight's.
std::string_view own_name(std::string_view name, std::string_view unit) {
  struct Known {
    std::string_view nsight, unit, own;
  };
  constexpr std::array<Known, 4> kKnown{{{"GPC Clock Frequency", "MHz", "sm_clock_mhz"},
                                         {"SMs Active", "Throughput %", "sm_active"},
                                         {"Tensor Active", "Throughput %", "tensor_active"},
                                         {"Compute Warps in Flight", "Throughput %", "sm_occupancy"}}};
  for (const Known& known : kKnown) {
    if (known.nsight == name && known.unit == unit) return known.own;
  }
  return name;
}

// "SMs Active [Throughput %]". Sums that Nsight calls [Avg] have no unit that could be told: nullopt.
std::optional<Metric> to_metric(std::string_view text, Sink& sink) {
  const std::size_t bracket = text.rfind(" [");
  const bool with_unit = bracket != std::string_view::npos && text.ends_with(']');
  const std::string_view name = with_unit ? text.substr(0, bracket) : text;
  const std::string_view unit = with_unit ? text.substr(bracket + 2, text.size() - bracket - 3) : "";
  if (unit == "Avg") return std::nullopt;
  Metric metric;
  metric.name = sink.name(own_name(name, unit));
  metric.unit = sink.name(unit == "Throughput %" ? "%" : unit == "Avg Warps per Cycle" ? "warps/cycle" : unit);
  metric.hertz = unit == "MHz";
  metric.dram = unit == "Throughput %" && name.starts_with("DRAM ") && name.ends_with(" Bandwidth");
  return metric;
}

using Metrics = std::map<std::pair<std::int64_t, std::int64_t>, std::optional<Metric>>;  // by type and metric

Result<Metrics> read_metric_names(Database& database) {
  Metrics metrics;
  LLMPROF_LET(Rows rows, database.rows("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, 3));
  while (rows.next() && metrics.size() < kMostMetrics) {
    const auto type = rows.integer(0), metric = rows.integer(1);
    const auto name = rows.text(2);
    if (type && metric && name) metrics[{*type, *metric}] = to_metric(*name, database.sink());
  }
  LLMPROF_TRY(rows.finish());
  return metrics;
}

// Reads and writes of device memory come as two metrics, each of the same peak; llmprof's dram_active is their sum.
class DramSum {
 public:
  explicit DramSum(Sink& sink) : sink_(sink), name_(sink.name("dram_active")) {}
  void add(const trace::TelemetryRow& part) {
    if (parts_ != 0 && (part.ts_ns != sum_.ts_ns || part.device_id != sum_.device_id)) parts_ = 0;
    if (parts_++ == 0) {
      sum_ = part;
      sum_.metric = name_;
      return;
    }
    sum_.value += part.value;
    sink_.add(sum_);
    parts_ = 0;
  }

 private:
  Sink& sink_;
  trace::Name name_;
  trace::TelemetryRow sum_;
  int parts_ = 0;
};

}  // namespace

Result<void> read_gpu_metrics(Database& database, Devices& devices) {
  if (!database.has("GPU_METRICS")) return {};
  Sink& sink = database.sink();
  LLMPROF_LET(const Metrics metrics, read_metric_names(database));
  DramSum dram(sink);
  LLMPROF_LET(Rows rows, database.rows("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, 4));
  while (rows.next()) {
    const auto ns = rows.integer(0), type = rows.integer(1), number = rows.integer(2);
    const auto value = rows.number(3);
    if (rows.odd() || !ns || !type || !number || !value || !is_time(*ns)) {
      rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
      continue;
    }
    const auto metric = metrics.find({*type, *number});
    if (metric == metrics.end() || !metric->second) {
      sink.lose(trace::Loss::kInputIgnored, 1, "GPU metrics of an unknown name or unit");
      continue;
    }
    trace::TelemetryRow row;
    row.ts_ns = *ns;
    row.device_id = devices.of_gpu(*type & 0xff);  // the lowest byte of a type is the number of its GPU
    row.metric = metric->second->name;
    row.unit = metric->second->unit;
    row.value = metric->second->hertz && *value >= 1e5 ? *value / 1e6 : *value;
    sink.add(row);
    if (metric->second->dram) dram.add(row);
  }
  return rows.finish();
}

Result<void> read_samples(Database& database, Strings& strings, Actors& actors, const About& about) {
  if (!database.has("COMPOSITE_EVENTS")) return {};
  Sink& sink = database.sink();
  if (!about.sample_period_ns) {
    sink.lose(trace::Loss::kInputIgnored, database.size_of("COMPOSITE_EVENTS"),
              "samples of call stacks that do not say what CPU time they stand for (table COMPOSITE_EVENTS)");
    return {};
  }
  Stacks stacks(database, strings);
  LLMPROF_LET(const Stacks::ById by_id, stacks.read("SAMPLING_CALLCHAINS"));
  LLMPROF_LET(Rows rows, database.rows("COMPOSITE_EVENTS", {"id", "start", "globalTid"}, 3));
  while (rows.next()) {
    const auto id = rows.integer(0), ns = rows.integer(1), global = rows.integer(2);
    if (!id || !ns || !global || !is_time(*ns)) {
      rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
      continue;
    }
    trace::SampleRow row;
    row.id = sink.new_id();
    row.ts_ns = *ns;
    row.thread_id = actors.thread_id(actors.thread(*global, *ns, *ns));
    const auto stack = by_id.find(*id);
    row.truncated = stack == by_id.end() || stack->second.truncated;
    if (stack != by_id.end()) row.stack_id = stack->second.stack_id;
    row.weight_ns = *about.sample_period_ns;
    sink.add(row);
  }
  return rows.finish();
}

}  // namespace llmprof::importers::nsys

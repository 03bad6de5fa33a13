#include "importers/nsys_sqlite/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kMostMetrics = 10'000;

struct Metric {
  trace::Name name, unit;
  bool hertz = false;  // named [MHz], stored in Hz
  bool dram = false;   // a part of dram_active
};

// What llmprof itself reads has one name, whoever read it (hw/telemetry/metrics.h); the others keep Nsight's.
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

Result<void> read_gpu_metrics(Export& from) {
  if (!from.database.has("GPU_METRICS")) return {};
  Sink& sink = from.sink;
  LLMPROF_LET(const Metrics metrics, read_metric_names(from.database));
  DramSum dram(sink);
  LLMPROF_LET(Rows rows, from.database.rows("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, 4));
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
    row.device_id = from.devices.of_gpu(*type & 0xff);  // the lowest byte of a type is the number of its GPU
    row.metric = metric->second->name;
    row.unit = metric->second->unit;
    row.value = metric->second->hertz && *value >= 1e5 ? *value / 1e6 : *value;
    sink.add(row);
    if (metric->second->dram) dram.add(row);
  }
  return rows.finish();
}

Result<void> read_samples(Export& from, const About& about) {
  if (!from.database.has("COMPOSITE_EVENTS")) return {};
  Sink& sink = from.sink;
  if (!about.sample_period_ns) {
    sink.lose(trace::Loss::kInputIgnored, from.database.size_of("COMPOSITE_EVENTS"),
              "samples of call stacks that do not say what CPU time they stand for (table COMPOSITE_EVENTS)");
    return {};
  }
  Stacks stacks(from);
  LLMPROF_LET(const Stacks::ById by_id, stacks.read("SAMPLING_CALLCHAINS"));
  LLMPROF_LET(Rows rows, from.database.rows("COMPOSITE_EVENTS", {"id", "start", "globalTid"}, 3));
  while (rows.next()) {
    const auto id = rows.integer(0), ns = rows.integer(1), global = rows.integer(2);
    if (!id || !ns || !global || !is_time(*ns)) {
      rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
      continue;
    }
    trace::SampleRow row;
    row.id = sink.new_id();
    row.ts_ns = *ns;
    row.thread_id = from.actors.thread_id(from.actors.thread(*global, *ns, *ns));
    const auto stack = by_id.find(*id);
    row.truncated = stack == by_id.end() || stack->second.truncated;
    if (stack != by_id.end()) row.stack_id = stack->second.stack_id;
    row.weight_ns = *about.sample_period_ns;
    sink.add(row);
  }
  return rows.finish();
}

// What Nsight says about its own recording: see about.h.

namespace {

constexpr std::int64_t kWarning = 2, kError = 3;  // of ENUM_DIAGNOSTIC_SEVERITY_LEVEL
constexpr std::size_t kMostMessages = 100, kMostLosses = 16, kMostText = 300, kMostThreads = 65536;

bool tells_of_loss(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::array<std::string_view, 9> kWords{"lost",    "dropped",       "drop ",      "discard",     "overflow",
                                                   "missing", "not collected", "incomplete", "insufficient"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace

Result<void> read_diagnostics(Database& database) {
  Sink& sink = database.sink();
  LLMPROF_LET(Rows rows, database.rows("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, 3));
  std::size_t messages = 0, losses = 0;
  while (rows.next()) {
    const auto ns = rows.integer(0), severity = rows.integer(1);
    const auto text = rows.text(2);
    if (!severity || !text || (*severity != kWarning && *severity != kError)) continue;
    std::string message(text->substr(0, kMostText));
    if (tells_of_loss(message)) {
      sink.lose(trace::Loss::kToolLost, 1, ++losses <= kMostLosses ? message : "further messages of Nsight Systems");
      continue;
    }
    if (++messages > kMostMessages) continue;
    const std::int64_t when_ns = ns && is_time(*ns) ? *ns : 0;
    const std::string_view level = *severity == kError ? "error" : "warning";
    sink.note("nsys", fmt::format("{}: {}", level, message), when_ns);
  }
  return rows.finish();
}

// Intervals lie inside each other; every thread's time is counted once.
Result<void> read_overhead(Database& database) {
  Sink& sink = database.sink();
  LLMPROF_LET(Rows rows, database.rows("PROFILER_OVERHEAD", {"start", "end", "globalTid"}, 2));
  std::unordered_map<std::int64_t, std::int64_t> until_ns;  // by thread; some of them are Nsight's own
  std::int64_t intervals = 0, total_ns = 0;
  while (rows.next()) {
    const auto start = rows.integer(0), end = rows.integer(1);
    if (!start || !end || *end < *start || !is_time(*start) || !is_time(*end)) {
      rows.lose(trace::Loss::kBadTime, "times");
      continue;
    }
    if (until_ns.size() > kMostThreads) until_ns.clear();
    std::int64_t& until = until_ns.try_emplace(rows.integer_or(2, 0), INT64_MIN).first->second;
    total_ns += std::max<std::int64_t>(0, *end - std::max(*start, until));
    until = std::max(until, *end);
    ++intervals;
  }
  if (intervals > 0)
    sink.note("nsys", fmt::format("Nsight Systems says that it took {:.3f} ms of the program's threads "
                                  "itself, in {} intervals",
                                  static_cast<double>(total_ns) / 1e6, intervals));
  return rows.finish();
}

}  // namespace llmprof::importers::nsys

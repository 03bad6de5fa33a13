#include "importers/nsys_sqlite/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>

#include "base/numbers.h"
#include "base/strings.h"
#include "hw/redact.h"

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
  LLMPROF_TRY(database.each("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, 3, [&](Rows& rows) {
    const auto type = rows.integer(0), metric = rows.integer(1);
    const auto name = rows.text(2);
    if (type && metric && name && metrics.size() < kMostMetrics)
      metrics[{*type, *metric}] = to_metric(*name, database.sink());
  }));
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

constexpr std::int64_t kWarning = 2, kError = 3;  // of ENUM_DIAGNOSTIC_SEVERITY_LEVEL
constexpr std::size_t kMostMessages = 100, kMostLosses = 16, kMostText = 300, kMostThreads = 65536;

bool tells_of_loss(std::string_view message) {
  const std::string text = base::lowercase(message);
  constexpr std::array<std::string_view, 9> kWords{"lost",    "dropped",       "drop ",      "discard",     "overflow",
                                                   "missing", "not collected", "incomplete", "insufficient"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return base::contains(text, word); });
}

constexpr std::int64_t kMajor = 3, kKnownMinor = 20;
constexpr std::size_t kMostArguments = 1000, kMostWords = 4096;

std::optional<std::int64_t> to_number(std::string_view text) { return base::parse_number<std::int64_t>(text); }

using Pairs = std::map<std::string, std::string, std::less<>>;

// Names that come several times keep their last value, except variables, which are kept by their own names.
Result<Pairs> read_pairs(Database& database, std::string_view table, const char* name_column) {
  constexpr std::string_view kVariable = ":ENVIRONMENT_VARIABLE";
  Pairs pairs;
  LLMPROF_TRY(database.each(table, {name_column, "value"}, 2, [&](Rows& rows) {
    const auto name = rows.text(0), value = rows.text(1);
    if (!name || !value || value->size() > Sink::kMaxNameBytes || pairs.size() >= kMostWords) return;
    const std::size_t equals = value->find("=\"");
    const bool variable = name->ends_with(kVariable) && equals != std::string_view::npos && value->ends_with('"');
    if (variable)
      pairs["$" + std::string(value->substr(0, equals))] = value->substr(equals + 2, value->size() - equals - 3);
    else
      pairs[std::string(*name)] = *value;
  }));
  return pairs;
}

std::string get(const Pairs& pairs, std::string_view name) {
  const auto found = pairs.find(name);
  return found == pairs.end() ? "" : found->second;
}

Result<void> check_version(const std::string& schema) {
  const auto major = to_number(std::string_view(schema).substr(0, schema.find('.')));
  if (schema.empty() || major == kMajor) return {};
  return Error{ErrorCode::kUnsupported, fmt::format("nsys export schema {} not supported, only 3.x", schema),
               "export the report again with a Nsight Systems of 2024 or 2025: nsys export --type sqlite --output "
               "NEW.sqlite REPORT.nsys-rep"};
}

std::string command_of(const Pairs& capture) {
  std::string command = get(capture, "PROCESS_0:COMMAND");
  for (std::size_t i = 0; i < kMostArguments && command.size() < Sink::kMaxNameBytes; ++i) {
    const auto argument = capture.find(fmt::format("PROCESS_0:ARGUMENT_{}", i));
    if (argument == capture.end()) break;
    command += " " + argument->second;
  }
  return hw::redact_text(command);
}

trace::OptionalInt rank_of(const Pairs& capture) {
  for (const char* name : {"$RANK", "$OMPI_COMM_WORLD_RANK", "$PMI_RANK", "$SLURM_PROCID", "$LOCAL_RANK"}) {
    if (const auto rank = to_number(get(capture, name)); rank && *rank >= 0) return rank;
  }
  return std::nullopt;
}

// Times count from the start of the session unless the export shifted them.
FileClock clock_of(const Pairs& exported, std::optional<std::int64_t> session_wall_ns) {
  FileClock clock;
  clock.name = "Nsight Systems: nanoseconds since the session began";
  const std::int64_t shift_ns = to_number(get(exported, "EXPORT_PARAM_TIME_SHIFT")).value_or(0);
  const bool is_wall = get(exported, "EXPORT_PARAM_TIME_NORMALIZE") == "true";
  if (is_wall) clock.name = "Nsight Systems: nanoseconds since 1970, UTC";
  if (is_wall) session_wall_ns = 0;
  if (session_wall_ns && is_time(*session_wall_ns) && is_time(shift_ns))
    clock.wall_of_zero_ns = *session_wall_ns - shift_ns;
  return clock;
}

Result<std::optional<std::int64_t>> session_start(Database& database) {
  LLMPROF_LET(Rows rows, database.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}));
  std::optional<std::int64_t> ns;
  if (rows.next()) ns = rows.integer(0);
  return ns;
}

std::string machine_of(const Pairs& system) {
  std::string words;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) words += (words.empty() ? "" : ", ") + text;
  };
  add(get(system, "OsDescription"));
  add(get(system, "CpuDescription"));
  if (const std::string cores = get(system, "CpuCores"); !cores.empty()) add(cores + " CPU cores");
  if (const std::string driver = get(system, "NvDriverVersion"); !driver.empty()) add("NVIDIA driver " + driver);
  if (const auto cuda = to_number(get(system, "CudaDriverVersion")); cuda && *cuda > 0)
    add(fmt::format("CUDA {}.{}", *cuda / 1000, *cuda % 1000 / 10));
  return words;
}

}  // namespace

Result<void> read_gpu_metrics(Export& from) {
  if (!from.database.has("GPU_METRICS")) return {};
  Sink& sink = from.sink;
  LLMPROF_LET(const Metrics metrics, read_metric_names(from.database));
  DramSum dram(sink);
  return from.database.each("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, 4, [&](Rows& rows) {
    const auto ns = rows.integer(0), type = rows.integer(1), number = rows.integer(2);
    const auto value = rows.number(3);
    if (rows.odd() || !ns || !type || !number || !value || !is_time(*ns))
      return rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    const auto metric = metrics.find({*type, *number});
    if (metric == metrics.end() || !metric->second)
      return sink.lose(trace::Loss::kInputIgnored, 1, "GPU metrics of an unknown name or unit");
    trace::TelemetryRow row;
    row.ts_ns = *ns;
    row.device_id = from.devices.of_gpu(*type & 0xff);  // the lowest byte of a type is the number of its GPU
    row.metric = metric->second->name;
    row.unit = metric->second->unit;
    row.value = metric->second->hertz && *value >= 1e5 ? *value / 1e6 : *value;
    sink.add(row);
    if (metric->second->dram) dram.add(row);
  });
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
  return from.database.each("COMPOSITE_EVENTS", {"id", "start", "globalTid"}, 3, [&](Rows& rows) {
    const auto id = rows.integer(0), ns = rows.integer(1), global = rows.integer(2);
    if (!id || !ns || !global || !is_time(*ns)) return rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    trace::SampleRow row;
    row.id = sink.new_id();
    row.ts_ns = *ns;
    row.thread_id = from.actors.thread_id(from.actors.thread(*global, *ns, *ns));
    const auto stack = by_id.find(*id);
    row.truncated = stack == by_id.end() || stack->second.truncated;
    if (stack != by_id.end()) row.stack_id = stack->second.stack_id;
    row.weight_ns = *about.sample_period_ns;
    sink.add(row);
  });
}

Result<void> read_diagnostics(Database& database) {
  Sink& sink = database.sink();
  std::size_t messages = 0, losses = 0;
  return database.each("DIAGNOSTIC_EVENT", {"timestamp", "severity", "text"}, 3, [&](Rows& rows) {
    const auto ns = rows.integer(0), severity = rows.integer(1);
    const auto text = rows.text(2);
    if (!severity || !text || (*severity != kWarning && *severity != kError)) return;
    const std::string message(text->substr(0, kMostText));
    if (tells_of_loss(message))
      return sink.lose(trace::Loss::kToolLost, 1,
                       ++losses <= kMostLosses ? message : "further messages of Nsight Systems");
    if (++messages > kMostMessages) return;
    sink.note("nsys", fmt::format("{}: {}", *severity == kError ? "error" : "warning", message),
              ns && is_time(*ns) ? *ns : 0);
  });
}

// Intervals lie inside each other; every thread's time is counted once.
Result<void> read_overhead(Database& database) {
  std::unordered_map<std::int64_t, std::int64_t> until_ns;  // by thread; some of them are Nsight's own
  std::int64_t intervals = 0, total_ns = 0;
  LLMPROF_TRY(database.each("PROFILER_OVERHEAD", {"start", "end", "globalTid"}, 2, [&](Rows& rows) {
    const auto start = rows.integer(0), end = rows.integer(1);
    if (!start || !end || *end < *start || !is_time(*start) || !is_time(*end))
      return rows.lose(trace::Loss::kBadTime, "times");
    if (until_ns.size() > kMostThreads) until_ns.clear();
    std::int64_t& until = until_ns.try_emplace(rows.integer_or(2, 0), INT64_MIN).first->second;
    total_ns += std::max<std::int64_t>(0, *end - std::max(*start, until));
    until = std::max(until, *end);
    ++intervals;
  }));
  if (intervals > 0)
    database.sink().note("nsys", fmt::format("Nsight Systems says that it took {:.3f} ms of the program's threads "
                                             "itself, in {} intervals",
                                             static_cast<double>(total_ns) / 1e6, intervals));
  return {};
}

Result<About> read_about(Database& database) {
  About about;
  LLMPROF_LET(const Pairs exported, read_pairs(database, "META_DATA_EXPORT", "name"));
  about.schema = get(exported, "EXPORT_SCHEMA_VERSION");
  LLMPROF_TRY(check_version(about.schema));
  about.product = get(exported, "EXPORT_PRODUCT_VERSION");
  LLMPROF_LET(const Pairs capture, read_pairs(database, "META_DATA_CAPTURE", "name"));
  about.command = command_of(capture);
  about.rank = rank_of(capture);
  const auto period = to_number(get(capture, "LINUX_PERF_OPTIONS:SAMPLING_PERIOD"));
  if (period && *period > 0 && get(capture, "LINUX_PERF_OPTIONS:CPU_IP_TRIGGER_TYPE") == "Software")
    about.sample_period_ns = period;  // of the CPU clock
  LLMPROF_LET(const Pairs system, read_pairs(database, "TARGET_INFO_SYSTEM_ENV", "name"));
  about.host = get(system, "Hostname");
  about.driver = get(system, "NvDriverVersion");
  about.machine = machine_of(system);
  LLMPROF_LET(const auto started, session_start(database));
  about.clock = clock_of(exported, started);
  return about;
}

void write_about(Sink& sink, const About& about) {
  FileFacts facts;
  facts.tool = "Nsight Systems" + (about.product.empty() ? "" : " " + about.product) +
               (about.schema.empty() ? "" : ", export schema " + about.schema);
  facts.command = about.command;
  facts.host = about.host;
  sink.set_facts(facts);
  sink.set_clock(about.clock);
  if (!about.machine.empty()) sink.note("machine", about.machine);
  const std::string_view schema = about.schema;
  const auto minor = schema.size() > 2 ? to_number(schema.substr(2, schema.find('.', 2) - 2)) : std::nullopt;
  if (schema.empty())
    sink.note("import", "the export does not say the version of its schema; tables were read by their columns");
  else if (!minor || *minor > kKnownMinor)
    sink.lose(
        trace::Loss::kInputIgnored, 1,
        fmt::format("export schema {} is newer than 3.{}, which llmprof was tested with: what it adds was not read",
                    schema, kKnownMinor));
}

}  // namespace llmprof::importers::nsys

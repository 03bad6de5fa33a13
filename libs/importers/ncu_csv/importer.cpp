// CSV of Nsight Compute: --page raw (a row per kernel, a column per metric, units in the row below the header) and the
// form with a row per metric. Columns are found by their titles; what the tool or the program printed may stand
// between.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/numbers.h"
#include "base/strings.h"
#include "base/text_table.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/ncu_csv/csv_reader.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace ncu {
namespace {

// Profiled launches as rows: processes, devices, kernels one behind the other, and their counters.
//
// What stands in a device's attributes, where the file has them. 0 and "": it does not.
struct DeviceFacts {
  std::string name;
  double units = 0, memory_bytes = 0, cache_bytes = 0, clock_khz = 0;
};

// One launch, while its values are read.
struct Launch {
  trace::Id id = 0;
  std::int64_t pid = 0, device = 0;
  std::string process, compute_capability;
  trace::KernelRow row;
  double duration_ns = -1;  // -1: not among the metrics
  double static_shared = -1, dynamic_shared = -1;
  std::int32_t passes = 0;
  DeviceFacts facts;
};

std::int64_t whole(double value) { return value > 0 && value < 9e18 ? std::llround(value) : 0; }

class Kernels {
 public:
  explicit Kernels(Sink& sink) : sink_(sink) {}

  void begin(Launch& launch) { launch.id = sink_.new_id(); }

  void add_counter(const Launch& launch, trace::Name metric, trace::Name unit, double value) {
    if (scope_.id == 0) scope_ = sink_.name("kernel"), method_ = sink_.name("ncu");
    sink_.add(trace::CounterRow{.id = sink_.new_id(),
                                .scope = scope_,
                                .scope_id = launch.id,
                                .metric = metric,
                                .value = value,
                                .unit = unit,
                                .method = method_,
                                .passes = launch.passes});
  }

  // the kernel's row, behind the last
  void finish(Launch& launch) {
    const Process& process = process_of(launch);
    trace::KernelRow& row = launch.row;
    row.id = launch.id;
    row.device_id = device_of(launch);
    row.thread_id = process.thread;
    // A day is longer than any kernel, and keeps the sum of all far from the end of the clock.
    const bool timed = launch.duration_ns >= 0 && launch.duration_ns < 8.64e13;
    if (!timed) ++untimed_;
    row.begin_ns = now_ns_;
    row.end_ns = now_ns_ += timed ? whole(launch.duration_ns) : 0;
    row.launch_begin_ns = row.launch_end_ns = row.begin_ns;
    if (launch.static_shared >= 0 && launch.static_shared + launch.dynamic_shared < 2e9)
      row.shared_bytes = static_cast<std::int32_t>(launch.static_shared + std::max(0.0, launch.dynamic_shared));
    sink_.add(row);
    ++count_;
  }

  // at the end: what times and values mean
  void notes() {
    sink_.note(
        "ncu",
        "Nsight Compute profiles kernel by kernel, each replayed alone: the kernels stand one behind the other in the "
        "order of profiling. Times between them and overlap are not known; caches and clocks are as its options set "
        "them.");
    if (untimed_ > 0)
      sink_.note("ncu",
                 fmt::format("{} kernels have no time: gpu__time_duration.sum was not among the metrics.", untimed_));
  }
  std::int64_t count() const { return count_; }

 private:
  struct Process {
    trace::Id id = 0, thread = 0;
  };

  Process& process_of(const Launch& launch) {
    Process& process = processes_[launch.pid];
    if (process.id != 0) return process;
    process = {sink_.new_id(), sink_.new_id()};
    sink_.add(trace::ProcessRow{
        .id = process.id, .pid = launch.pid, .executable = sink_.name(launch.process), .begin_ns = now_ns_});
    sink_.add(trace::ThreadRow{.id = process.thread,
                               .process_id = process.id,
                               .tid = launch.pid,
                               .name = sink_.name("unknown: Nsight Compute does not say"),
                               .begin_ns = now_ns_});
    return process;
  }

  trace::Id device_of(const Launch& launch) {
    trace::Id& id = devices_[launch.device];
    if (id != 0) return id;
    id = sink_.new_id();
    trace::DeviceRow row{.id = id, .kind = sink_.name("gpu"), .ordinal = launch.device};
    const DeviceFacts& facts = launch.facts;
    row.name = sink_.name(facts.name.empty() ? fmt::format("GPU {}", launch.device) : facts.name);
    if (!launch.compute_capability.empty())
      row.chip = sink_.name(fmt::format("compute capability {}", launch.compute_capability));
    row.units = whole(facts.units);
    row.memory_bytes = whole(facts.memory_bytes);
    row.cache_bytes = whole(facts.cache_bytes);
    if (facts.clock_khz > 0) row.clock_mhz = facts.clock_khz / 1e3;
    sink_.add(row);
    return id;
  }

  Sink& sink_;
  std::map<std::int64_t, Process> processes_;
  std::map<std::int64_t, trace::Id> devices_;
  std::int64_t now_ns_ = 0, count_ = 0, untimed_ = 0;
  trace::Name scope_, method_;
};

constexpr std::string_view kHint =
    "write it with: ncu --csv --page raw …, or from a report: ncu --import FILE --csv --page raw";

int sniff(std::string_view head) {
  const auto line = [&](std::string_view begin) {
    return head.starts_with(begin) || head.find(fmt::format("\n{}", begin)) != std::string_view::npos;
  };
  if (line("\"ID\",\"Process ID\"") || line("\"Process ID\",\"Process Name\",\"Host Name\"")) return 95;
  return line("==PROF== ") || line("==ERROR== ") || base::contains(head, "ERR_NVGPUCTRPERM") ? 70 : 0;
}

struct Metric {
  trace::Name name, unit;
  double factor = 1;
  Use use = Use::kNone;
  bool text_seen = false;
};

class Reader {
 public:
  Reader(Input& input, Sink& sink) : sink_(sink), csv_(input, sink), kernels_(sink) {}

  Result<void> read() {
    sink_.set_clock({std::nullopt, "order of profiling; not a timeline"});
    for (;;) {
      LLMPROF_LET(const CsvReader::Kind kind, csv_.next());
      if (kind == CsvReader::Kind::kEnd) break;
      if (kind == CsvReader::Kind::kLine) {
        take_line(csv_.line());
      } else {
        LLMPROF_TRY(take_record());
      }
    }
    if (open_) kernels_.finish(launch_);
    return judge();
  }

 private:
  std::string place() const { return fmt::format("line {}", csv_.line_number()); }

  void take_line(std::string_view line) {
    if (line.empty() || line.starts_with("==PROF==")) return;
    if (base::contains(line, "ERR_NVGPUCTRPERM") && no_permission_.empty()) no_permission_ = place();
    if (line.starts_with("==ERROR==")) {
      if (first_error_.empty())
        first_error_ =
            fmt::format("{}: holds no kernels; Nsight Compute says:{}", place(), base::printable(line.substr(9, 300)));
      errors_.emplace_back(base::printable(line.substr(9, 300)), place());
      if (errors_.size() > 16) errors_.pop_back();
      return;
    }
    if (line.starts_with("==WARNING==")) {
      line.remove_prefix(std::string_view("==WARNING==").size());
      if (line.starts_with(' ')) line.remove_prefix(1);
      if (++warnings_ <= 16) sink_.note("ncu", base::printable(line.substr(0, 1000)));
      return;
    }
    sink_.lose(trace::Loss::kInputIgnored, 1, "lines between the rows", place());
  }

  Result<void> take_record() {
    const auto& fields = csv_.fields();
    if (fields.front() == "ID" || (columns_.empty() && fields.front() == "Process ID")) return take_header();
    if (columns_.empty()) {
      sink_.lose(trace::Loss::kInputIgnored, 1, "lines between the rows", place());
      return {};
    }
    if (!per_metric_ && awaits_units_) {
      awaits_units_ = false;
      if (fields[id_].empty()) return take_units();
    }
    // A row of the form per metric ends early where it has no rule.
    if (per_metric_ ? fields.size() <= value_ : fields.size() != columns_.size()) {
      if (!csv_.complete()) {
        sink_.lose(trace::Loss::kInputTruncated, 1, "the last row is not complete", place());
        return {};
      }
      sink_.lose(trace::Loss::kInputDamaged, 1,
                 fmt::format("rows that have not the {} columns of the header", columns_.size()), place());
      return {};
    }
    return per_metric_ ? take_metric_row() : take_kernel_row();
  }

  Result<void> take_header() {
    if (open_) kernels_.finish(launch_);
    open_ = false;
    const auto& fields = csv_.fields();
    columns_.clear(), metrics_.clear(), titles_.assign(fields.begin(), fields.end());
    std::optional<std::size_t> id, name, value;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      columns_.push_back(column_of(fields[i]));
      if (columns_[i] == Column::kId) id = i;
      if (columns_[i] == Column::kMetricName) name = i;
      if (columns_[i] == Column::kMetricUnit) unit_ = i;
      if (columns_[i] == Column::kMetricValue) value = i;
    }
    if (!id) {
      return Error{ErrorCode::kUnsupported,
                   place() + ": is a summary over kernels (--print-summary), without single ones",
                   "write it without --print-summary"};
    }
    id_ = *id;
    per_metric_ = name.has_value() && value.has_value();
    if (per_metric_) name_ = *name, value_ = *value;
    awaits_units_ = !per_metric_;
    metrics_.resize(fields.size());
    for (std::size_t i = 0; i < fields.size() && !per_metric_; ++i) {
      if (columns_[i] == Column::kMetric) metrics_[i] = metric(fields[i], "");
    }
    find_attributes();
    return {};
  }

  Metric metric(std::string_view name, std::string_view printed_unit) {
    const Unit unit = base_unit(printed_unit);
    Metric result{sink_.name(name), unit.name.empty() ? trace::Name{} : sink_.name(unit.name), unit.factor,
                  use_of(name), false};
    if (result.use == Use::kDuration && unit.name != "ns") result.use = Use::kNone;
    return result;
  }

  Result<void> take_units() {
    const auto& fields = csv_.fields();
    for (std::size_t i = 0; i < columns_.size() && i < fields.size(); ++i) {
      if (columns_[i] == Column::kMetric) metrics_[i] = metric(titles_[i], fields[i]);
    }
    return {};
  }

  // Columns about the device; they hold the same in every row.
  void find_attributes() {
    attributes_.clear();
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      if (titles_[i].starts_with("device__attribute_")) attributes_.emplace(titles_[i].substr(18), i);
    }
  }
  void read_attributes(DeviceFacts& facts) const {
    const auto& fields = csv_.fields();
    const auto number = [&](const char* name, double& into) {
      if (const auto found = attributes_.find(name); found != attributes_.end()) {
        double value = 0;
        if (parse_value(fields[found->second], value) == ValueKind::kNumber) into = value;
      }
    };
    if (const auto found = attributes_.find("display_name"); found != attributes_.end())
      facts.name = fields[found->second].substr(0, 256);
    number("multiprocessor_count", facts.units);
    number("total_memory", facts.memory_bytes);
    number("l2_cache_size", facts.cache_bytes);
    number("clock_rate", facts.clock_khz);
  }

  // A launch with what its leading columns say.
  Launch new_launch() {
    Launch launch;
    kernels_.begin(launch);
    const auto& fields = csv_.fields();
    for (std::size_t i = 0; i < columns_.size() && i < fields.size(); ++i) {
      if (columns_[i] != Column::kMetric && columns_[i] != Column::kIgnored)
        take_leading(launch, columns_[i], fields[i]);
    }
    return launch;
  }

  void take_leading(Launch& launch, Column column, std::string_view text) {
    trace::KernelRow& row = launch.row;
    const auto integer = [&] { return base::leading_number<std::int64_t>(text).value_or(0); };
    std::int32_t triple[3] = {};
    if (column == Column::kPid) launch.pid = integer();
    if (column == Column::kDevice) launch.device = integer();
    if (column == Column::kStream) row.stream = integer();
    if (column == Column::kProcess) launch.process = text;
    if (column == Column::kCapability) launch.compute_capability = text.substr(0, 16);
    if (column == Column::kKernel) row.name = sink_.name(text);
    if ((column != Column::kGrid && column != Column::kBlock) || !parse_triple(text, triple)) return;
    const bool grid = column == Column::kGrid;
    (grid ? row.grid_x : row.block_x) = triple[0];
    (grid ? row.grid_y : row.block_y) = triple[1];
    (grid ? row.grid_z : row.block_z) = triple[2];
  }

  Result<void> take_kernel_row() {
    Launch launch = new_launch();
    const auto& fields = csv_.fields();
    if (!attributes_.empty()) read_attributes(launch.facts);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == Column::kMetric && metrics_[i].use == Use::kPasses)
        LLMPROF_TRY(take_value(launch, metrics_[i], titles_[i], fields[i], false));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == Column::kMetric) LLMPROF_TRY(take_value(launch, metrics_[i], titles_[i], fields[i], true));
    }
    kernels_.finish(launch);
    return {};
  }

  Result<void> take_metric_row() {
    const auto& fields = csv_.fields();
    if (!open_ || fields[id_] != open_id_) {
      if (open_) kernels_.finish(launch_);
      launch_ = new_launch();
      open_ = true;
      open_id_ = fields[id_];
    }
    if (fields[name_].empty()) {
      sink_.lose(trace::Loss::kInputIgnored, 1, "advice of rules", place());
      return {};
    }
    key_.assign(fields[name_]).push_back('\0');
    if (unit_ != 0) key_.append(fields[unit_]);
    auto known = by_name_.find(key_);
    if (known == by_name_.end()) {
      if (by_name_.size() > 100'000) by_name_.clear();
      known = by_name_.emplace(key_, metric(fields[name_], unit_ != 0 ? fields[unit_] : "")).first;
    }
    return take_value(launch_, known->second, fields[name_], fields[value_], true);
  }

  Result<void> take_value(Launch& launch, Metric& metric, std::string_view title, std::string_view text,
                          bool as_counter) {
    double value = 0;
    switch (parse_value(text, value)) {
      case ValueKind::kAbsent:
        return {};
      case ValueKind::kText:
        if (!metric.text_seen)
          sink_.lose(trace::Loss::kInputIgnored, 1, "metrics whose value is text",
                     base::printable(title.substr(0, 80)));
        metric.text_seen = true;
        return {};
      case ValueKind::kDecimalComma:
        return Error{ErrorCode::kCorruptInput,
                     fmt::format("{}, column \"{}\": '{}' is written with a decimal comma", place(),
                                 base::printable(title.substr(0, 80)), base::printable(text.substr(0, 40))),
                     "run ncu with LC_ALL=C: points and commas mean different things in different languages"};
      case ValueKind::kNumber:
        break;
    }
    value *= metric.factor;
    if (metric.use != Use::kNone) apply(launch, metric.use, value);
    if (as_counter) kernels_.add_counter(launch, metric.name, metric.unit, value);
    return {};
  }

  static void apply(Launch& launch, Use use, double value) {
    const bool small = value >= 0 && value < 2e9;
    if (use == Use::kDuration && launch.duration_ns < 0) launch.duration_ns = value;
    if (use == Use::kPasses && small) launch.passes = static_cast<std::int32_t>(value);
    if (use == Use::kRegisters && small) launch.row.registers = static_cast<std::int32_t>(value);
    if (use == Use::kStaticShared) launch.static_shared = value;
    if (use == Use::kDynamicShared) launch.dynamic_shared = value;
  }

  Result<void> judge() {
    if (kernels_.count() > 0) {
      for (const auto& [text, where] : errors_) sink_.lose(trace::Loss::kToolLost, 1, text, where);
      sink_.set_facts({.tool = "Nsight Compute"});
      kernels_.notes();
      return {};
    }
    if (!no_permission_.empty()) {
      return Error{
          ErrorCode::kCorruptInput,
          no_permission_ + ": holds no kernels: Nsight Compute was not allowed to read counters (ERR_NVGPUCTRPERM)",
          "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run ncu as root (container: --cap-add "
          "SYS_ADMIN); llmprof doctor says what this machine permits"};
    }
    if (!first_error_.empty()) return Error{ErrorCode::kCorruptInput, first_error_, std::string(kHint)};
    return Error{ErrorCode::kCorruptInput, "line 1: holds no kernels of Nsight Compute", std::string(kHint)};
  }

  Sink& sink_;
  CsvReader csv_;
  Kernels kernels_;
  std::vector<Column> columns_;
  std::vector<std::string> titles_;
  std::vector<Metric> metrics_;                              // of columns
  std::unordered_map<std::string, std::size_t> attributes_;  // of the device: column by name
  std::unordered_map<std::string, Metric> by_name_;          // of rows: by name and unit
  std::string key_, open_id_, no_permission_, first_error_;
  std::vector<std::pair<std::string, std::string>> errors_;
  std::size_t id_ = 0, name_ = 0, unit_ = 0, value_ = 0;
  std::int64_t warnings_ = 0;
  bool per_metric_ = false, awaits_units_ = false, open_ = false;
  Launch launch_;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace ncu

extern const Importer kNcuCsv;
const Importer kNcuCsv{"ncu", "Nsight Compute, CSV", Role::kTrace, ncu::sniff, ncu::parse, false};

}  // namespace llmprof::importers

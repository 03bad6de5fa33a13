#include "bench/sweep/run.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"
#include "base/version.h"
#include "bench/sweep/journal.h"
#include "hw/environment.h"
#include "trace/loss.h"
#include "trace/run_writer.h"
#include "wire/clock.h"

namespace llmprof::bench {

// The tables of a benchmark's run.

struct RunFacts {
  hw::Device device;
  std::vector<hw::Peak> peaks;
  std::vector<std::string> notes;  // Bench::notes()
};

// Writes tables and run.json into `run_folder`, replacing those of an interrupted sweep.
Result<void> write_run(const std::string& run_folder, const Sweep& sweep, const std::vector<Finished>& finished,
                       const RunFacts& facts);

namespace {

namespace fs = std::filesystem;

std::int64_t read_ns(clockid_t clock) { return static_cast<std::int64_t>(wire::read_clock_ns(clock)); }
std::int64_t wall_ns() { return read_ns(CLOCK_REALTIME); }

Result<void> make_folder(const std::string& folder, bool force) {
  const bool is_run = base::is_file(folder + "/run.json") || base::is_file(journal_path(folder)) ||
                      base::is_file(folder + "/capture/record.json");
  if (base::is_file(folder) || (base::is_directory(folder) && !is_run && !base::list_directory(folder).empty())) {
    return Error{ErrorCode::kUsage, folder + " exists and is not a run; it is left alone",
                 "choose another name with -o"};
  }
  if (is_run && !force) {
    return Error{ErrorCode::kUsage, folder + " exists",
                 base::is_file(journal_path(folder))
                     ? "choose another name with -o, replace it with -f, or go on with --resume"
                     : "choose another name with -o, or replace it with -f"};
  }
  if (is_run) {
    LLMPROF_TRY(Journal::check_free(folder));
    for (const char* name : {"run.json", "tables", "derived", "capture"}) {
      std::error_code ignored;
      fs::remove_all(fs::path(folder) / name, ignored);
    }
  }
  return base::make_directories(folder + "/capture");
}

// Ways of measuring that need a Bench of their own.
using Variant = std::pair<Cache, std::string>;
Variant variant_of(const Point& point) { return {point.cache, point.implementation}; }

// One sweep while it is measured.
class Session {
 public:
  Session(Sweep sweep, const OpenBench& open, const base::Progress& progress)
      : sweep_(std::move(sweep)), open_(open), progress_(progress) {}

  const Sweep& sweep() const { return sweep_; }
  const hw::Device& device() const { return facts_.device; }

  // Opens the device for the first variant that is still to be measured.
  Result<void> prepare(std::vector<Finished> finished) {
    finished_ = std::move(finished);
    for (const Finished& each : finished_) done_.insert(each.point);
    for (std::size_t i = 0; i < sweep_.points.size(); ++i) {
      if (done_.contains(i)) continue;
      left_.expect(sweep_.points[i].problem.op);
      if (std::ranges::find(variants_, variant_of(sweep_.points[i])) == variants_.end()) {
        variants_.push_back(variant_of(sweep_.points[i]));
      }
    }
    return open_for(variants_.empty() ? Variant{} : variants_.front());
  }

  bool complete() const { return done_.size() == sweep_.points.size(); }
  void set_fingerprint() { sweep_.fingerprint = hw::fingerprint(facts_.device); }

  // Variant by variant, as each needs its own Bench; rows keep the order of the sweep.
  Result<void> measure(Journal& journal) {
    for (std::size_t v = 0; v < variants_.size() && !interrupted_; ++v) {
      if (v > 0) LLMPROF_TRY(open_for(variants_[v]));
      for (std::size_t i = 0; i < sweep_.points.size() && !interrupted_; ++i) {
        if (variant_of(sweep_.points[i]) != variants_[v] || done_.contains(i)) continue;
        LLMPROF_TRY(measure_point(i, journal));
      }
    }
    return {};
  }

  Result<SweepOutcome> write(const std::string& run_folder) {
    LLMPROF_TRY(write_run(run_folder, sweep_, finished_, facts_));
    SweepOutcome outcome{.done = finished_.size(), .points = sweep_.points.size(), .interrupted = interrupted_};
    if (complete()) {
      std::error_code ignored;
      fs::remove_all(run_folder + "/capture", ignored);
    }
    return outcome;
  }

 private:
  Result<void> open_for(const Variant& variant) {
    bench_ = nullptr;  // two of them would share the memory
    BenchOptions options = sweep_.options;
    options.cache = variant.first;
    options.implementation = variant.second;
    LLMPROF_LET(bench_, open_(sweep_.device, options));
    facts_.device = bench_->device();
    facts_.peaks = bench_->peaks();
    for (const std::string& note : bench_->notes()) {
      if (std::ranges::find(facts_.notes, note) == facts_.notes.end()) facts_.notes.push_back(note);
    }
    return {};
  }

  bool go_on(const Point& point) {
    const std::string what = point.problem.key();
    if (!progress_({.what = what,
                    .done = static_cast<double>(done_.size()),
                    .total = static_cast<double>(sweep_.points.size()),
                    .unit = "points",
                    .left_seconds = left_.seconds()})) {
      interrupted_ = true;
    }
    return !interrupted_;
  }

  Result<void> measure_point(std::size_t index, Journal& journal) {
    const Point& point = sweep_.points[index];
    Finished finished{.point = index, .result = {}, .begin_wall_ns = wall_ns(), .end_wall_ns = 0};
    if (!go_on(point)) return {};
    if (point.impossible.empty()) {
      finished.result = bench_->run(point.problem, [&] { return go_on(point); });
    } else {
      finished.result.reason = point.impossible;  // a result is skipped until it says otherwise
    }
    finished.result.problem = point.problem;
    finished.end_wall_ns = std::max(wall_ns(), finished.begin_wall_ns);
    const bool whole =
        finished.result.status == Status::kMeasured && finished.result.measured.stopped_by != StoppedBy::kUser;
    if (interrupted_ && !whole) return {};  // --resume measures it again
    LLMPROF_TRY(journal.append(finished));
    left_.done(point.problem.op, static_cast<double>(finished.end_wall_ns - finished.begin_wall_ns) * 1e-9);
    done_.insert(index);
    finished_.push_back(std::move(finished));
    return {};
  }

  Sweep sweep_;
  const OpenBench& open_;
  const base::Progress& progress_;
  std::unique_ptr<Bench> bench_;
  RunFacts facts_;
  std::vector<Variant> variants_;
  std::set<std::size_t> done_;
  std::vector<Finished> finished_;
  TimeLeft left_;
  bool interrupted_ = false;
};

Error other_journal(const std::string& folder, const std::string& why) {
  return {ErrorCode::kUnsupported, fmt::format("{} cannot be resumed: {}", folder, why),
          "begin the benchmark again under another name"};
}

// The last result of a point counts, if a journal should hold two.
std::vector<Finished> unique_points(std::vector<Finished> finished) {
  std::set<std::size_t> seen;
  std::vector<Finished> kept;
  for (auto each = finished.rbegin(); each != finished.rend(); ++each) {
    if (seen.insert(each->point).second) kept.push_back(std::move(*each));
  }
  return kept;
}

constexpr double kNs = 1e9;
constexpr trace::Id kDevice = 1;

class Tables {
 public:
  explicit Tables(trace::RunWriter& writer) : writer_(writer) {}

  void device(const hw::Device& device, const std::vector<hw::Peak>& peaks) {
    writer_.add(trace::DeviceRow{.id = kDevice,
                                 .kind = name(device.kind),
                                 .name = name(device.name),
                                 .chip = name(device.chip),
                                 .units = device.units,
                                 .memory_bytes = device.memory_bytes,
                                 .cache_bytes = device.cache_bytes,
                                 .clock_mhz = device.clock_mhz,
                                 .driver = name(device.driver)});
    for (const hw::Peak& peak : peaks) {
      writer_.add(trace::PeakRow{kDevice, name(peak.quantity), name(peak.type), peak.value, name(peak.unit),
                                 name(peak.source), name(peak.method)});
    }
  }

  // The clock of this process. Times of points are kept as wall time, so that those of an earlier boot fit, too.
  void clock() {
    const std::int64_t before = read_ns(CLOCK_MONOTONIC_RAW), wall = wall_ns();
    const std::int64_t after = read_ns(CLOCK_MONOTONIC_RAW);
    const std::int64_t raw = before + (after - before) / 2;
    writer_.add(
        trace::ClockSyncRow{.ts_ns = raw, .wall_ns = wall, .error_ns = (after - before + 1) / 2, .process_id = {}});
    raw_less_wall_ns_ = raw - wall;
  }

  void loss(trace::Loss loss, std::int64_t count, const std::string& detail) {
    const trace::LossInfo& info = trace::info_of(loss);
    writer_.add(trace::LossRow{.id = ++losses_,
                               .process_id = {},
                               .name = name(info.name),
                               .severity = name(trace::name_of(info.severity)),
                               .count = count,
                               .unit = name(info.unit),
                               .meaning = name(info.meaning),
                               .remedy = name(info.remedy),
                               .detail = name(detail)});
  }

  void point(const Point& point, const Finished& finished) {
    const auto id = static_cast<trace::Id>(finished.point) + 1;
    trace::BenchRow row = row_of(point, finished.result);
    row.id = id;
    row.begin_ns = finished.begin_wall_ns + raw_less_wall_ns_;
    row.end_ns = finished.end_wall_ns + raw_less_wall_ns_;
    writer_.add(row);
    std::int32_t place = 0;
    for (const auto& [axis, value] : point.problem.axes) {
      writer_.add(trace::BenchAxisRow{id, place++, name(axis), value});
    }
    std::int64_t number = 0;
    for (const double seconds : finished.result.measured.samples) {
      writer_.add(trace::BenchSampleRow{id, number++, seconds * kNs});
    }
  }

 private:
  trace::Name name(std::string_view text) { return text.empty() ? trace::Name{} : writer_.strings().intern(text); }

  trace::BenchRow row_of(const Point& point, const PointResult& result) {
    trace::BenchRow row;
    row.device_id = kDevice;
    row.op = name(point.problem.op);
    row.type = name(type_name(point.problem.type));
    row.name = name(point.name);
    row.implementation = name(result.implementation.empty() ? point.implementation : result.implementation);
    row.method = name(result.method);
    row.kernels = name(result.kernels);
    row.timer = name(result.timer);
    row.cache = name(cache_name(point.cache));
    row.status = name(status_name(result.status));
    row.reason = name(result.reason);
    row.flops = result.work.flops;
    row.read_bytes = result.work.read_bytes;
    row.write_bytes = result.work.write_bytes;
    if (result.roof.floor_seconds > 0) row.floor_ns = result.roof.floor_seconds * kNs;
    row.bound = name(result.roof.bound);
    row.denominator = name(result.roof.denominator);
    row.tensor_bytes = result.tensor_bytes;
    row.workspace_bytes = result.workspace_bytes;
    row.buffer_sets = result.buffer_sets;
    row.error = result.error;
    if (result.event_seconds) row.event_ns = *result.event_seconds * kNs;
    if (result.graph_seconds) row.graph_ns = *result.graph_seconds * kNs;
    row.used_calls = point.used_calls;
    row.used_ns = point.used_ns;
    if (!result.measured.samples.empty()) add_measurement(result.measured, row);
    return row;
  }

  void add_measurement(const Measurement& measured, trace::BenchRow& row) {
    const Statistics& time = measured.time;
    row.samples = static_cast<std::int64_t>(measured.samples.size());
    row.mean_ns = time.mean * kNs;
    row.median_ns = time.median * kNs;
    row.min_ns = time.min * kNs;
    row.max_ns = time.max * kNs;
    row.stddev_ns = time.deviation * kNs;
    row.p5_ns = time.p5 * kNs;
    row.p95_ns = time.p95 * kNs;
    row.p99_ns = time.p99 * kNs;
    row.low_ns = time.low * kNs;
    row.high_ns = time.high * kNs;
    row.noisy = measured.noisy;
    row.stopped_by = name(stopped_by_name(measured.stopped_by));
    row.throttled = static_cast<std::int64_t>(measured.throttled);
    if (measured.clock_mhz > 0) row.clock_mhz = measured.clock_mhz;
  }

  trace::RunWriter& writer_;
  std::int64_t raw_less_wall_ns_ = 0;
  trace::Id losses_ = 0;
};

}  // namespace

Result<SweepOutcome> run_sweep(Sweep sweep, const std::string& run_folder, bool force, const OpenBench& open,
                               const base::Progress& progress) {
  sweep.llmprof_version = std::string(base::version());
  Session session(std::move(sweep), open, progress);
  LLMPROF_TRY(session.prepare({}));
  session.set_fingerprint();
  LLMPROF_TRY(make_folder(run_folder, force));
  LLMPROF_LET(Journal journal, Journal::create(run_folder, session.sweep()));
  LLMPROF_TRY(session.measure(journal));
  return session.write(run_folder);
}

Result<SweepOutcome> resume_sweep(const std::string& run_folder, const OpenBench& open,
                                  const base::Progress& progress) {
  if (!base::is_file(journal_path(run_folder))) {
    if (base::is_file(run_folder + "/run.json")) return SweepOutcome{.was_complete = true};
    return Error{ErrorCode::kNotFound, run_folder + ": no benchmark to resume",
                 "llmprof bench OPERATOR -o NAME begins one"};
  }
  LLMPROF_LET(OpenedJournal opened, Journal::reopen(run_folder));
  if (opened.sweep.llmprof_version != base::version()) {
    return other_journal(run_folder,
                         fmt::format("llmprof {} began it, this is {}", opened.sweep.llmprof_version, base::version()));
  }
  Session session(std::move(opened.sweep), open, progress);
  LLMPROF_TRY(session.prepare(unique_points(std::move(opened.finished))));
  if (const std::string here = hw::fingerprint(session.device()); here != session.sweep().fingerprint) {
    return other_journal(run_folder, fmt::format("it was begun on {}, this is {}", session.sweep().fingerprint, here));
  }
  LLMPROF_TRY(session.measure(opened.journal));
  return session.write(run_folder);
}

void TimeLeft::expect(std::string_view op) { ++paces_[std::string(op)].left; }

void TimeLeft::done(std::string_view op, double seconds) {
  Pace& pace = paces_[std::string(op)];
  pace.spent_seconds += seconds;
  ++pace.done;
  --pace.left;
}

std::optional<double> TimeLeft::seconds() const {
  double spent = 0;
  int done = 0;
  for (const auto& [op, pace] : paces_) {
    spent += pace.spent_seconds;
    done += pace.done;
  }
  if (done == 0) return std::nullopt;
  double left = 0;
  for (const auto& [op, pace] : paces_) {
    left += pace.left * (pace.done > 0 ? pace.spent_seconds / pace.done : spent / done);
  }
  return left;
}

Result<void> write_run(const std::string& run_folder, const Sweep& sweep, const std::vector<Finished>& finished,
                       const RunFacts& facts) {
  ::unlink((run_folder + "/run.json").c_str());  // of a sweep that goes on; its journal still holds everything
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(run_folder));
  Tables tables(writer);
  tables.device(facts.device, facts.peaks);
  tables.clock();
  std::vector<const Finished*> in_order;
  for (const Finished& each : finished) in_order.push_back(&each);
  std::ranges::stable_sort(in_order, {}, &Finished::point);
  for (const Finished* each : in_order) tables.point(sweep.points[each->point], *each);
  for (const std::string& note : facts.notes) tables.loss(trace::Loss::kBenchDisturbed, 1, note);
  const auto missing = static_cast<std::int64_t>(sweep.points.size() - finished.size());
  if (missing > 0) tables.loss(trace::Loss::kBenchIncomplete, missing, "");
  trace::RunInfo info;
  info.command = sweep.command;
  info.environment = base::to_line(hw::environment_card());
  info.source = "bench";
  return writer.finish(std::move(info));
}

}  // namespace llmprof::bench

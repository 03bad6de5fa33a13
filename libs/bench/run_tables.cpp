#include "bench/run_tables.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "hw/environment.h"
#include "trace/loss.h"
#include "trace/run_writer.h"

namespace llmprof::bench {
namespace {

constexpr double kNs = 1e9;
constexpr trace::Id kDevice = 1;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

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
    const std::int64_t before = now_ns(CLOCK_MONOTONIC_RAW), wall = now_ns(CLOCK_REALTIME);
    const std::int64_t after = now_ns(CLOCK_MONOTONIC_RAW);
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

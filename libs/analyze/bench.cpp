#include "analyze/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "analyze/context.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "bench/statistics.h"

namespace llmprof::analyze {

namespace {

struct AxisRow {
  std::int64_t bench_id = 0;
  std::string axis;
  std::int64_t value = 0;
};

std::string unit_of(std::string_view quantity) {
  return quantity == "flops" ? "FLOP/s" : quantity == "bandwidth" ? "B/s" : "s";
}

// Points and axes are both sorted by point.
Result<void> read_axes(const trace::Run& run, std::vector<BenchPoint>& points) {
  LLMPROF_LET(const std::vector<AxisRow> axes, ask_rows<AxisRow>(run, "bench_axes"));
  std::size_t at = 0;
  for (const AxisRow& row : axes) {
    while (at < points.size() && points[at].id < row.bench_id) ++at;
    if (at == points.size()) break;
    if (points[at].id == row.bench_id) points[at].axes.emplace_back(row.axis, row.value);
  }
  return {};
}

}  // namespace

std::string BenchPoint::sizes() const {
  std::string text;
  for (const auto& [axis, value] : axes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, value);
  return text;
}

std::string BenchPoint::key() const { return fmt::format("{} {} {} {} {}", op, type, sizes(), cache, implementation); }

Result<BenchResults> bench_results(const trace::Run& run) {
  BenchResults results;
  LLMPROF_LET(results.points, ask_rows<BenchPoint>(run, "bench_points"));
  if (results.points.empty() && run.info().source != "bench") return results;
  LLMPROF_TRY(read_axes(run, results.points));
  LLMPROF_LET(AnalysisContext analysis, find_context(run, {}));
  for (const PeakRate& rate : analysis.peaks) {
    if (analysis.device_ids.empty() || rate.device_id != analysis.device_ids.front()) continue;
    results.peaks.push_back({rate.quantity, rate.type, rate.value, unit_of(rate.quantity), rate.source, rate.method});
  }
  results.devices = std::move(analysis.devices);
  LLMPROF_LET(results.losses, read_losses(run));
  return results;
}

namespace {

constexpr double kSignificant = 0.05;
constexpr double kSameClock = 0.03;

using Samples = std::unordered_map<std::int64_t, std::vector<double>>;

Result<Samples> read_samples(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "bench_samples"));
  Samples samples;
  for (const auto& row : table.rows) samples[row[0].as_int()].push_back(row[1].as_double());
  return samples;
}

struct Side {
  const trace::Run& run;
  BenchResults results;
  Samples samples;
};

Result<Side> read_side(const trace::Run& run) {
  LLMPROF_LET(BenchResults results, bench_results(run));
  if (results.points.empty()) {
    return Error{ErrorCode::kUsage, run.folder() + " holds no benchmark", "llmprof bench makes runs that do"};
  }
  LLMPROF_LET(Samples samples, read_samples(run));
  return Side{run, std::move(results), std::move(samples)};
}

std::string devices_text(const Side& side) {
  std::string text;
  for (const DeviceCard& device : side.results.devices) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", device.name,
                        device.driver.empty() ? "" : " (driver " + device.driver + ")");
  }
  return text;
}

// How many points of the comparison differ in something that may explain their times.
template <class Differ>
std::size_t count(const BenchComparison& comparison, const Differ& differ) {
  std::size_t different = 0;
  for (const BenchChange& change : comparison.changes) different += differ(change) ? 1 : 0;
  return different;
}

bool other_clock(const BenchChange& change) {
  if (!change.a.clock_mhz || !change.b.clock_mhz || *change.a.clock_mhz <= 0) return false;
  return std::abs(*change.b.clock_mhz / *change.a.clock_mhz - 1) > kSameClock;
}

void add_confounders(const Side& a, const Side& b, BenchComparison& comparison) {
  const auto add = [&](std::string text) { comparison.confounders.push_back(std::move(text)); };
  if (devices_text(a) != devices_text(b)) {
    add(fmt::format("the devices differ: {} and {}", devices_text(a), devices_text(b)));
  }
  if (a.run.info().llmprof_version != b.run.info().llmprof_version) {
    add(fmt::format("measured by llmprof {} and {}", a.run.info().llmprof_version, b.run.info().llmprof_version));
  }
  const std::size_t all = comparison.changes.size();
  if (const std::size_t n = count(comparison, other_clock); n > 0) {
    add(fmt::format("the clock differed by more than {:.0f} % in {} of {} points", kSameClock * 100, n, all));
  }
  if (const std::size_t n = count(comparison, [](const auto& c) { return c.a.method != c.b.method; }); n > 0) {
    add(fmt::format("the method differs in {} of {} points (another algorithm or library)", n, all));
  }
  if (const std::size_t n = count(comparison, [](const auto& c) { return c.a.timer != c.b.timer; }); n > 0) {
    add(fmt::format("the timer differs in {} of {} points", n, all));
  }
  if (const std::size_t n = count(comparison, [](const auto& c) { return c.a.noisy || c.b.noisy; }); n > 0) {
    add(fmt::format("{} of {} points are noisy on one side at least", n, all));
  }
  if (const std::size_t n = count(comparison, [](const auto& c) { return !c.a.reason.empty() || !c.b.reason.empty(); });
      n > 0) {
    const auto first = std::ranges::find_if(comparison.changes,
                                            [](const auto& c) { return !c.a.reason.empty() || !c.b.reason.empty(); });
    add(fmt::format("{} of {} points have a remark on one side at least: {}", n, all,
                    first->a.reason.empty() ? first->b.reason : first->a.reason));
  }
}

void judge(BenchComparison& comparison) {
  std::vector<double> p;
  double logarithms = 0;
  std::size_t ratios = 0;
  for (const BenchChange& change : comparison.changes) {
    p.push_back(change.p);
    if (!std::isfinite(change.ratio) || change.ratio <= 0) continue;
    logarithms += std::log(change.ratio);
    ++ratios;
  }
  const std::vector<double> adjusted = bench::adjusted(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    BenchChange& change = comparison.changes[i];
    change.p = adjusted[i];
    if (change.p >= kSignificant) continue;
    if (change.ratio > 1 + comparison.threshold) change.verdict = BenchVerdict::kSlower;
    if (change.ratio < 1 / (1 + comparison.threshold)) change.verdict = BenchVerdict::kFaster;
  }
  if (ratios > 0) comparison.ratio = std::exp(logarithms / static_cast<double>(ratios));
}

std::string why_open(const BenchPoint& a, const BenchPoint& b) {
  const BenchPoint& missing = a.measured() ? b : a;
  return fmt::format("{} in {}{}{}", missing.status,
                     a.measured()   ? "B"
                     : b.measured() ? "A"
                                    : "both",
                     missing.reason.empty() ? "" : ": ", missing.reason);
}

BenchChange change_of(const BenchPoint& a, const BenchPoint& b, const Samples& of_a, const Samples& of_b) {
  const bench::Comparison found = bench::compare(of_a.at(a.id), of_b.at(b.id));
  return {.a = a, .b = b, .ratio = found.ratio, .low = found.low, .high = found.high, .p = found.p};
}

}  // namespace

std::string_view json_name(BenchVerdict verdict) {
  return verdict == BenchVerdict::kSame ? "same" : verdict == BenchVerdict::kFaster ? "faster" : "slower";
}

Result<BenchComparison> compare_benches(const trace::Run& run_a, const trace::Run& run_b, double threshold) {
  LLMPROF_LET(const Side a, read_side(run_a));
  LLMPROF_LET(const Side b, read_side(run_b));
  BenchComparison comparison{.threshold = threshold, .changes = {}, .ratio = {}};
  std::map<std::string, const BenchPoint*> of_b;
  for (const BenchPoint& point : b.results.points) of_b.emplace(point.key(), &point);
  for (const BenchPoint& point : a.results.points) {
    const auto found = of_b.find(point.key());
    if (found == of_b.end()) {
      comparison.only_a.push_back(point);
      continue;
    }
    const BenchPoint& other = *found->second;
    of_b.erase(found);
    const bool both =
        point.measured() && other.measured() && a.samples.contains(point.id) && b.samples.contains(other.id);
    if (both) {
      comparison.changes.push_back(change_of(point, other, a.samples, b.samples));
    } else {
      comparison.not_compared.push_back({point, why_open(point, other)});
    }
  }
  for (const BenchPoint& point : b.results.points) {
    if (of_b.contains(point.key())) comparison.only_b.push_back(point);
  }
  judge(comparison);
  add_confounders(a, b, comparison);
  return comparison;
}

}  // namespace llmprof::analyze

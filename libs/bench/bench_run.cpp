#include "bench/bench_run.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/version.h"
#include "bench/run_tables.h"
#include "bench/time_left.h"

namespace llmprof::bench {
namespace {

namespace fs = std::filesystem;

std::int64_t wall_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

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

}  // namespace llmprof::bench

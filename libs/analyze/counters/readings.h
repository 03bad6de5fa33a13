#pragma once
// What the counters of a run hold, as it was read: windows with their metrics, samples of the device, steps that they
// are placed in.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/sections/counters_summary.h"
#include "base/result.h"
#include "hw/counters/catalog.h"
#include "trace/run.h"

namespace llmprof::analyze::counters {

using Metrics = std::map<std::string, double, std::less<>>;  // by the chip's own names

struct MeasuredWindow {
  std::int64_t id = 0, begin_ns = 0, end_ns = 0, thread_id = 0;
  std::int64_t graph_stage_step = -1;  // of a graph launch: its step; -1 unknown
  std::string graph_stage;             // and that step's stage
};

// One set of values, from as many windows as it took passes.
struct Measurement {
  std::int64_t id = 0, device_id = 0;
  bool graph = false;  // of graph launches; else of ranges
  std::string name;    // of the range
  std::vector<MeasuredWindow> windows;
  Metrics metrics;
};
Result<std::vector<Measurement>> read_measurements(const trace::Run& run);

// Samples of one device, by time.
struct SampleSet {
  std::int64_t device_id = 0;
  std::vector<std::int64_t> begin_ns, end_ns;
  std::vector<std::string> metrics;
  std::vector<std::vector<double>> values;  // [metric][sample]; NaN: none
  std::size_t size() const { return begin_ns.size(); }
};
// Of the device `preferred` if it was sampled, else of the first that was.
Result<SampleSet> read_samples(const trace::Run& run, std::int64_t preferred);

struct PlacedStep {
  std::int64_t id = 0, thread_id = 0;
  std::int64_t begin_ns = 0, host_end_ns = 0;  // of its range
  std::int64_t turn_ns = 0, end_ns = 0;        // on the device
  std::string stage, range;                    // the name of its range; "" it has none
  double flops = 0, bytes = 0;                 // that the model needs in it; NaN unknown
};
Result<std::vector<PlacedStep>> read_steps(const trace::Run& run);  // by thread and begin

// Whether the run's files hold rows of a table: known without asking the engine.
bool has_rows(const trace::Run& run, std::string_view table);

// Several measurements of the same thing become one value each: by the catalogue's names where it has one for what was
// read, else by the chip's.

// Whether a metric adds up over time (bytes, cycles); else it is a mean over it (percentages, rates).
bool adds_up(std::string_view metric);

// The value of one of the catalogue's counters; nullopt where its metrics are not there.
std::optional<double> value_of(std::string_view counter, const Metrics& metrics);

class Fold {
 public:
  // What was read over `occurrences` steps, launches or ranges (sums are divided by them), in `time_ns`.
  void add(const Metrics& metrics, double occurrences, double time_ns);

  std::int64_t count() const { return count_; }
  std::vector<CounterValue> values(const std::string& method) const;  // the catalogue's first, in its order
  Metrics metrics() const;                                            // means, of one occurrence

 private:
  struct Sums {
    double value = 0, weight = 0;  // weighted sum
    double plain = 0, square = 0;  // for the spread
    std::int64_t count = 0;
    void add(double x, double by);
    double mean() const { return weight > 0 ? value / weight : plain / static_cast<double>(count); }
    std::optional<double> spread() const;
  };
  CounterValue value(const std::string& name, const Sums& sums, const std::string& method) const;

  std::map<const hw::counters::Counter*, Sums> counters_;  // in the order of the catalogue: they stand in one vector
  std::map<std::string, Sums, std::less<>> metrics_;
  std::int64_t count_ = 0;
};

// Which steps a measured range covers. Pure.

struct CoveredSteps {
  std::string stage;
  std::int64_t steps = 0;
  double flops = 0, bytes = 0;  // that the model needs in them, added up; NaN unknown
};

// `steps` by thread and begin. The steps of a range of this name that the window covers: a step of that name with which
// it shares half of its time, or any that it contains as a whole. Nothing where there are none or of several stages:
// the range then stands for itself.
std::optional<CoveredSteps> covered(const MeasuredWindow& window, const std::string& name,
                                    const std::vector<PlacedStep>& steps);

}  // namespace llmprof::analyze::counters

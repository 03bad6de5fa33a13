#pragma once
// What the counters of a run hold, as it was read: windows with their metrics, samples of the device, steps that they
// are placed in.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
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

}  // namespace llmprof::analyze::counters

#pragma once
// What a report says about GPUs beyond what it says about every device.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct KernelTime {  // all executions of a kernel in a stage
  std::string name, stage;
  std::int64_t executions = 0, time_ns = 0;
  std::int64_t estimated_ns = 0;  // of time_ns, in graph launches that were not recorded node by node
  double share = 0;               // time_ns of Coverage::gpu_ns
  std::string ops;                // operators it belongs to, most time first
  std::string shape;  // "[512, 2048] x [2048, 8192] +2": of the product with the most time, and how many more
  double flops = 0;   // of the BLAS calls that it stands for; 0 unknown
  std::optional<double> flops_per_s;
  std::optional<std::int64_t> mean_ns;  // of one execution
};

struct GapTime {      // time that was not recorded
  std::string stage;  // "": of the whole run
  std::string why;
  std::int64_t gaps = 0, time_ns = 0;
};

struct Note {
  std::string subject, text;
  std::int64_t notes = 0;  // processes that noted the same
};

struct SourceTime {  // GPU time that a line, function or call stack launched
  std::string stage, kind, function, file;
  std::optional<std::int64_t> line;
  std::int64_t executions = 0, time_ns = 0, estimated_ns = 0;
  std::optional<std::int64_t> self_ns;  // of a function: it was the innermost Python function
  double share = 0;                     // time_ns of Coverage::gpu_ns
  std::string label;                    // "train.py:12 step"
};

struct Gpu {
  std::vector<KernelTime> kernels;  // most time first
  std::string by;                   // "line", "function", "stack": what `sources` are; "" nobody asked
  std::vector<SourceTime> sources;  // most time first; without a function: launches without a stack
  std::vector<GapTime> gaps;
  std::vector<Note> notes;
};

// What recording itself cost. Every report states it.

// How much longer steps are with something than without it, told from steps that follow each other.
struct MeasuredRatio {
  double ratio = 1, low = 1, high = 1;  // low, high: 95 % interval of the mean
  std::int64_t stretches = 0;           // each held against what was right before and after it
  std::int64_t steps = 0;               // in these stretches
};

struct StageCost {
  std::string name;  // of the stage
  std::int64_t range_events = 0, gemm_events = 0;
  std::optional<double> delay_ns;  // events times the measured cost of one
  std::optional<double> share;     // of the stage's time
  bool flagged = false;            // more than 1 %
  // Measured in this run. `measured` is what of these was measured, together, for the mean step.
  std::optional<MeasuredRatio> measured_watching;  // against steps in rests of the recorder
  std::optional<MeasuredRatio>
      measured_kernels;      // steps whose kernels were timed, against those whose launches were noted
  double kernels_share = 0;  // of the steps, with kernels timed
  std::optional<MeasuredRatio> measured;
};

struct CollectorCost {
  bool known = false;          // what the collectors counted
  std::int64_t processes = 0;  // that noted it
  std::int64_t range_events = 0, gemm_events = 0;
  std::int64_t gpu_events = 0;      // calls of CUDA and its BLAS that were noted; not in delay_ns
  std::int64_t timed_kernels = 0;   // launched one by one, and timed by CUPTI
  std::optional<double> timing_ns;  // of these, at kTimedKernelNs each; none: the run's own ratios say more
  std::int64_t log_bytes = 0;
  std::int64_t writer_cpu_ns = 0;                       // of the collector's threads in the processes
  std::optional<double> writer_share;                   // of one core, over the wall time
  std::optional<std::int64_t> recorder_cpu_ns;          // of llmprof beside them, while they ran
  std::optional<double> range_event_ns, gemm_event_ns;  // measured on this machine
  std::optional<double> delay_ns, delay_share;          // of all events; of the wall time
  bool rests_of_everything =
      false;  // in rests nothing of the GPU was recorded either: `measured_watching` is all of the cost
  std::vector<StageCost> stages;
  std::string why;  // why something above is unknown
};

// What the readings of devices say about a run and its stages. Filled by analyze, laid out by report.

struct ClockLimitShare {
  std::string why;   // "power limit"
  double share = 0;  // of the readings in the stage
};

struct StageTelemetry {
  std::string stage;
  std::int64_t time_ns = 0;  // union of its step windows
  std::int64_t tokens = 0;
  // Of the used devices together. Of the whole device: what other programs draw on it is in it.
  std::optional<double> energy_j, energy_error_j, joules_per_token, joules_per_token_error;
  std::optional<double> power_w;  // energy / time
  std::string energy_source;      // "counter", "power"; "" unknown
  std::string energy_why;         // why it is unknown
  // Means over the readings inside its windows and over the used devices.
  std::int64_t clock_readings = 0;  // of all used devices
  std::optional<double> sm_clock_mhz, lowest_sm_clock_mhz, memory_clock_mhz, temperature_c, highest_temperature_c;
  std::string clock_why;                      // why they are unknown
  std::optional<double> slow_clock_share;     // of the readings, with the clock below kSlowClock of the reference
  std::vector<ClockLimitShare> clock_limits;  // most often first
  // GPM, 0 … 1: means over the times between two samples that lie in its windows nearly whole.
  std::int64_t activity_readings = 0;
  std::optional<double> sm_active, sm_occupancy, tensor_active, dram_active;
  std::string activity_why;
};
inline constexpr double kSlowClock = 0.9;

struct DeviceTelemetry {
  std::int64_t device_id = 0;
  std::string name;
  bool used = false;  // it is one of the devices of the job; where no kernel was recorded, all are
  std::int64_t readings = 0, begin_ns = 0, end_ns = 0;
  std::optional<double> energy_j;  // from the first reading to the last
  std::optional<double> power_w, highest_power_w, power_limit_w;
  std::optional<double> reference_clock_mhz;  // what clocks are compared with: the highest of the device
  std::optional<double> sampler_cpu_s;        // CPU time of whoever read it; with the first device
  std::optional<double> readings_per_s;       // of energy or power, whichever was read more often
  // Highest in each of equal parts of the time from the first to the last reading of it; a part without one is as the
  // part before. Empty with fewer than three readings.
  std::vector<double> power_over_time_w;
};

struct Telemetry {
  std::vector<DeviceTelemetry> devices;      // those with readings
  std::vector<StageTelemetry> stages;        // in the order of the summary; empty without readings of a used device
  std::optional<double> sampler_cpu_s;       // what reading took
  std::optional<double> sampler_core_share;  // of one core, over the time of the readings
};

// What the metrics of an inference server say. Filled by analyze, laid out by report.

struct MetricGauge {
  std::string server, what;  // "vLLM", "requests running"
  bool share = false;        // 0 … 1, and the mean over its series; else a number, added up over them
  double last = 0, highest = 0;
};

struct MetricCounter {
  std::string server, what, unit;
  double total = 0;                  // since the server started
  std::optional<double> rate_per_s;  // between the first scrape and the last, where they carry times
};

// Interpolated inside the bucket it falls into; it lies between the bucket's bounds for certain.
struct MetricQuantile {
  double value_s = 0, low_s = 0;
  std::optional<double> high_s;  // none: in the last bucket, which has no end; value is its beginning
};

struct MetricHistogram {
  std::string server, what;
  double count = 0;
  std::optional<double> mean_s;
  MetricQuantile p50, p90, p99;
  bool between_scrapes = false;  // else since the server started
};

struct Metrics {
  std::int64_t values = 0, names = 0, known_names = 0;
  std::int64_t scrapes = 0;             // of the series that was read most often
  std::optional<std::int64_t> time_ns;  // from the first to the last; none: the scrapes carry no times
  std::vector<MetricGauge> gauges;
  std::vector<MetricCounter> counters;
  std::vector<MetricHistogram> latencies;
  std::optional<double> prefix_hit_rate;  // of the prompt tokens that were looked up
};

}  // namespace llmprof::analyze

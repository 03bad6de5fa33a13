#pragma once
// What a report says, as numbers: analyze fills it, report lays it out. Unknown is nullopt with a reason in `why`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/job/job.h"
#include "analyze/names/ranges.h"
#include "analyze/requests/requests_summary.h"
#include "analyze/rules/finding.h"
#include "analyze/sections/counters_summary.h"
#include "analyze/sections/devices_summary.h"
#include "analyze/sections/host_summary.h"
#include "analyze/sections/imported_summary.h"
#include "analyze/steps/idle.h"
#include "analyze/steps/life.h"
#include "analyze/steps/step_curve.h"
#include "analyze/steps/waterfall_summary.h"
#include "base/fields.h"
#include "base/progress.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct Loss {
  std::string name, severity, unit, meaning, remedy, detail;
  std::int64_t count = 0;
};

struct Coverage {
  std::int64_t processes = 0, injected = 0;  // process images, and those that were seen from inside
  std::int64_t threads = 0, kernels = 0, ranges = 0, gemms = 0;
  std::int64_t wall_ns = 0;       // first to last event; processes begin with their exec and end with their exit
  std::int64_t in_stages_ns = 0;  // of wall_ns, inside a stage
  std::int64_t kernel_ns = 0;     // sum of kernel durations
  std::int64_t attributed_kernel_ns = 0;  // of that, in a step
  std::int64_t data_losses = 0;           // loss rows with severity data_loss
  // Of devices that are no CPU, durations of kernels added up; estimates of graph nodes included.
  std::int64_t gpu_ns = 0;
  std::int64_t gpu_stage_ns = 0;   // of gpu_ns, in a stage
  std::int64_t gpu_node_ns = 0;    // of gpu_ns, of a known kernel or graph node
  std::int64_t gpu_placed_ns = 0;  // of gpu_ns, both
  std::int64_t gpu_module_ns = 0;  // of gpu_ns, of a known module
  std::int64_t estimated_ns = 0, estimated_placed_ns = 0, estimated_kernels = 0;  // not recorded node by node
  std::int64_t graphs = 0, graph_launches = 0, graph_launches_by_node = 0;
  std::int64_t kernels_without_launch = 0;  // on a GPU: placed by when they began
};

struct DeviceCard {
  std::string kind, name, chip, driver, uuid;
  std::int64_t units = 0, memory_bytes = 0, cache_bytes = 0;
  std::int64_t kernel_ns = 0;  // durations of what it executed; a graph launch without recorded nodes as a whole
  bool idle = false;           // of another kind than the busiest, or executed less than 1 % of what that one did
  std::optional<double> peak_flops, peak_bandwidth;  // FLOP/s of the run's arithmetic type; B/s
  std::string peak_flops_method, peak_bandwidth_method, type;
  std::string peak_flops_source, peak_bandwidth_source;  // "measured", "spec"
  std::string peak_bandwidth_name;                       // if it was measured: "triad, the fastest of 4 streams"
};

// Efficiency of something that ran: a stage, a module, an operator.
struct Efficiency {
  std::optional<double> flops, flops_shapes, bytes;  // model FLOPs, FLOPs from BLAS shapes, bytes that must move
  std::optional<double> compute_ns;  // of the FLOPs on one device, each type of arithmetic at its own peak
  std::optional<double> flops_per_s, flops_shapes_per_s, bytes_per_s, mfu, mbu;
  std::optional<double> recomputed_flops, hfu;  // of the forward pass, on the way back; flops and these, of the peak
  std::optional<double> intensity;              // flops / bytes
  std::optional<bool> above_ridge;              // intensity of more than peak FLOP/s / peak bandwidth
  std::optional<double> floor_ns;               // least time at peak rates
  // Where sequences differ in length and only sums are known, all of these are at least so much; at most:
  bool at_least = false;
  std::optional<double> flops_most, bytes_most, floor_most_ns;
  std::optional<double> of_floor;             // floor_ns / time: the share of the possible speed that was reached
  std::optional<double> reached_flops_per_s;  // flops_per_s, else flops_shapes_per_s
  std::string bound;                          // "compute", "memory", "unknown"
  std::string why;                            // why something above is unknown; "" if nothing is
};

}  // namespace llmprof::analyze
template <>
inline constexpr bool llmprof::base::kFieldsInline<llmprof::analyze::Efficiency> = true;
namespace llmprof::analyze {

struct Stage {
  std::string name;
  std::string source;  // "declared", "inferred"
  double confidence = 1;
  std::int64_t steps = 0, kernels = 0;
  std::int64_t measured_steps = 0;  // of these, slowed down by hardware counters: left out of percentiles
  std::int64_t warm_up_steps = 0, warm_up_ns = 0;  // of these, in which the program warms up: left out, too
  std::int64_t time_ns = 0;                        // union of its step windows
  std::int64_t steady_steps = 0, steady_ns = 0;    // without the warm-up; all of them where all are
  double steady_share = 0;                         // steady_ns of Coverage::wall_ns
  std::optional<double> steady_busy;               // as busy, of these
  double ranks_at_once = 1;                        // that made its steps at the same time, on the mean
  std::int64_t steps_ns = 0;                  // durations of its steps, added up; more than time_ns where steps overlap
  double share = 0;                           // time_ns of Coverage::wall_ns
  std::int64_t device_busy_ns = 0;            // union of kernel intervals inside, per device, added up
  std::int64_t idle_ns = 0;                   // time_ns of every device of the job, less device_busy_ns
  std::optional<double> busy;                 // device_busy_ns of both
  std::int64_t tokens = 0;                    // new tokens over all sequences, those of one rank of each model copy
  std::int64_t checked = 0, least_taken = 0;  // tokens that a draft proposed, and how many of them are one a sequence
  std::int64_t kernel_ns = 0, estimated_ns = 0;  // durations of its kernels; of that, estimated
  std::int64_t graph_launches = 0, graph_launches_by_node = 0;
  std::int64_t gap_ns = 0;  // of its steps' windows, not recorded
  std::optional<double> tokens_per_s;
  std::optional<std::int64_t> ttft_ns, ttft_p90_ns, ttft_p99_ns, cold_ttft_ns;  // ttft_ns: the median of `prefills`
  std::int64_t prefills = 0;
  std::optional<std::int64_t> step_p50_ns, step_p90_ns, step_p99_ns;  // step durations
  std::optional<std::int64_t> tpot_p50_ns, tpot_p90_ns, tpot_p99_ns;  // decode: begin to begin
  // What tables show: of decode the time per output token, of stages whose steps make no tokens that of a step.
  std::optional<std::int64_t> latency_p50_ns, latency_p90_ns, latency_p99_ns;
  std::string label;  // its name, with * where the program did not declare it, with ? where it is a guess
  Efficiency efficiency;

  bool declared() const { return source == "declared" && confidence >= 1; }
  bool guessed() const { return confidence < kCertainStage; }
  bool makes_tokens() const { return name == "prefill" || name == "decode"; }
  bool times_steps() const { return !makes_tokens() && steps > 1; }
  double at_pace_ns() const;  // its time, steps of warm-up as long as the others: what rates refer to
};

// Time of a stage's steps that belongs to no module: shown, not hidden.
struct Unmatched {
  std::string stage;
  std::int64_t time_ns = 0;            // of the steps, less the self times of the modules
  double share = 0;                    // of the stage's steps_ns
  std::int64_t kernels = 0;            // in the steps, without a module
  std::int64_t kernel_ns = 0;          // their durations
  std::optional<double> flops_shapes;  // of the BLAS calls among them
};

struct Product {  // a matrix product [m, k] x [k, n] that an operator asked of BLAS
  std::int64_t m = 0, n = 0, k = 0, batch = 1, calls = 0, time_ns = 0;
  std::string shape;  // "[256, 768] x [768, 3072]"
  std::optional<double> flops_per_s;
};

struct Part {  // a module or an operator within a stage
  std::string name, stage;
  std::string op;  // of a module: the operator that it is of
  std::int64_t calls = 0, total_ns = 0, self_ns = 0, kernel_ns = 0;
  std::optional<std::int64_t> host_ns;  // self_ns where its ranges were seen
  std::int64_t estimated_ns = 0;        // of kernel_ns, in graph launches that were not recorded node by node
  std::int64_t time_ns =
      0;               // what the rates refer to: total_ns or, on a GPU, the time of its kernels and those inside it
  double share = 0;    // self_ns of the stage's steps_ns; on a GPU kernel_ns of the stage's kernel_ns
  std::string source;  // "range", "shape" (told from the shapes of BLAS calls), "position" (from where among them)
  Efficiency efficiency;
  std::vector<Product> products;  // of an operator, most time first; modules leave it empty
};

struct GemmShape {
  std::string library, function, type, compute_type, epilogue, algorithms, stage;
  std::int64_t m = 0, n = 0, k = 0, batch = 1, calls = 0, time_ns = 0;
  std::int64_t estimated_ns = 0;  // of time_ns
  std::int64_t shared_ns = 0;     // of time_ns: of kernels that computed other shapes, too; shared by FLOPs
  std::string peak_type;          // whose peak of_peak refers to
  std::string ops;                // operators that used it, most time first
  std::optional<double> flops_per_s, bytes_per_s, of_peak;
  std::string label;  // the function with its batch and epilogue, and its type where that is not the run's own
  std::string why;    // why of_peak is unknown
};

struct Block {  // a layer, or a part of the model outside the layers
  struct InStage {
    std::string stage;
    std::int64_t calls = 0, total_ns = 0;
  };
  std::string name;  // "h.3", "lm_head"
  std::vector<InStage> stages;
};

struct TrainingStep {
  std::int64_t number = 0, begin_ns = 0;
  std::int64_t forward_ns = 0, backward_ns = 0, optimizer_ns = 0;  // durations of its stages
  std::int64_t total_ns = 0;                                       // begin of the first to end of the last
  std::int64_t between_ns = 0;                                     // of total_ns, outside these stages
  std::int64_t tokens = 0;                                         // of its forward passes; 0: unknown
  std::int64_t process_id = 0, thread_id = 0;
};

struct StepSeries {  // the training steps that one thread made, in order of time
  std::int64_t process_id = 0, thread_id = 0;
  std::vector<TrainingStep> steps;
};

struct Summary {
  Coverage coverage;
  std::vector<Loss> losses;
  std::vector<DeviceCard> devices;
  std::string model;         // the model's JSON, "" if unknown
  std::string model_why;     // why it is unknown or not understood
  std::string model_source;  // "option", "given", "declared", "opened", "shapes", "products": how it is known
  std::string model_origin;  // the same in words, with the file or name
  std::string model_note;    // other candidates, types as executed; may be empty
  std::string model_family;
  std::optional<std::int64_t> parameters;
  std::optional<double> weights_read_bytes;  // by one pass
  bool weights_fit_cache = false;            // then MBU says nothing and is left out
  bool on_gpu = false;                       // the busiest device is no CPU: parts are measured by their kernels
  std::int64_t busy_devices = 0;             // of the busiest one's kind that are not idle
  Job job;
  std::optional<double> peak_flops, peak_bandwidth;  // of these together: what MFU and MBU refer to
  std::vector<Stage> stages;
  std::vector<Part> modules;         // per stage and path
  std::vector<Part> ops;             // per stage and operator
  std::vector<Unmatched> unmatched;  // per stage, in their order; only where there are modules
  std::optional<double> ridge;       // FLOP/B: peak FLOP/s / peak bandwidth of the first device
  std::vector<GemmShape> gemms;
  std::vector<RangeNode> range_tree;  // empty where all ranges are llmprof's own annotations
  std::vector<Block> blocks;          // in the order of their first call; empty without layers
  std::vector<StepSeries> training;   // empty without training steps
  std::vector<StepCurve> step_curves;
  std::vector<StageIdle> idle;        // of stages whose device idled
  std::vector<Waterfall> waterfalls;  // of the stages that the model analysis has formulas for
  Gpu gpu;
  Host host;
  Life life;
  CollectorCost cost;
  Telemetry telemetry;
  DeviceMemories device_memory;
  Allocators allocators;
  Metrics metrics;
  Requests requests;
  Imported imported;
  Counters counters;
  Diagnosis diagnosis;
};

// Parts of a summary beside what it always says of the run, its devices and its model. Whoever reads only some of them
// asks for these; what they need comes with them.
enum class Section : std::uint8_t {
  kStages,
  kParts,  // modules, ops, unmatched
  kGpu,
  kCost,
  kHost,
  kLife,
  kSteps,  // blocks, range_tree, training, step_curves
  kIdle,
  kWaterfalls,
  kTelemetry,
  kMemory,  // device_memory, allocators
  kMetrics,
  kRequests,
  kImported,
  kCounters,
  kDiagnosis,
};

struct Options {
  std::string model = {};     // name or path; overrides the model the run knows
  std::string by = {};        // GPU time by "line", "function" or "stack"; "" not wanted
  std::string parallel = {};  // how ranks divide the model, "tp=2"; overrides what the run knows
  std::string ranges = {};    // file of rules for names of ranges; "": llmprof.toml of the current folder, if there
  std::optional<double> price_per_hour = {};  // of a device; costs are unknown without
  std::string engine = {};  // how requests are scheduled, "vllm@0.19 max_num_seqs=64"; overrides what the run says
  std::vector<Section> sections = {};  // empty: all
};

// What the run lost or did not see, the worst first.
Result<std::vector<Loss>> read_losses(const trace::Run& run);

// Makes the derived tables if they are not there, then fills what was asked for.
Result<Summary> summarise(trace::Run& run, const Options& options, const base::Progress& progress = base::no_progress);

}  // namespace llmprof::analyze

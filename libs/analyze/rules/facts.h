#pragma once
// What rules need to know beyond the summary, gathered once per run by SQL and native passes: one struct per subject.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/context.h"
#include "analyze/measures/measured_findings.h"
#include "analyze/summary.h"
#include "trace/run.h"

namespace llmprof::analyze {

// The first element whose field has this value; nullptr if there is none.
template <class T, class Value, class Field>
const T* find_by(const std::vector<T>& all, const Value& value, Field T::*field) {
  const auto found = std::ranges::find(all, value, field);
  return found == all.end() ? nullptr : &*found;
}

// Kernels of some steps of each stage, in the order in which the devices executed them. At most 128 steps of a stage
// are read (sql/step_kernels), evenly chosen, so that a long run costs no more than a short one.

struct StepKernel {
  std::int64_t step_id = 0, device_id = 0, stream = 0, begin_ns = 0, end_ns = 0;
  std::int64_t stage = 0, name = 0, op = 0;  // codes into StepKernels::names
  bool product = false;                      // of a BLAS call
  bool estimated = false;                    // a node of a graph launch that was not recorded node by node

  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

struct StepKernels {
  std::vector<StepKernel> kernels;         // by step, device, stream, begin
  std::vector<std::string> names;          // code -> text
  std::map<std::string, double> scale;     // per stage: its steps / those that were read
  std::map<std::string, std::int64_t> of;  // per stage: steps that were read

  const std::string& text(std::int64_t code) const { return names[code]; }
};

// Of GPUs only; stages load and warm-up are left out.
Result<StepKernels> read_step_kernels(const trace::Run& run);

// What kernels do, told from their names.
bool moves_elements(std::string_view kernel);  // element-wise, copy, index, concatenate, norm, plain reduction
bool is_attention(std::string_view kernel);
bool is_collective(std::string_view kernel);
bool is_product(std::string_view kernel);  // a matrix product

// Memory of devices that is allocated and freed inside steps.

struct StageAllocations {
  std::string stage;
  std::int64_t steps = 0;                                 // of the stage, the first of each process left out
  std::int64_t steps_allocating = 0;                      // of these, with an allocation or a release of device memory
  std::int64_t allocations = 0, releases = 0, bytes = 0;  // in them
  std::optional<std::int64_t> calls_ns;  // in calls that allocate or free; nullopt: calls were not recorded
};

struct AllocationFacts {
  std::int64_t recorded = 0;  // allocations of device memory in the run, tensors of a memory snapshot left out
  std::vector<StageAllocations> stages;
};

// Runs of element-wise kernels that follow each other on a stream: each reads what the one before wrote, so one kernel
// could do the work of all.

// Chains of a stage between the same two operators, all steps.
struct ChainGroup {
  std::string after, before;           // operator, "attention", or the kernel; "" begin or end of the step
  double chains = 0, kernels = 0;      // of all steps
  double time_ns = 0, longest_ns = 0;  // of their kernels; of the longest of each chain
  double idle_ns = 0;                  // between the kernels of a chain

  double gain_ns() const { return time_ns - longest_ns + idle_ns; }
};

struct StageChains {
  std::string stage;
  std::int64_t steps_read = 0;
  double steps = 0;
  double kernels = 0;              // of all steps, of any kind
  double element_kernels = 0;      // of these, element-wise ones, in chains or not
  bool estimated = false;          // times of some are estimated (nodes of graphs)
  std::vector<ChainGroup> groups;  // most to gain first

  ChainGroup total() const;
};

inline constexpr std::int64_t kChainGapNs = 100'000;  // a longer pause has another cause than the launch of a kernel

std::vector<StageChains> chains_of(const StepKernels& kernels);

// Copies between host and device, per stage, direction and kind of host memory.

struct StageCopies {
  std::string stage, direction, host_memory;  // "pageable", "pinned", "managed"; "" unknown
  std::int64_t copies = 0, steps = 0, bytes = 0, largest_bytes = 0, time_ns = 0;
  std::int64_t call_ns = 0;  // host time inside the calls that asked for them
};

struct HostCopies {
  std::vector<StageCopies> stages;
  std::map<std::string, double> pinned_rate;  // by direction: B/s of the fastest large copy of the run
};

// Matrix products of experts (modules `….experts.N`), layer by layer.

struct StageExperts {
  std::string stage;
  std::int64_t layers = 0, experts = 0;  // experts of a layer that had tokens at any time
  std::int64_t passes = 0;               // of layers: steps x layers
  double most_rows = 0, mean_rows = 0;   // tokens of the busiest expert of a pass, and of a mean one; means over passes
  std::string worst_layer;               // with the highest ratio of the two
  double worst_ratio = 0;
  std::int64_t devices = 0;                // that executed experts
  double time_ns = 0;                      // of their kernels
  double slowest_ns = 0, balanced_ns = 0;  // of the busiest device of each pass, and of a mean one; added up
};

// Sizes for which CUDA graphs were captured, and the sizes they were launched for.

// Launches of graphs of one size for steps of one size; only of steps that say their size and launch one graph.
struct GraphBucket {
  std::string stage;
  std::int64_t captured_rows = 0;  // rows of most matrix products of the graph
  std::int64_t rows = 0;           // batch x tokens of the step
  std::int64_t launches = 0, time_ns = 0, median_ns = 0;
};

// Calls in which the host waits for a device: what `llmprof record --gpu waits` and most imported traces bring.

struct StageWaits {
  std::string stage;
  std::string function;                            // that took most time
  std::int64_t calls = 0, steps = 0, time_ns = 0;  // steps: with at least one call of that function
};

struct HostWaits {
  bool recorded = false;  // calls of the device's API were recorded at all
  std::vector<StageWaits> stages;
};

// Decode steps that had to wait for, or share the device with, the prefill of other requests.

struct InterferenceFacts {
  std::int64_t prefills = 0;     // steps of stage prefill or mixed
  std::int64_t intervals = 0;    // end to end of two steps of a thread that each make a token (decode, mixed)
  std::int64_t interrupted = 0;  // of these, the later step is mixed, or a prefill lay between or beside it
  std::int64_t clean_p50_ns = 0, interrupted_p50_ns = 0, p99_ns = 0;  // of the others; of these; of all
  std::int64_t all_ns = 0;                                            // of all intervals
  std::int64_t extra_ns = 0;                                          // of the interrupted ones, above clean_p50_ns
};

struct PassStep {  // one step of a thread; by thread and begin
  std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0, batch = 0, context = 0;  // 0: unknown
  enum class Kind : std::uint8_t { kDecode, kMixed, kPrefill, kOther } kind = Kind::kOther;
};

InterferenceFacts interference_of(const std::vector<PassStep>& steps);

// How kernels were launched: blocks, threads, registers, shared memory; and how many of their blocks fit a
// multiprocessor at once.

// What one multiprocessor holds at most. NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability"; reserved shared memory and granularities as Nsight Compute's occupancy limits show them.
struct SmLimits {
  std::int64_t warps = 0, blocks = 0, registers = 0, shared_bytes = 0, reserved_per_block = 0;
};
std::optional<SmLimits> sm_limits(std::string_view chip);  // "sm_90", "compute capability 9.0", "Hopper"

struct Occupancy {
  std::int64_t blocks = 0;  // that fit one multiprocessor
  double occupancy = 0;     // their warps, of those that fit
  std::string limiter;      // "registers", "shared memory", "threads of a block", "number of blocks"
};
// Of each kernel the shape that took most time; measured launches on GPUs only, the 200 that took most.
struct LaunchShape {
  std::string kernel;
  std::int64_t device_id = 0, units = 0;  // multiprocessors of the device; 0 unknown
  std::string chip;
  std::int64_t launches = 0, time_ns = 0;        // of the kernel with this shape
  std::int64_t blocks = 0, threads = 0;          // of the grid; of a block
  std::int64_t registers = 0, shared_bytes = 0;  // per thread; per block
};
Occupancy occupancy_of(const LaunchShape& shape, const SmLimits& limits);

// How the host brings work to a device, per stage.

struct StageLaunches {
  std::string stage;
  std::int64_t launches = 0;            // kernels launched one by one; graph launches stand in Stage
  std::int64_t timed = 0, call_ns = 0;  // of these, with a known launching call; host time inside them
};

// How a program spends the time before the model is ready.

struct LoadFacts {
  bool declared = false;  // a stage `load`; else from the begin of the process to its first step
  std::int64_t process_id = 0, thread_id = 0, begin_ns = 0, end_ns = 0;  // 0: there are no steps
  std::optional<std::int64_t> thread_cpu_ns;   // of the loading thread, by samples of its stack
  std::optional<std::int64_t> process_cpu_ns;  // of all threads of the process
  std::optional<std::int64_t> read_bytes;      // from storage
  std::optional<std::int64_t> major_faults;
  std::optional<std::int64_t> involuntary_switches;  // of all threads: somebody else got the core
  std::int64_t copies = 0, copied_bytes = 0, pageable_bytes = 0, copy_ns = 0;  // host to device
  std::optional<double> best_copy_rate;                                        // B/s, of one copy of 1 MB or more
  std::string function;       // that most of the loading thread's samples are in, a Python one where known
  double function_share = 0;  // of the thread's samples

  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

// What comes after the last layer: logits, and the choice of the next token.

struct StageLogits {
  std::string stage;
  double steps = 0;        // all of the stage
  double head_ns = 0;      // products that make the logits, all steps
  double after_ns = 0;     // kernels behind them in the same step
  double kernels_ns = 0;   // all kernels of the stage's steps
  double shortest_ns = 0;  // kernel of the stage: what launching one takes at least
  double after_kernels = 0;
  std::vector<std::string> names;  // of the kernels behind them, most time first, three at most
  // Rows of logits that a step made, and what it needed; 0 unknown.
  double rows_per_step = 0, batch = 0, tokens = 0;
};

std::vector<StageLogits> logits_of(const StepKernels& kernels);

// What of the model decides about its bytes, without SQL.

struct ModelShape {
  bool known = false;
  std::string weight_type, kv_type;
  double weight_bytes_each = 0, kv_bytes_each = 0;  // of one value
  bool quantized = false;
  std::int64_t layers = 0, heads = 0, kv_heads = 0, head_size = 0;  // attention of the first layer
  bool latent = false;                                              // multi-head latent attention
  double weights_read_bytes = 0;                                    // by a pass over one token
  double kv_bytes_per_token = 0;                                    // kept for each token of a sequence, all layers
};

ModelShape model_shape(const AnalysisContext& analysis);

struct DevicePeak {
  std::string type;  // element type of the arithmetic
  double per_second = 0;
  std::string source;
};

// Bytes that kernels with hardware counters had to move at least, where the matrix product they executed is known.

struct NeededBytes {
  std::string kernel;
  std::int64_t launches = 0;  // with counters and a known product
  double bytes = 0;           // operands and results of these, each once
};

// Copies and collectives of steps, and how much of them ran while no kernel computed.

struct Transfers {
  std::int64_t count = 0, bytes = 0;
  std::int64_t time_ns = 0;     // union per device
  std::int64_t exposed_ns = 0;  // of that, with no other kernel executing on the device
  std::int64_t pageable = 0;    // copies of memory that is not pinned
};

// Stages load and warm-up are left out. Where all transfers together take less than 1 % of every stage, `exposed_ns` is
// `time_ns`: nothing is gained by looking closer.
struct StageOverlap {
  std::string stage;
  Transfers copies, collectives;  // between host and device or devices; collectives of communication libraries
};

// Matrix products with the kernels that executed them: tiles, launches, types.

struct ProductKernel {  // all executions of one shape by one kernel in a stage
  std::string stage, type, compute_type, kernel;
  std::int64_t m = 0, n = 0, k = 0, batch = 1, executions = 0, time_ns = 0;
  std::int64_t blocks = 0, threads = 0, registers = 0, shared_bytes = 0;  // of a launch; 0 unknown

  double flops() const { return 2.0 * m * n * k * batch * executions; }
  double bytes() const;  // operands and result of all executions, in the type of the first operand
};

struct Tile {
  std::int64_t m = 0, n = 0;
};

// "nvjet_sm90_tst_192x192_64x4_…", "…_tilesize128x128x8_…", "ampere_sgemm_128x64_tn": the tile of the result that one
// block computes; nullopt if the name does not say.
std::optional<Tile> tile_of(std::string_view kernel);
bool splits_inner(std::string_view kernel);          // several blocks share one tile
bool without_tensor_cores(std::string_view kernel);  // the name says that it multiplies on plain cores

// A product cut into tiles, and tiles into waves.
struct Tiling {
  Tile tile;
  std::int64_t tiles = 0;  // of all products of one call
  std::int64_t slots = 0;  // tiles that execute at once
  double useful = 0;       // tiles' worth of the result

  std::int64_t waves() const { return (tiles + slots - 1) / slots; }
  double loss() const { return 1 - useful / static_cast<double>(waves() * slots); }
  double last_wave() const {  // how full it is
    const std::int64_t rest = tiles % slots;
    return rest == 0 ? 1 : static_cast<double>(rest) / static_cast<double>(slots);
  }
};

// nullopt where the kernel's name does not tell the tile, or several blocks share one.
std::optional<Tiling> tiling_of(const ProductKernel& product, std::int64_t units, std::int64_t blocks_per_unit);

struct Neighbour {
  std::string side;  // "m", "n"
  std::int64_t size = 0, was = 0, waves = 0;
};
// The size of one side, as little smaller as possible, that needs a wave less; at most an eighth smaller.
std::optional<Neighbour> cheaper_neighbour(const ProductKernel& product, const Tiling& tiling);

// Steps of a distributed job, rank by rank.

struct RankTime {
  std::int64_t rank = 0;
  double own_ns = 0, collective_ns = 0;  // all steps: without collectives, and in them
  std::int64_t slowest_in = 0;           // steps in which it took longest for its own work
};

struct StageRanks {
  std::string stage;
  std::int64_t steps = 0;              // that all ranks made, the first left out
  std::vector<RankTime> ranks;         // by rank
  double slowest_ns = 0, mean_ns = 0;  // own work of the slowest rank of each step, and of a mean one; added up
};

// A step begins where the one before it on its thread has ended, if that is later.
struct RankStep {
  std::string stage;
  std::int64_t number = 0, rank = 0;
  double own_ns = 0, collective_ns = 0;
};
std::vector<StageRanks> ranks_of(const std::vector<RankStep>& steps);

// What the steps of a stage must move and compute, by operator, and how large they are.

struct OperatorBytes {
  std::string stage, op;
  double flops = 0, weight_bytes = 0, kv_bytes = 0, activation_bytes = 0;  // over all steps of the stage

  double bytes() const { return weight_bytes + kv_bytes + activation_bytes; }
};

struct StageBytes {
  std::string stage;
  std::vector<OperatorBytes> operators;
  double batch = 0, tokens = 0, context = 0, largest_context = 0;  // means over the steps; 0 unknown

  OperatorBytes all() const;
};

Result<std::vector<StageBytes>> stage_bytes(const trace::Run& run);

// What another tool's totals say, held against the model: there is no timeline behind them.

struct TotalsFacts {
  MeasuredFindings findings;
  double sync_calls = 0;  // of the call that waits for the device, the one called most
  std::string sync_name;
  double copy_wait_ns = 0;    // host time in aten::copy_, less the device's time for copies; 0 none or unknown
  double device_work_ns = 0;  // the device's time, copies left out
  double pageable_ns = 0;     // the device's time in copies of pageable memory
  double pageable_copies = 0;
};

// Of the table alone; `findings` is left to the caller.
TotalsFacts totals_facts(const MeasuredTable& table);

struct Facts {
  std::optional<bool> torch;  // the program uses PyTorch; nullopt: unknown
  bool windowed = false;      // only a part of the run was recorded
  ModelShape model;
  std::vector<DevicePeak> peaks;  // FLOP/s of the busiest device
  double peak(std::string_view type, double unknown = 0) const;
  std::vector<StageBytes> bytes;
  HostWaits waits;
  std::vector<StageLaunches> launches;
  HostCopies copies;
  std::vector<ProductKernel> products;  // most time first
  std::optional<TotalsFacts> totals;    // only of runs that hold another tool's totals and a known model
  std::vector<StageChains> chains;      // by stage, as the lists below
  std::vector<StageLogits> logits;      // only stages with an operator lm_head
  std::vector<StageOverlap> overlaps;   // only stages with copies or collectives
  LoadFacts load;
  AllocationFacts allocations;
  std::vector<LaunchShape> launch_shapes;  // of kernels, most time first
  std::vector<NeededBytes> needed_bytes;   // of counted kernels that are known matrix products
  std::vector<StageExperts> experts;       // only stages with experts
  InterferenceFacts interference;
  std::vector<GraphBucket> graph_buckets;
  std::vector<StageRanks> ranks;  // empty with fewer than two ranks
};

Result<Facts> gather_facts(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary);

}  // namespace llmprof::analyze

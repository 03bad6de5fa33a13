#pragma once
// Rows that analysis makes from facts. As for facts, a member is a column and is described in derived_tables.cpp.

#include "trace/row_types.h"

namespace llmprof::trace {

// One pass over the model.
struct StepRow {
  Id id = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t turn_ns = 0;
  Name stage;
  std::int64_t number = 0;
  Id process_id = 0;
  Id thread_id = 0;
  OptionalId range_id;
  OptionalInt batch, tokens, context, rows, contexts, contexts_most;
  OptionalId pass_id;
  std::int64_t device_busy_ns = 0;
  std::int64_t stage_busy_ns = 0;
  std::int64_t kernels = 0;
  std::int64_t kernel_ns = 0;
  Name source;
  double confidence = 1;
  bool warm_up = false;
};

// Where one kernel belongs.
struct AttributionRow {
  Id kernel_id = 0;
  OptionalId range_id;
  OptionalId step_id;
  Name stage;
  Name module;
  Name op;
  Name module_source;
  OptionalId gemm_id;
  bool gemm_call = false;
  Name source;
  double confidence = 1;
};

// Kernels that are alike, added up. Of the same kind there may be several rows: a pass of bounded memory made them.
struct KernelSumRow {
  Name stage;
  bool in_step = false;
  Name module;
  Name op;
  Name module_source;
  Name name;
  Id device_id = 0;
  OptionalId gemm_id;
  OptionalId graph_node_id;
  OptionalId stack_id;
  bool estimated = false;
  std::int64_t kernels = 0;
  std::int64_t gemm_calls = 0;
  std::int64_t time_ns = 0;
  std::int64_t launches = 0;
  std::int64_t timed_launches = 0;
  std::int64_t launch_ns = 0;
};

// Ranges that are alike, added up.
struct RangeSumRow {
  Name kind;
  Name stage;
  bool in_step = false;
  OptionalId pass_id;
  Name module;
  Name op;
  Id first_range = 0;
  std::int64_t ranges = 0;
  std::int64_t steps = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
};

// Where one graph launch belongs.
struct LaunchPlaceRow {
  Id graph_launch_id = 0;
  OptionalId range_id;
  OptionalId step_id;
  Name stage;
  Name source;
  double confidence = 1;
};

// What one graph node stands for, whichever launch executes it.
struct NodePlaceRow {
  Id graph_node_id = 0;
  OptionalId range_id;
  Name module;
  Name op;
  Name module_source;
  OptionalId gemm_id;
  bool gemm_call = false;
  double confidence = 1;
};

// Where one graph node executes in a launch that was not recorded node by node.
struct NodeShareRow {
  Id graph_node_id = 0;
  double begin_share = 0;
  double end_share = 0;
  std::int64_t samples = 0;
  Name basis;
  double confidence = 0;
};

// Where one range belongs, and its host time.
struct RangeTimeRow {
  Id range_id = 0;
  Name kind;
  OptionalId step_id;
  Name stage;
  Name module;
  Name op;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t kernel_ns = 0;
  OptionalId range_tree_id;
};

// How ranges of one name were understood.
struct RangeMeaningRow {
  Name name;
  Name domain;
  Name kind;
  Name stage;
  Name why;
  std::int64_t ranges = 0;
  std::int64_t total_ns = 0;
};

// One place in the tree of ranges: all ranges of a name inside those of the place around it.
struct RangeTreeRow {
  Id id = 0;
  OptionalId parent_id;
  Name name;
  Name kind;
  Name stage;
  std::int64_t ranges = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  std::int64_t kernel_ns = 0;
};

// What owned a part of one step's wall time: every nanosecond of a step has one owner.
struct StepTimeRow {
  Id step_id = 0;
  Name owner;
  Name op;
  std::int64_t time_ns = 0;
  OptionalInt after_ns;
};

// Time of steps, and between them, in which nothing executed or was queued, by what the host was in.
struct IdlePlaceRow {
  Name stage;
  bool warm_up = false;
  Name owner;
  Name place;
  std::int64_t stretches = 0;
  std::int64_t time_ns = 0;
};

// Where one stack sample belongs.
struct SamplePlaceRow {
  Id sample_id = 0;
  OptionalId range_id;
  OptionalId step_id;
  OptionalId idle_in_step;
  Name stage;
  Name module;
  Name op;
  Name source;
  double confidence = 1;
};

// A function that stack samples show to be a part of a training loop, and what it stands for.
struct SampledStageRow {
  Id process_id = 0;
  Id thread_id = 0;
  Name function;
  Name caller;
  Name stage;
  std::int64_t samples = 0;
  std::int64_t time_ns = 0;
  OptionalInt passes;
  std::int64_t changes = 0;
};

// Static analysis of one operator of the model in one kind of pass.
struct ModelOpRow {
  Id pass_id = 0;
  std::int64_t batch = 0, tokens = 0, context = 0;
  Name module;
  Name op;
  double flops = 0;
  double weight_bytes = 0;
  double kv_bytes = 0;
  double activation_bytes = 0;
  OptionalDouble flops_most, bytes_most;
  double recomputed_flops = 0;
  OptionalDouble compute_ns;
};

template <>
const Table& table_of<StepRow>();
template <>
const Table& table_of<AttributionRow>();
template <>
const Table& table_of<KernelSumRow>();
template <>
const Table& table_of<RangeTimeRow>();
template <>
const Table& table_of<StepTimeRow>();
template <>
const Table& table_of<IdlePlaceRow>();
template <>
const Table& table_of<SamplePlaceRow>();
template <>
const Table& table_of<SampledStageRow>();
template <>
const Table& table_of<ModelOpRow>();
template <>
const Table& table_of<LaunchPlaceRow>();
template <>
const Table& table_of<NodePlaceRow>();
template <>
const Table& table_of<NodeShareRow>();

}  // namespace llmprof::trace

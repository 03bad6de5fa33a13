// The derived tables: what analysis computed from the facts. They can be deleted and are then computed again.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<StepRow>() {
  using R = StepRow;
  static const Table table{
      "step",
      TableKind::kDerived,
      "one pass over the model",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the step in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it began."),
          column(&R::end_ns, "end_ns", "ns",
                 "When it ended: the later of its range's end and the end of the last kernel launched in it."),
          column(&R::turn_ns, "turn_ns", "ns",
                 "When its turn came: its begin, or the end of the steps before it on its thread where the host ran "
                 "ahead of the device."),
          column(&R::stage, "stage", "",
                 "prefill, decode, mixed, draft, verify, encode, load, warm-up, forward, backward, optimizer or "
                 "another name."),
          column(&R::number, "number", "", "Place among the steps of its stage and process, from 0."),
          column(&R::process_id, "process_id", "", "The process image that made it."),
          column(&R::thread_id, "thread_id", "", "The thread that made it."),
          column(&R::range_id, "range_id", "", "The range that declared it; NULL if it was inferred."),
          column(&R::batch, "batch", "", "Sequences worked on together; NULL if unknown."),
          column(&R::tokens, "tokens", "tokens", "New tokens per sequence; NULL if unknown."),
          column(&R::context, "context", "tokens",
                 "Length of each sequence, the new tokens included; NULL if unknown."),
          column(&R::rows, "rows", "tokens",
                 "New tokens of all sequences, where tokens of each are unknown or differ; else NULL."),
          column(&R::contexts, "contexts", "tokens",
                 "Lengths of all sequences added up, where context is unknown: at least. NULL if unknown."),
          column(&R::contexts_most, "contexts_most", "tokens",
                 "The same, at most. NULL where nothing bounds it, or context is known."),
          column(&R::pass_id, "pass_id", "", "The kind of pass in model_op; NULL if the model is unknown."),
          column(&R::device_busy_ns, "device_busy_ns", "ns",
                 "Time in its window with at least one kernel executing, added over the devices of its rank; where the "
                 "busiest is a GPU, CPUs do not count."),
          column(&R::stage_busy_ns, "stage_busy_ns", "ns",
                 "The same, but only where no earlier step of the stage is still running: adds up to the busy time of "
                 "the stage."),
          column(&R::kernels, "kernels", "", "Kernels that belong to it, estimated ones included."),
          column(&R::kernel_ns, "kernel_ns", "ns", "Their durations, added up."),
          column(&R::source, "source", "", "declared (by a range) or inferred."),
          column(&R::confidence, "confidence", "fraction", "How sure the inference is; 1 when declared."),
          column(&R::warm_up, "warm_up", "",
                 "Whether the program still warmed up: it took much longer than steps of its kind later did."),
      }};
  return table;
}

template <>
const Table& table_of<AttributionRow>() {
  using R = AttributionRow;
  static const Table table{
      "attribution",
      TableKind::kDerived,
      "where one kernel belongs",
      "",
      "",
      sizeof(R),
      {
          column(&R::kernel_id, "kernel_id", "", "The kernel."),
          column(&R::range_id, "range_id", "",
                 "The innermost range that launched it or, in a graph, in which its node was captured; NULL if none."),
          column(&R::step_id, "step_id", "", "The step it belongs to; NULL if none."),
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it belongs to; NULL if unknown."),
          column(&R::op, "op", "", "Operator it belongs to; NULL if unknown."),
          column(&R::module_source, "module_source", "",
                 "How the module is known: range, shape (of the BLAS call, matched to the model) or position (between "
                 "such calls); "
                 "NULL if it is not."),
          column(&R::gemm_id, "gemm_id", "", "The BLAS call it executed, or a part of it; NULL if none."),
          column(&R::gemm_call, "gemm_call", "",
                 "Whether it stands for that call: one kernel of each execution of a call does, so they count calls."),
          column(&R::source, "source", "", "declared or inferred (step or module)."),
          column(&R::confidence, "confidence", "fraction", "How sure the attribution is; 1 when declared."),
      }};
  return table;
}

template <>
const Table& table_of<KernelSumRow>() {
  using R = KernelSumRow;
  static const Table table{
      "kernel_sum",
      TableKind::kDerived,
      "kernels that are alike, added up; several rows may be of the same kind",
      "",
      "",
      sizeof(R),
      {
          column(&R::stage, "stage", "", "The stage they belong to; NULL if none."),
          column(&R::in_step, "in_step", "", "Whether they belong to a step."),
          column(&R::module, "module", "", "Path of the model's part they belong to; NULL if unknown."),
          column(&R::op, "op", "", "Operator they belong to; NULL if unknown."),
          column(&R::module_source, "module_source", "", "How the module is known, as in attribution."),
          column(&R::name, "name", "", "Their name."),
          column(&R::device_id, "device_id", "", "The device that executed them."),
          column(&R::gemm_id, "gemm_id", "", "The BLAS call they executed, or parts of it; NULL if none."),
          column(&R::graph_node_id, "graph_node_id", "", "The node of a graph they executed; NULL if none."),
          column(&R::stack_id, "stack_id", "", "The stack that launched them; NULL if unknown."),
          column(&R::estimated, "estimated", "", "Whether their times are estimated, as in kernel."),
          column(&R::kernels, "kernels", "", "How many they are."),
          column(&R::gemm_calls, "gemm_calls", "", "How many of them stand for a BLAS call."),
          column(&R::time_ns, "time_ns", "ns", "Their durations, added up."),
          column(&R::launches, "launches", "", "How many of them the host launched one by one into a stream."),
          column(&R::timed_launches, "timed_launches", "", "Of these launches, those whose end is known."),
          column(&R::launch_ns, "launch_ns", "ns", "Host time inside these launching calls, added up."),
      }};
  return table;
}

template <>
const Table& table_of<RangeTimeRow>() {
  using R = RangeTimeRow;
  static const Table table{
      "range_time",
      TableKind::kDerived,
      "where one range belongs, and its time",
      "",
      "",
      sizeof(R),
      {
          column(&R::range_id, "range_id", "", "The range."),
          column(&R::kind, "kind", "",
                 "stage, step or module: what it stands for; NULL for a range without such a meaning."),
          column(&R::step_id, "step_id", "", "The step it belongs to; NULL if none."),
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it stands for or lies in; NULL if unknown."),
          column(&R::op, "op", "", "Operator it stands for; NULL if unknown."),
          column(&R::total_ns, "total_ns", "ns", "Time from its begin to its end."),
          column(&R::self_ns, "self_ns", "ns", "Time in it and in none of the ranges inside it."),
          column(&R::kernel_ns, "kernel_ns", "ns", "Durations of the kernels launched directly in it, added up."),
          column(&R::range_tree_id, "range_tree_id", "", "Its place in range_tree."),
      }};
  return table;
}

template <>
const Table& table_of<RangeSumRow>() {
  using R = RangeSumRow;
  static const Table table{
      "range_sum",
      TableKind::kDerived,
      "ranges that are alike, added up",
      "",
      "",
      sizeof(R),
      {
          column(&R::kind, "kind", "", "What they stand for, as in range_time."),
          column(&R::stage, "stage", "", "The stage they belong to; NULL if none."),
          column(&R::in_step, "in_step", "", "Whether they belong to steps."),
          column(&R::pass_id, "pass_id", "", "What the model computes in their steps, as in step; NULL if unknown."),
          column(&R::module, "module", "", "Path of the model's part they stand for or lie in; NULL if unknown."),
          column(&R::op, "op", "", "Operator they stand for; NULL if unknown."),
          column(&R::first_range, "first_range", "", "The smallest id of them."),
          column(&R::ranges, "ranges", "", "How many they are."),
          column(&R::steps, "steps", "", "In how many steps they lie."),
          column(&R::total_ns, "total_ns", "ns", "Their times from begin to end, added up."),
          column(&R::self_ns, "self_ns", "ns", "Time in them and in none of the ranges inside them, added up."),
      }};
  return table;
}

template <>
const Table& table_of<RangeMeaningRow>() {
  using R = RangeMeaningRow;
  static const Table table{"range_meaning",
                           TableKind::kDerived,
                           "how ranges of one name were understood, and why",
                           "",
                           "",
                           sizeof(R),
                           {
                               column(&R::name, "name", "", "Their name, numbers as '#'."),
                               column(&R::domain, "domain", "", "The domain of the annotation; NULL if none."),
                               column(&R::kind, "kind", "", "What they stand for, as in range_time."),
                               column(&R::stage, "stage", "", "The stage they belong to; NULL if none."),
                               column(&R::why, "why", "", "What says so; NULL if nothing is known of them."),
                               column(&R::ranges, "ranges", "", "How many they are."),
                               column(&R::total_ns, "total_ns", "ns", "Their times from begin to end, added up."),
                           }};
  return table;
}

template <>
const Table& table_of<RangeTreeRow>() {
  using R = RangeTreeRow;
  static const Table table{
      "range_tree",
      TableKind::kDerived,
      "ranges by what they lie in: one row for all of a name inside those of the row around it",
      "",
      "",
      sizeof(R),
      {
          column(&R::id, "id", "", "The row. Rows come after the one around them."),
          column(&R::parent_id, "parent_id", "", "The row around it; NULL if none."),
          column(&R::name, "name", "", "Their name, numbers as '#'."),
          column(&R::kind, "kind", "", "What they stand for, as in range_time, where all of them do."),
          column(&R::stage, "stage", "", "The stage they belong to, where all of them do; NULL if none."),
          column(&R::ranges, "ranges", "", "How many they are."),
          column(&R::total_ns, "total_ns", "ns", "Their times from begin to end on the host, added up."),
          column(&R::self_ns, "self_ns", "ns", "Of these, in none of the ranges inside them."),
          column(&R::kernel_ns, "kernel_ns", "ns",
                 "Durations of the kernels launched in them, what is inside included."),
      }};
  return table;
}

template <>
const Table& table_of<StepTimeRow>() {
  using R = StepTimeRow;
  static const Table table{
      "step_time",
      TableKind::kDerived,
      "what owned a part of one step's wall time; the rows of a step add up to it",
      "",
      "",
      sizeof(R),
      {
          column(&R::step_id, "step_id", "", "The step."),
          column(&R::owner, "owner", "",
                 "kernel, copy, other_kernel, queued, wait, host, gap or between: docs/format/analysis.md, Waterfall."),
          column(&R::op, "op", "", "Operator that a kernel or host code worked for; NULL if unknown."),
          column(&R::time_ns, "time_ns", "ns",
                 "Of the time from the step's begin to its end or, if that is earlier, to the begin of the next step "
                 "that makes a TPOT sample with it."),
          column(&R::after_ns, "after_ns", "ns",
                 "Of the time from its end to the begin of the next, where the two make a TPOT sample; else NULL."),
      }};
  return table;
}

template <>
const Table& table_of<IdlePlaceRow>() {
  using R = IdlePlaceRow;
  static const Table table{
      "idle_place",
      TableKind::kDerived,
      "time of a GPU's steps, and between them, in which nothing executed or was queued, by what the host was in",
      "",
      "",
      sizeof(R),
      {
          column(&R::stage, "stage", "", "The stage of the steps."),
          column(&R::warm_up, "warm_up", "", "Whether the program still warms up in them."),
          column(&R::owner, "owner", "", "gap: inside a step; between: after it, as in step_time."),
          column(
              &R::place, "place", "",
              "Operator of the innermost module open on the step's thread, else the innermost range, numbers as '#'; "
              "NULL if none."),
          column(&R::stretches, "stretches", "", "How often."),
          column(&R::time_ns, "time_ns", "ns", "That time, added up."),
      }};
  return table;
}

template <>
const Table& table_of<SamplePlaceRow>() {
  using R = SamplePlaceRow;
  static const Table table{
      "sample_place",
      TableKind::kDerived,
      "where one stack sample belongs",
      "",
      "",
      sizeof(R),
      {
          column(&R::sample_id, "sample_id", "", "The sample."),
          column(&R::range_id, "range_id", "", "The innermost range open on its thread; NULL if none."),
          column(&R::step_id, "step_id", "", "The step it belongs to; NULL if none."),
          column(
              &R::idle_in_step, "idle_in_step", "",
              "The step of its process in which, or after which, nothing executed or was queued at that moment; NULL "
              "if none."),
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it belongs to; NULL if unknown."),
          column(&R::op, "op", "", "Operator it belongs to; NULL if unknown."),
          column(&R::source, "source", "",
                 "declared; inferred: the thread opens no steps and the process was in this one; or sampled: by a "
                 "function on its own stack (sampled_stage)."),
          column(&R::confidence, "confidence", "fraction", "How sure the place is; 1 when declared."),
      }};
  return table;
}

template <>
const Table& table_of<SampledStageRow>() {
  using R = SampledStageRow;
  static const Table table{
      "sampled_stage",
      TableKind::kDerived,
      "a function of a training loop, told by its name and by when stack samples show it",
      "",
      "",
      sizeof(R),
      {
          column(&R::process_id, "process_id", "", "The process."),
          column(&R::thread_id, "thread_id", "", "The thread that goes through the loop."),
          column(&R::function, "function", "", "The function."),
          column(&R::caller, "caller", "", "The function with the loop, which calls it."),
          column(&R::stage, "stage", "",
                 "forward, backward, optimizer, or forward only: not followed by a backward pass."),
          column(&R::samples, "samples", "", "Samples of the thread in it or in what it calls."),
          column(&R::time_ns, "time_ns", "ns", "CPU time of the thread that these stand for."),
          column(&R::passes, "passes", "",
                 "How often the loop came to the stage; NULL if samples are too far apart to tell."),
          column(&R::changes, "changes", "",
                 "How often samples in a forward function are followed by one in a "
                 "backward function."),
      }};
  return table;
}

template <>
const Table& table_of<ModelOpRow>() {
  using R = ModelOpRow;
  static const Table table{
      "model_op",
      TableKind::kDerived,
      "the work of one operator of the model in one kind of pass, by calculation",
      "",
      "pass_id",
      sizeof(R),
      {
          column(&R::pass_id, "pass_id", "", "Number of the kind of pass (batch, tokens, context) in this run."),
          column(&R::batch, "batch", "", "Sequences worked on together."),
          column(&R::tokens, "tokens", "tokens",
                 "New tokens per sequence; where sequences differ, the mean, rounded down."),
          column(&R::context, "context", "tokens",
                 "Length of each sequence, the new tokens included; where sequences differ, the mean of the least, "
                 "rounded down."),
          column(&R::module, "module", "", "Path of the operator's module in the model."),
          column(&R::op, "op", "", "Name of the operator."),
          column(&R::flops, "flops", "FLOP", "Model FLOPs: matrix products only, attention causal; at least."),
          column(&R::weight_bytes, "weight_bytes", "bytes", "Weights that must be read."),
          column(&R::kv_bytes, "kv_bytes", "bytes", "KV cache that must be read or written."),
          column(&R::activation_bytes, "activation_bytes", "bytes", "Activations that cannot stay on chip."),
          column(
              &R::flops_most, "flops_most", "FLOP",
              "Model FLOPs at most: more than flops where only sums of lengths are known. NULL if nothing bounds it."),
          column(&R::bytes_most, "most_bytes", "bytes", "Bytes of weights, KV cache and activations together at most."),
          column(&R::recomputed_flops, "recomputed_flops", "FLOP",
                 "FLOPs of the forward pass that a backward pass computes again; no part of flops."),
          column(&R::compute_ns, "compute_ns", "ns",
                 "Least time of flops on the busiest device, at its peak for their type. NULL if no peak is known."),
      }};
  return table;
}

template <>
const Table& table_of<LaunchPlaceRow>() {
  using R = LaunchPlaceRow;
  static const Table table{
      "launch_place",
      TableKind::kDerived,
      "where one graph launch belongs",
      "",
      "",
      sizeof(R),
      {
          column(&R::graph_launch_id, "graph_launch_id", "", "The launch."),
          column(&R::range_id, "range_id", "", "The innermost range that launched it; NULL if none."),
          column(&R::step_id, "step_id", "", "The step it belongs to; NULL if none."),
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::source, "source", "", "declared or inferred; NULL if it has no stage."),
          column(&R::confidence, "confidence", "fraction", "How sure the place is; 1 when declared."),
      }};
  return table;
}

template <>
const Table& table_of<NodePlaceRow>() {
  using R = NodePlaceRow;
  static const Table table{
      "node_place",
      TableKind::kDerived,
      "what one graph node stands for, whichever launch executes it",
      "",
      "graph_node_id",
      sizeof(R),
      {
          column(&R::graph_node_id, "graph_node_id", "", "The node."),
          column(&R::range_id, "range_id", "", "The innermost range open at its capture; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it belongs to; NULL if unknown."),
          column(&R::op, "op", "", "Operator it belongs to; NULL if unknown."),
          column(&R::module_source, "module_source", "",
                 "How the module is known: range, shape (of the BLAS call, matched to the model) or position (between "
                 "such calls); "
                 "NULL if it is not."),
          column(&R::gemm_id, "gemm_id", "", "The BLAS call it was captured in; NULL if none."),
          column(&R::gemm_call, "gemm_call", "",
                 "Whether it stands for that call: one node of each call in a graph does, so they count calls."),
          column(&R::confidence, "confidence", "fraction", "How sure the module is; 1 when declared."),
      }};
  return table;
}

template <>
const Table& table_of<NodeShareRow>() {
  using R = NodeShareRow;
  static const Table table{
      "node_share",
      TableKind::kDerived,
      "where one graph node executes in a launch that was not recorded node by node, told from launches that were",
      "",
      "graph_node_id",
      sizeof(R),
      {
          column(&R::graph_node_id, "graph_node_id", "", "The node."),
          column(&R::begin_share, "begin_share", "fraction",
                 "When it begins, of the launch's duration; the first node of a graph at 0."),
          column(&R::end_share, "end_share", "fraction", "When it ends; the last node of a graph at 1."),
          column(&R::samples, "samples", "", "Launches it was measured in."),
          column(&R::basis, "basis", "",
                 "same graph; same capture: measured in launches of another executable of the same capture; kernels "
                 "outside: told from the same kernels launched one by one; other graphs: from the same kernels in "
                 "launches of other graphs."),
          column(&R::confidence, "confidence", "fraction", "How sure the share is."),
      }};
  return table;
}

}  // namespace llmprof::trace

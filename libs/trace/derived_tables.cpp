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
          column(&R::end_ns, "end_ns", "ns", "When it ended."),
          column(&R::stage, "stage", "",
                 "prefill, decode, mixed, load, warm-up, forward, backward, optimizer or other."),
          column(&R::number, "number", "", "Place among the steps of its stage and process, from 0."),
          column(&R::process_id, "process_id", "", "The process image that made it."),
          column(&R::thread_id, "thread_id", "", "The thread that made it."),
          column(&R::range_id, "range_id", "", "The range that declared it; NULL if it was inferred."),
          column(&R::batch, "batch", "", "Sequences worked on together; NULL if unknown."),
          column(&R::tokens, "tokens", "tokens", "New tokens per sequence; NULL if unknown."),
          column(&R::context, "context", "tokens",
                 "Length of each sequence, the new tokens included; NULL if unknown."),
          column(&R::pass_id, "pass_id", "", "The kind of pass in model_op; NULL if the model is unknown."),
          column(&R::device_busy_ns, "device_busy_ns", "ns",
                 "Time in its window with at least one kernel executing, added over devices."),
          column(&R::stage_busy_ns, "stage_busy_ns", "ns",
                 "The same, but only where no earlier step of the stage is still running: adds up to the busy time of "
                 "the stage."),
          column(&R::kernels, "kernels", "", "Kernels that belong to it."),
          column(&R::kernel_ns, "kernel_ns", "ns", "Their durations, added up."),
          column(&R::source, "source", "", "declared (by a range) or inferred."),
          column(&R::confidence, "confidence", "fraction", "How sure the inference is; 1 when declared."),
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
          column(&R::range_id, "range_id", "", "The innermost range that launched it; NULL if none."),
          column(&R::step_id, "step_id", "", "The step it belongs to; NULL if none."),
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it belongs to; NULL if unknown."),
          column(&R::op, "op", "", "Operator it belongs to; NULL if unknown."),
          column(&R::module_source, "module_source", "",
                 "How the module is known: range, or shape (of the BLAS call, matched to the model); NULL if it is not."),
          column(&R::gemm_id, "gemm_id", "", "The BLAS call it executed; NULL if none."),
          column(&R::source, "source", "", "declared, inferred (step or module) or estimated."),
          column(&R::confidence, "confidence", "fraction", "How sure the attribution is; 1 when declared."),
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
                 "kernel, copy, other_kernel, wait, host, gap or between: docs/format/analysis.md, Waterfall."),
          column(&R::op, "op", "", "Operator that a kernel or host code worked for; NULL if unknown."),
          column(&R::time_ns, "time_ns", "ns", "Of the time from the step's begin to its end."),
          column(&R::after_ns, "after_ns", "ns",
                 "Of the time from its end to the begin of the next, where the two make a TPOT sample; else NULL."),
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
          column(&R::stage, "stage", "", "The stage it belongs to; NULL if none."),
          column(&R::module, "module", "", "Path of the model's part it belongs to; NULL if unknown."),
          column(&R::op, "op", "", "Operator it belongs to; NULL if unknown."),
          column(&R::source, "source", "",
                 "declared, or inferred: the thread opens no steps and the process was in this one."),
          column(&R::confidence, "confidence", "fraction", "How sure the place is; 1 when declared."),
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
          column(&R::tokens, "tokens", "tokens", "New tokens per sequence."),
          column(&R::context, "context", "tokens", "Length of each sequence, the new tokens included."),
          column(&R::module, "module", "", "Path of the operator's module in the model."),
          column(&R::op, "op", "", "Name of the operator."),
          column(&R::flops, "flops", "FLOP", "Model FLOPs: matrix products only, attention causal."),
          column(&R::weight_bytes, "weight_bytes", "bytes", "Weights that must be read."),
          column(&R::kv_bytes, "kv_bytes", "bytes", "KV cache that must be read or written."),
          column(&R::activation_bytes, "activation_bytes", "bytes", "Activations that cannot stay on chip."),
      }};
  return table;
}

template <>
const Table& table_of<EstimateRow>() {
  using R = EstimateRow;
  static const Table table{
      "estimate",
      TableKind::kDerived,
      "an estimated execution of one graph node in a graph launch that was not measured by node",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the estimate in this run; no kernel has the same."),
          column(&R::graph_launch_id, "graph_launch_id", "", "The launch it is part of."),
          column(&R::graph_node_id, "graph_node_id", "", "The node."),
          column(&R::begin_ns, "begin_ns", "ns", "Estimated begin."),
          column(&R::end_ns, "end_ns", "ns", "Estimated end; the estimates of a launch add up to it."),
          column(&R::confidence, "confidence", "fraction", "How sure the estimate is."),
      }};
  return table;
}

}  // namespace llmprof::trace

// Tables of `llmprof bench`: the points of a sweep, their sizes and their samples.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<BenchRow>() {
  using R = BenchRow;
  static const Table table{
      "bench",
      TableKind::kFact,
      "one point of a benchmark: an operator of one size and type on one device, measured or not",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the point, in the order of the sweep."),
          column(&R::device_id, "device_id", "", "The device it was measured on."),
          column(&R::op, "op", "", "Operator; bench_axis holds its sizes."),
          column(&R::type, "type", "", "Type of its values."),
          column(&R::name, "name", "",
                 "What the point stands for, as the projections of a model; NULL if nobody said."),
          column(&R::implementation, "implementation", "", "Which of the operator's ways was measured; NULL if none."),
          column(&R::method, "method", "", "Library and algorithm, or kernel; NULL if none."),
          column(&R::kernels, "kernels", "",
                 "Names of the kernels that one call launched, in order; NULL on a CPU or if CUPTI did not time them."),
          column(&R::timer, "timer", "", "What took the times: CUPTI, CUDA events or clock; NULL if nothing did."),
          column(&R::cache, "cache", "", "cold or hot: whether the last-level cache held the data."),
          column(&R::status, "status", "", "measured, skipped or failed."),
          column(&R::reason, "reason", "",
                 "Why it was skipped or failed, or what is to be known of a measured one; NULL if nothing is."),
          column(&R::samples, "samples", "", "Samples of the time that were kept."),
          column(&R::mean_ns, "mean_ns", "ns", "Mean of the samples; NULL, as the ten below, if it was not measured."),
          column(&R::median_ns, "median_ns", "ns", "Their median."),
          column(&R::min_ns, "min_ns", "ns", "The shortest."),
          column(&R::max_ns, "max_ns", "ns", "The longest."),
          column(&R::stddev_ns, "stddev_ns", "ns", "Their standard deviation."),
          column(&R::p5_ns, "p5_ns", "ns", "5 % are shorter."),
          column(&R::p95_ns, "p95_ns", "ns", "95 % are shorter."),
          column(&R::p99_ns, "p99_ns", "ns", "99 % are shorter."),
          column(&R::low_ns, "low_ns", "ns", "Lower end of the 95 % confidence interval of the median."),
          column(&R::high_ns, "high_ns", "ns", "Its upper end."),
          column(&R::noisy, "noisy", "", "Whether it ended while the samples still spread too widely."),
          column(&R::stopped_by, "stopped_by", "",
                 "What ended the sampling: spread, entropy, time limit, samples or interrupted; NULL if not measured."),
          column(&R::throttled, "throttled", "", "Samples discarded because the device's clock was low."),
          column(&R::clock_mhz, "clock_mhz", "MHz", "Median clock while the samples were taken; NULL if unknown."),
          column(&R::flops, "flops", "FLOP", "FLOPs of one call by calculation; operations for integer types."),
          column(&R::read_bytes, "read_bytes", "bytes", "Bytes one call must read, by calculation."),
          column(&R::write_bytes, "write_bytes", "bytes", "Bytes one call must write, by calculation."),
          column(&R::floor_ns, "floor_ns", "ns", "Least time at the device's peaks; NULL if none are known."),
          column(&R::bound, "bound", "", "compute, memory or latency: what sets the floor; NULL if unknown."),
          column(&R::denominator, "denominator", "", "The peak that the floor was computed with; NULL if none."),
          column(&R::tensor_bytes, "tensor_bytes", "bytes", "Size of one set of its tensors."),
          column(&R::workspace_bytes, "workspace_bytes", "bytes", "Memory of the device it needed beside them."),
          column(&R::buffer_sets, "buffer_sets", "", "Sets of tensors that calls took turns with."),
          column(&R::error, "error", "fraction",
                 "Distance from the reference, over the length of the reference; NULL if it was not checked."),
          column(&R::event_ns, "event_ns", "ns",
                 "Median by CUDA events, with the gap of the launch: the cross-check; NULL if not taken."),
          column(&R::graph_ns, "graph_ns", "ns", "Per call inside a replayed CUDA graph; NULL if not taken."),
          column(&R::used_calls, "used_calls", "", "With --from: calls of this shape in that run; NULL otherwise."),
          column(&R::used_ns, "used_ns", "ns", "With --from: the time they took there; NULL otherwise."),
          column(&R::begin_ns, "begin_ns", "ns", "When work on the point began."),
          column(&R::end_ns, "end_ns", "ns", "When it ended."),
      }};
  return table;
}

template <>
const Table& table_of<BenchAxisRow>() {
  using R = BenchAxisRow;
  static const Table table{"bench_axis",
                           TableKind::kFact,
                           "one size of one point of a benchmark",
                           "",
                           "bench_id",
                           sizeof(R),
                           {
                               column(&R::bench_id, "bench_id", "", "The point."),
                               column(&R::place, "place", "", "Place among the operator's axes, from 0."),
                               column(&R::axis, "axis", "", "Name of the axis: m, batch, seq."),
                               column(&R::value, "value", "", "Its value."),
                           }};
  return table;
}

template <>
const Table& table_of<BenchSampleRow>() {
  using R = BenchSampleRow;
  static const Table table{"bench_sample",
                           TableKind::kFact,
                           "one sample of one point of a benchmark",
                           "bench_id",
                           "number",
                           sizeof(R),
                           {
                               column(&R::bench_id, "bench_id", "", "The point."),
                               column(&R::number, "number", "", "Place among the samples of the point, from 0."),
                               column(&R::time_ns, "time_ns", "ns", "Time of one call."),
                           }};
  return table;
}

}  // namespace llmprof::trace

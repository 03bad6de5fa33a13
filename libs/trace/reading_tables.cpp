// Fact tables of what was read beside the events: telemetry, counters, requests, and of the recording itself: losses,
// clocks.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<TelemetryRow>() {
  using R = TelemetryRow;
  static const Table table{
      "telemetry",
      TableKind::kFact,
      "one reading of a device's sensor or gauge",
      "",
      "ts_ns",
      sizeof(R),
      {
          column(&R::ts_ns, "ts_ns", "ns", "When it was read."),
          column(&R::device_id, "device_id", "", "The device."),
          column(&R::metric, "metric", "",
                 "What was read: power, energy, clocks, temperature, utilisation, throttle reasons or alike."),
          column(&R::value, "value", "by row", "The reading, in the unit of the column unit."),
          column(&R::unit, "unit", "", "Unit of the value."),
          column(&R::process_id, "process_id", "", "The process image it is about; NULL for the device as a whole."),
      }};
  return table;
}

template <>
const Table& table_of<CounterRow>() {
  using R = CounterRow;
  static const Table table{
      "counter",
      TableKind::kFact,
      "one value of a hardware counter",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the value in this run."),
          column(&R::scope, "scope", "", "What was counted over: kernel, range, graph or sample."),
          column(&R::scope_id, "scope_id", "",
                 "Id of that kernel; of its counter_window, if the kernel was not recorded or it is of another scope."),
          column(&R::metric, "metric", "", "Name of the counter or metric."),
          column(&R::value, "value", "by row", "The value, in the unit of the column unit."),
          column(&R::unit, "unit", "", "Unit of the value."),
          column(&R::method, "method", "", "How it was collected."),
          column(&R::passes, "passes", "", "How often the work was replayed for it."),
          column(&R::spread, "spread", "fraction",
                 "Spread over repetitions, relative to the value; NULL if taken once."),
      }};
  return table;
}

template <>
const Table& table_of<CounterWindowRow>() {
  using R = CounterWindowRow;
  static const Table table{
      "counter_window",
      TableKind::kFact,
      "a stretch of work that hardware counters were read over",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the window in this run."),
          column(&R::counter_window_id, "counter_window_id", "",
                 "The window of the first pass of the same measurement: its id is what counter rows name."),
          column(&R::scope, "scope", "", "range, graph, kernel or sample."),
          column(&R::method, "method", "", "How it was measured: range, kernel or sampled."),
          column(&R::begin_ns, "begin_ns", "ns",
                 "Before its first work was given to the device; of a sample, its begin."),
          column(&R::end_ns, "end_ns", "ns", "When all of its work had ended; of a sample, its end."),
          column(&R::process_id, "process_id", "", "Process that was measured; NULL of a sample."),
          column(&R::thread_id, "thread_id", "", "Thread that was measured; NULL of a sample."),
          column(&R::device_id, "device_id", "", "Device whose counters were read."),
          column(&R::kernel_id, "kernel_id", "", "The kernel, of scope kernel; NULL if it was not recorded."),
          column(&R::graph_launch_id, "graph_launch_id", "",
                 "The launch, of scope graph; NULL if it was not recorded."),
          column(&R::name, "name", "", "Name of the range or kernel; NULL of a graph or sample."),
          column(&R::pass, "pass", "", "Which pass of the measurement, from 0: each took other counters."),
          column(&R::passes, "passes", "", "Passes of the measurement: so many occurrences share its values."),
          column(&R::cost_ns, "cost_ns", "ns", "Time that measuring took from the program here."),
      }};
  return table;
}

template <>
const Table& table_of<StallRow>() {
  using R = StallRow;
  static const Table table{
      "stall",
      TableKind::kFact,
      "how often warps were seen at one place of a kernel's code, for one reason",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the row in this run."),
          column(&R::process_id, "process_id", "", "Process that ran the kernel."),
          column(&R::device_id, "device_id", "", "Device."),
          column(&R::kernel, "kernel", "", "Name of the kernel, as in the table kernel."),
          column(&R::cubin, "cubin", "", "Checksum of the code it is in."),
          column(&R::offset_bytes, "offset_bytes", "bytes", "Place of the instruction, from the begin of the kernel."),
          column(&R::reason, "reason", "", "Why the warp did not issue, as CUPTI names it: long_scoreboard."),
          column(&R::issued, "issued", "", "Whether the scheduler issued an instruction of some warp meanwhile."),
          column(&R::samples, "samples", "", "Samples."),
          column(&R::file, "file", "", "Source file of the instruction; NULL if it is not known."),
          column(&R::line, "line", "", "Line in it; NULL if it is not known."),
      }};
  return table;
}

template <>
const Table& table_of<RequestRow>() {
  using R = RequestRow;
  static const Table table{"request",
                           TableKind::kFact,
                           "one request served by an inference server",
                           "",
                           "arrival_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the request in this run."),
                               column(&R::arrival_ns, "arrival_ns", "ns", "When it arrived."),
                               column(&R::first_token_ns, "first_token_ns", "ns",
                                      "When its first output token was ready; NULL if there was none."),
                               column(&R::end_ns, "end_ns", "ns", "When it was done; NULL if it never was."),
                               column(&R::prompt_tokens, "prompt_tokens", "tokens", "Tokens of the prompt."),
                               column(&R::output_tokens, "output_tokens", "tokens", "Tokens that were produced."),
                               column(&R::status, "status", "", "How it ended."),
                           }};
  return table;
}

template <>
const Table& table_of<LossRow>() {
  using R = LossRow;
  static const Table table{
      "loss",
      TableKind::kFact,
      "one kind of thing that llmprof could not see or store",
      "",
      "id",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the loss in this run."),
          column(&R::process_id, "process_id", "", "The process image it concerns; NULL for the whole run."),
          column(&R::name, "name", "", "Name of the kind of loss."),
          column(&R::severity, "severity", "", "info, degraded or data_loss."),
          column(&R::count, "count", "by row", "How much was lost, in the unit of the column unit."),
          column(&R::unit, "unit", "", "What the count counts."),
          column(&R::meaning, "meaning", "", "What it means."),
          column(&R::remedy, "remedy", "", "What to do about it; NULL if nothing can be done."),
          column(&R::detail, "detail", "", "File, library or error it concerns."),
      }};
  return table;
}

template <>
const Table& table_of<NoteRow>() {
  using R = NoteRow;
  static const Table table{
      "note",
      TableKind::kFact,
      "something about how the run was recorded that a reader should know",
      "",
      "ts_ns",
      sizeof(R),
      {
          column(&R::ts_ns, "ts_ns", "ns", "When it was noted."),
          column(&R::process_id, "process_id", "", "The process image it is about; NULL for the whole run."),
          column(&R::subject, "subject", "", "What it is about: cupti, graphs, stacks, telemetry or alike."),
          column(&R::text, "text", "", "What there is to know."),
      }};
  return table;
}

template <>
const Table& table_of<ClockSyncRow>() {
  using R = ClockSyncRow;
  static const Table table{
      "clock_sync",
      TableKind::kFact,
      "one pair of clock readings: the run's clock and wall time at the same moment",
      "",
      "ts_ns",
      sizeof(R),
      {
          column(&R::ts_ns, "ts_ns", "ns", "Reading of the run's clock."),
          column(&R::wall_ns, "wall_ns", "ns", "Wall time at that moment, since 1970-01-01 UTC."),
          column(&R::error_ns, "error_ns", "ns", "How far apart the two readings may be."),
          column(&R::process_id, "process_id", "", "The process image that read them; NULL for the recorder."),
      }};
  return table;
}

}  // namespace llmprof::trace

// The fact tables: what was observed. One line per column: member, name, unit, meaning.
#include "trace/rows.h"

namespace llmprof::trace {

template <>
const Table& table_of<ProcessRow>() {
  using R = ProcessRow;
  static const Table table{
      "process",
      TableKind::kFact,
      "a process image that was seen, from inside or outside; a process that called exec has one row per image",
      "",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the process image in this run."),
          column(&R::pid, "pid", "", "Process id the system gave it."),
          column(&R::parent_pid, "parent_pid", "", "Process id of its parent."),
          column(&R::host, "host", "", "Host name of the machine it ran on."),
          column(&R::rank, "rank", "", "Its rank in a distributed job, from RANK, LOCAL_RANK, SLURM_PROCID or alike."),
          column(&R::world, "world", "",
                 "Ranks of that job, from WORLD_SIZE, OMPI_COMM_WORLD_SIZE, SLURM_STEP_NUM_TASKS, PMI_SIZE or a "
                 "trace's world_size; NULL if unknown."),
          column(&R::variables, "variables", "",
                 "What launchers and engines said of the job in its environment, as WORLD_SIZE=8 VLLM_DP_SIZE=2."),
          column(&R::executable, "executable", "", "Path of the program."),
          column(&R::arguments, "arguments", "", "Command line with secrets redacted."),
          column(&R::begin_ns, "begin_ns", "ns",
                 "When the image began: of a recorded program its exec, of a process it started when that was made."),
          column(&R::end_ns, "end_ns", "ns",
                 "When the image ended: of a recorded program when its end was seen; NULL if that was not seen."),
          column(&R::exit_status, "exit_status", "",
                 "Exit status, or 128 + the signal that ended it; NULL if not seen."),
          column(&R::injected, "injected", "", "Whether llmprof saw it from inside."),
          column(&R::log, "log", "",
                 "File name of the capture log it came from; NULL if it was seen from outside only."),
      }};
  return table;
}

template <>
const Table& table_of<ThreadRow>() {
  using R = ThreadRow;
  static const Table table{"thread",
                           TableKind::kFact,
                           "a thread with at least one event or sample",
                           "",
                           "begin_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the thread in this run."),
                               column(&R::process_id, "process_id", "", "The process image it belongs to."),
                               column(&R::tid, "tid", "", "Thread id the system gave it."),
                               column(&R::name, "name", "", "Name the program gave it."),
                               column(&R::begin_ns, "begin_ns", "ns", "Its first event."),
                               column(&R::end_ns, "end_ns", "ns", "When it ended; NULL if that was not seen."),
                           }};
  return table;
}

template <>
const Table& table_of<OpRow>() {
  using R = OpRow;
  static const Table table{
      "op",
      TableKind::kFact,
      "one framework operator executed on the host",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the execution in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it began."),
          column(&R::end_ns, "end_ns", "ns", "When it ended."),
          column(&R::name, "name", "", "Name of the operator."),
          column(&R::thread_id, "thread_id", "", "Thread that ran it."),
          column(&R::shapes, "shapes", "", "Shapes of its inputs as the framework wrote them."),
          column(&R::types, "types", "", "Element types of its inputs as the framework wrote them."),
          column(&R::correlation, "correlation", "", "Number that pairs it with API calls, within a process."),
          column(&R::sequence, "sequence", "",
                 "Number that a forward operator and its backward operators share; NULL if none."),
          column(&R::stack_id, "stack_id", "", "Call stack that it was called from; NULL if not recorded."),
      }};
  return table;
}

template <>
const Table& table_of<RangeRow>() {
  using R = RangeRow;
  static const Table table{
      "range",
      TableKind::kFact,
      "one range or mark that the program or its framework annotated",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the range in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When it was opened."),
          column(&R::end_ns, "end_ns", "ns", "When it was closed; equal to begin_ns for a mark."),
          column(&R::name, "name", "", "Text the program gave it."),
          column(&R::kind, "kind", "", "push_pop (nested on its thread), start_end (may cross threads) or mark."),
          column(&R::process_id, "process_id", "", "The process image it belongs to."),
          column(&R::thread_id, "thread_id", "", "Thread that opened it."),
          column(&R::parent_id, "parent_id", "",
                 "The innermost push_pop range that encloses it on its thread; NULL if none."),
          column(&R::depth, "depth", "", "Number of push_pop ranges that enclose it on its thread."),
          column(&R::domain, "domain", "", "NVTX domain; NULL for the default domain."),
          column(&R::category, "category", "", "NVTX category; in domain llmprof: stage, step or module."),
          column(&R::payload, "payload", "",
                 "Integer payload; in domain llmprof: batch + tokens * 2^16 + context * 2^40."),
          column(&R::payload_double, "payload_double", "", "Floating-point payload."),
          column(&R::closed, "closed", "",
                 "False if its end is not certain: the program ended first (end_ns is then its last event), or records "
                 "were lost inside."),
          column(&R::source, "source", "", "Where it came from: nvtx, or an importer's name."),
      }};
  return table;
}

template <>
const Table& table_of<GemmRow>() {
  using R = GemmRow;
  static const Table table{
      "gemm",
      TableKind::kFact,
      "one BLAS matrix product C = op(A) op(B) as the program asked for it",
      "thread_id",
      "begin_ns",
      sizeof(R),
      {
          column(&R::id, "id", "", "Number of the call in this run."),
          column(&R::begin_ns, "begin_ns", "ns", "When the call began."),
          column(&R::end_ns, "end_ns", "ns", "When the call returned."),
          column(&R::kernel_id, "kernel_id", "",
                 "The kernel that executed it, the longest if there were several; NULL if none was seen (launched from "
                 "a graph: see graph_node.gemm_id)."),
          column(&R::thread_id, "thread_id", "", "Thread that called."),
          column(&R::library, "library", "", "Library that did the work."),
          column(&R::function, "function", "", "Function that was called."),
          column(&R::m, "m", "", "Rows of C, as the caller passed it."),
          column(&R::n, "n", "", "Columns of C, as the caller passed it; 1 for a matrix-vector product."),
          column(&R::k, "k", "", "Length of the inner products."),
          column(&R::batch, "batch", "", "Products done by the one call."),
          column(&R::type_a, "type_a", "", "Element type of A."),
          column(&R::type_b, "type_b", "", "Element type of B."),
          column(&R::type_c, "type_c", "", "Element type of C."),
          column(&R::layout, "layout", "", "row or column: storage order the caller used."),
          column(&R::transpose_a, "transpose_a", "", "n, t or c: op applied to A."),
          column(&R::transpose_b, "transpose_b", "", "n, t or c: op applied to B."),
          column(&R::epilogue, "epilogue", "", "Work fused behind the product; NULL if none or unknown."),
          column(&R::algorithm, "algorithm", "", "Algorithm the library chose; NULL if unknown."),
          column(&R::compute_type, "compute_type", "", "Type the products were added up in; NULL if unknown."),
          column(&R::scaling, "scaling", "",
                 "How narrow types are scaled: tensor, vec16_ue4m3 or alike; NULL if not at all."),
      }};
  return table;
}

template <>
const Table& table_of<SampleRow>() {
  using R = SampleRow;
  static const Table table{"sample",
                           TableKind::kFact,
                           "one sample of a thread's call stack",
                           "thread_id",
                           "ts_ns",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the sample in this run."),
                               column(&R::ts_ns, "ts_ns", "ns", "When it was taken."),
                               column(&R::thread_id, "thread_id", "", "The sampled thread."),
                               column(&R::stack_id, "stack_id", "", "Its call stack; NULL if it could not be read."),
                               column(&R::truncated, "truncated", "", "Whether the outer end of the stack is missing."),
                               column(&R::weight_ns, "weight_ns", "ns", "CPU time the sample stands for."),
                           }};
  return table;
}

template <>
const Table& table_of<StackRow>() {
  using R = StackRow;
  static const Table table{"stack",
                           TableKind::kFact,
                           "one frame of one distinct call stack",
                           "",
                           "stack_id",
                           sizeof(R),
                           {
                               column(&R::stack_id, "stack_id", "", "Number of the call stack in this run."),
                               column(&R::depth, "depth", "", "Place in the stack; 0 is the innermost frame."),
                               column(&R::frame_id, "frame_id", "", "The frame at that place."),
                           }};
  return table;
}

template <>
const Table& table_of<FrameRow>() {
  using R = FrameRow;
  static const Table table{"frame",
                           TableKind::kFact,
                           "one distinct place in a program that appears in call stacks",
                           "",
                           "id",
                           sizeof(R),
                           {
                               column(&R::id, "id", "", "Number of the frame in this run."),
                               column(&R::kind, "kind", "", "python, native, kernel or unknown."),
                               column(&R::function, "function", "", "Function name."),
                               column(&R::file, "file", "", "Source file, or library when the source is unknown."),
                               column(&R::line, "line", "", "Line in the source file."),
                           }};
  return table;
}

}  // namespace llmprof::trace

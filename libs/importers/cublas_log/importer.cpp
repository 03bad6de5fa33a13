// Logs of cuBLAS (CUBLAS_LOGINFO_DBG=1) and cuBLASLt (CUBLASLT_LOG_LEVEL=5), also both in one file, also between the
// lines of a program. They say what was asked and when to the second, not how long it took.
#include "importers/importer.h"

#include <fmt/format.h>

#include <map>

#include "importers/cublas_log/call.h"
#include "importers/input.h"
#include "importers/lines.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace cublas_log {
namespace {

constexpr std::string_view kHint =
    "set CUBLAS_LOGINFO_DBG=1 CUBLAS_LOGDEST_DBG=FILE for cuBLAS, CUBLASLT_LOG_LEVEL=5 CUBLASLT_LOG_FILE=FILE for "
    "cuBLASLt";

int sniff(std::string_view head) {
  const bool ours =
      head.find("I! cuBLAS (v") != std::string_view::npos || head.find("][cublasLt][") != std::string_view::npos;
  return ours ? 95 : 0;
}

class Reader {
 public:
  Reader(Input& input, Sink& sink) : sink_(sink), lines_(input, sink) {}

  Result<void> read() {
    std::string_view line;
    for (;;) {
      LLMPROF_LET(const bool more, lines_.next(line));
      if (!more) break;
      if (!line.empty()) take(line);
    }
    if (blocks_.finish()) sink_.lose(trace::Loss::kInputTruncated, 1, "the last call of cuBLAS is not complete");
    return judge();
  }

 private:
  void take(std::string_view line) {
    if (line.front() == '[') {
      if (const auto lt = cublas::lt_line(line)) return take_lt(*lt);
      if (line.find("][cublasLt][") != std::string_view::npos) return torn();
    }
    using Took = cublas::BlockReader::Took;
    switch (blocks_.take(line)) {
      case Took::kNotOurs:
        if (line.find("][cublasLt][") != std::string_view::npos || line.find("I! cuBLAS (v") != std::string_view::npos)
          return torn();
        return sink_.lose(trace::Loss::kInputIgnored, 1, "lines that neither cuBLAS nor cuBLASLt wrote",
                          lines_.where());
      case Took::kLine:
        ++known_lines_;
        if (!blocks_.other_function().empty() && line.starts_with("i!Process="))
          sink_.lose(trace::Loss::kInputIgnored, 1,
                     fmt::format("calls that are no matrix product: {}", blocks_.other_function()), lines_.where());
        return;
      case Took::kCall:
        return add(blocks_.call());
      case Took::kTorn:
        return torn();
    }
  }

  void take_lt(const cublas::LtLine& line) {
    ++known_lines_;
    if (!line.function.ends_with("Matmul")) return;
    if (line.level == "Api") ++lt_asked_;
    if (line.level != "Trace") return;
    const auto call = cublas::lt_call(line);
    if (!call) return torn();
    ++lt_traced_;
    add(*call);
  }

  // The first three places are shown, as everywhere.
  void torn() {
    sink_.lose(trace::Loss::kInputDamaged, 1, "calls whose lines are torn or mixed with those of another process",
               fmt::format("byte {}", lines_.offset()));
  }

  void add(const cublas::Call& call) {
    if (calls_++ == 0) {
      first_second_ = call.second;
      sink_.set_clock(
          {call.second * 1'000'000'000,
           "the log's own stamps: whole seconds, local time of its machine taken as UTC; calls have no times "
           "of their own"});
    }
    const std::int64_t ns = (call.second - first_second_) * 1'000'000'000;
    trace::GemmRow row{.id = sink_.new_id(), .begin_ns = ns, .end_ns = ns, .thread_id = thread_of(call, ns)};
    row.library = sink_.name(call.lt ? "cublasLt" : "cublas");
    row.function = sink_.name(call.function);
    row.m = call.m, row.n = call.n, row.k = call.k, row.batch = call.batch;
    row.type_a = optional_name(call.type_a), row.type_b = optional_name(call.type_b);
    row.type_c = optional_name(call.type_c);
    row.layout = sink_.name(call.by_rows ? "row" : "column");
    row.transpose_a = sink_.name(std::string_view(&call.transpose_a, 1));
    row.transpose_b = sink_.name(std::string_view(&call.transpose_b, 1));
    row.epilogue = optional_name(call.epilogue), row.algorithm = optional_name(call.algorithm);
    row.compute_type = optional_name(call.compute_type), row.scaling = optional_name(call.scaling);
    sink_.add(row);
  }

  trace::Name optional_name(const std::string& text) { return text.empty() ? trace::Name{} : sink_.name(text); }

  trace::Id thread_of(const cublas::Call& call, std::int64_t ns) {
    trace::Id& process = processes_[call.pid];
    if (process == 0) {
      process = sink_.new_id();
      sink_.add(trace::ProcessRow{.id = process, .pid = call.pid, .begin_ns = ns});
    }
    trace::Id& thread = threads_[{call.pid, call.thread}];
    if (thread == 0) {
      thread = sink_.new_id();
      sink_.add(trace::ThreadRow{.id = thread,
                                 .process_id = process,
                                 .tid = call.thread,
                                 .name = sink_.name(call.thread == 0 ? "unknown: the log does not say" : "of cuBLAS"),
                                 .begin_ns = ns});
    }
    return thread;
  }

  Result<void> judge() {
    if (lt_traced_ == 0 && lt_asked_ > 0 && calls_ == 0) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("line {}: {} calls of cuBLASLt without their shapes: the log has no [Trace] lines",
                               lines_.number(), lt_asked_),
                   "set CUBLASLT_LOG_LEVEL=5 (or a CUBLASLT_LOG_MASK that includes 2) and record again"};
    }
    if (known_lines_ == 0)
      return Error{ErrorCode::kCorruptInput, "line 1: holds no line of cuBLAS or cuBLASLt", std::string(kHint)};
    if (calls_ == 0)  // a program whose products all go to cuBLASLt still talks to cuBLAS
      sink_.lose(trace::Loss::kInputIgnored, known_lines_, "lines of a log without a matrix product");
    if (calls_ > 0)
      sink_.add(
          trace::NoteRow{.ts_ns = 0,
                         .subject = sink_.name("cublas"),
                         .text = sink_.name("The log says what was asked, and when to the second, not how long it "
                                            "took: times are those of the kernels a call was joined to.")});
    if (lt_asked_ > lt_traced_)
      sink_.lose(trace::Loss::kInputDamaged, lt_asked_ - lt_traced_,
                 "calls of cuBLASLt without their shapes ([Trace] lines)");
    if (!blocks_.version().empty()) sink_.set_facts({.tool = "cuBLAS " + blocks_.version()});
    return {};
  }

  Sink& sink_;
  Lines lines_;
  cublas::BlockReader blocks_;
  std::map<std::int64_t, trace::Id> processes_;
  std::map<std::pair<std::int64_t, std::int64_t>, trace::Id> threads_;
  std::int64_t calls_ = 0, known_lines_ = 0, lt_asked_ = 0, lt_traced_ = 0, first_second_ = 0;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace cublas_log

extern const Importer kCublasLog;
const Importer kCublasLog{"cublas", "cuBLAS or cuBLASLt log", Role::kLog, cublas_log::sniff, cublas_log::parse};

}  // namespace llmprof::importers

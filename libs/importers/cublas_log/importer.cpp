// Logs of cuBLAS (CUBLAS_LOGINFO_DBG=1) and cuBLASLt (CUBLASLT_LOG_LEVEL=5), also both in one file, also between the
// lines of a program. They say what was asked and when to the second, not how long it took.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "importers/cublas_log/names.h"
#include "importers/importer.h"
#include "importers/input.h"
#include "importers/sink.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace cublas {
namespace {

constexpr std::size_t kMaxParameters = 64;

// "Process=1846; Thread=…": the value of a key.
std::string_view entry(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view value = line.substr(at + key.size());
  return value.substr(0, value.find(';'));
}

// "cublasSgemmStridedBatched_64" -> "SgemmStridedBatched"
std::string_view base_name(std::string_view function) {
  if (function.starts_with("cublas")) function.remove_prefix(6);
  for (const std::string_view end : {"_64", "_v2", "_64"}) {
    if (function.ends_with(end)) function.remove_suffix(end.size());
  }
  return function;
}

// gemm, gemv or symm; "" for what is no matrix product that 2MNK counts.
std::string_view kind_of(std::string_view base) {
  if (base::contains(base, "Grouped")) return {};  // many shapes, in memory the log does not show
  if (base::contains(base, "gemm") || base::contains(base, "Gemm")) return "gemm";
  if (base::contains(base, "gemv")) return "gemv";
  if (base.size() == 5 && (base.ends_with("symm") || base.ends_with("hemm"))) return "symm";
  return {};
}

bool is_housekeeping(std::string_view base) {
  constexpr std::string_view kBegins[] = {"Create", "Destroy", "Set", "Get", "Logger"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view b) { return base.starts_with(b); });
}

// "[text]" at the beginning of `line`, which loses it.
std::optional<std::string_view> bracket(std::string_view& line) {
  if (!line.starts_with('[')) return std::nullopt;
  const std::size_t end = line.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = line.substr(1, end - 1);
  line.remove_prefix(end + 1);
  return text;
}

// The value of `name=` in "a=1 b=[c=2 d=3] e=4": a word, or what stands in brackets. "" if it is not there.
std::string_view field(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at > 0 && text[at - 1] != ' ') || end >= text.size() || text[end] != '=') continue;
    std::string_view value = text.substr(end + 1);
    if (!value.starts_with('[')) return value.substr(0, value.find(' '));
    const std::size_t close = value.find(']');
    return close == std::string_view::npos ? std::string_view{} : value.substr(1, close - 1);
  }
  return {};
}

struct Matrix {
  std::int64_t rows = 0, cols = 0, batch = 1;
  std::string type;
  bool by_rows = false;
};

std::optional<Matrix> matrix(std::string_view text) {
  const auto rows = integer(field(text, "rows")), cols = integer(field(text, "cols"));
  if (!rows || !cols || *rows <= 0 || *cols <= 0) return std::nullopt;
  Matrix result{*rows, *cols, 1, type_name(field(text, "type")), field(text, "order").ends_with("ROW")};
  if (const auto batch = integer(field(text, "batchCount")); batch && *batch > 0) result.batch = *batch;
  return result;
}

std::string_view behind(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// As the collector writes it: "algo 66 tile 64x32 stages 64xauto splitk 2 cluster 2x4".
std::string algorithm_name(std::string_view algo) {
  const std::string_view number = field(algo, "algoId");
  if (number.empty()) return {};
  std::string text = fmt::format("algo {}", number);
  if (const auto tile = behind(field(algo, "tile"), "MATMUL_TILE_"); !tile.empty())
    text += fmt::format(" tile {}", tile);
  if (std::string stages(behind(field(algo, "stages"), "MATMUL_STAGES_")); !stages.empty()) {
    if (stages.ends_with("xAUTO")) stages.replace(stages.size() - 4, 4, "auto");
    text += " stages " + stages;
  }
  if (const auto splits = field(algo, "numSplitsK"); !splits.empty()) text += fmt::format(" splitk {}", splits);
  if (auto cluster = behind(field(algo, "clusterShape"), "CLUSTER_SHAPE_"); !cluster.empty()) {
    if (cluster.ends_with("x1")) cluster.remove_suffix(2);
    text += fmt::format(" cluster {}", cluster);
  }
  return text;
}

// One matrix product as a log of cuBLAS or cuBLASLt tells it.
struct Call {
  std::int64_t pid = 0;
  std::int64_t thread = 0;  // 0: the log does not say
  std::int64_t second = 0;  // since 1970, as the log writes it: local time of the machine, taken as UTC
  std::string function;
  bool lt = false;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string type_a, type_b, type_c;
  char transpose_a = 'n', transpose_b = 'n';
  bool by_rows = false;
  std::string epilogue, algorithm, compute_type, scaling;  // "": none or unknown
};

// The calls of cuBLAS, a block of lines each. Feed every line; a block ends with its Process line.
class BlockReader {
 public:
  enum class Took { kNotOurs, kLine, kCall, kTorn };
  // kCall: call() is a finished product. kTorn: a block was given up, lines of it are missing or mixed with another's.
  Took take(std::string_view line) {
    other_.clear();
    if (line.starts_with("I! cuBLAS") && line.ends_with("called:")) {
      const bool torn = open_;
      begin(line);
      return torn ? Took::kTorn : Took::kLine;
    }
    if (!line.starts_with("i!")) return Took::kNotOurs;
    if (!open_) return Took::kLine;  // the rest of a block that ended, or of another process
    if (line.starts_with("i!Process=")) return end(line);
    if (line.starts_with("i! Time: ")) {
      if (!time_.empty()) mixed_ = true;
      time_ = line.substr(9, 19);
      return Took::kLine;
    }
    const std::size_t colon = line.find(": type="), value = line.find("; val=");
    if (!line.starts_with("i!  ") || colon == std::string_view::npos || value == std::string_view::npos ||
        value < colon)
      return Took::kLine;
    const std::string_view name = line.substr(4, colon - 4);
    if (!this->value(name).empty() || parameters_.size() == kMaxParameters) mixed_ = true;
    if (parameters_.size() < kMaxParameters)
      parameters_.push_back({std::string(name), std::string(line.substr(value + 6, 256))});
    return Took::kLine;
  }

  // at the end of the text: true if a block was open
  bool finish() {
    const bool was_open = open_;
    open_ = false;
    return was_open;
  }

  const Call& call() const { return call_; }
  // Of the block that ended without a product: its function, where it computes something; else "".
  const std::string& other_function() const { return other_; }
  const std::string& version() const { return version_; }

 private:
  struct Parameter {
    std::string name, value;
  };
  void begin(std::string_view line) {
    open_ = true;
    mixed_ = false;
    time_.clear();
    parameters_.clear();
    if (const std::size_t at = line.find("(v"); at != std::string_view::npos)
      version_ = line.substr(at + 2, std::min<std::size_t>(line.find(')', at) - at - 2, 32));
    // "… function cublasStatus_t NAME(types) called:"
    const std::size_t type = line.find(" function ");
    std::string_view rest = type == std::string_view::npos ? std::string_view{} : line.substr(type + 10);
    rest = rest.substr(0, rest.find('('));
    const std::size_t space = rest.rfind(' ');
    function_ = rest.substr(space == std::string_view::npos ? 0 : space + 1);
  }

  Took end(std::string_view line) {
    open_ = false;
    call_ = Call{};
    const auto pid = integer(entry(line, "Process="));
    if (mixed_ || !pid || function_.empty()) return Took::kTorn;
    call_.pid = *pid;
    call_.thread = integer(entry(line, "Thread=")).value_or(0);
    call_.function = function_;
    const std::string_view base = base_name(function_);
    if (kind_of(base).empty()) {
      if (!is_housekeeping(base)) other_ = function_;
      return Took::kLine;
    }
    const auto second = second_of(time_);
    if (!second || !fill_call()) return Took::kTorn;
    call_.second = *second;
    if (call_.compute_type.empty()) {
      const bool tf32 = call_.type_a == "float32" && entry(line, "MathMode=").find("TF32") != std::string_view::npos;
      call_.compute_type = tf32 ? "tf32" : call_.type_c == "bfloat16" ? "float32" : call_.type_c;
    }
    return Took::kCall;
  }

  bool fill_call() {
    const std::string_view base = base_name(function_);
    if (!fill_shape(kind_of(base))) return false;
    const std::string of_name = type_of_letter(base.front());
    const auto type = [&](std::string_view parameter) {
      const std::string_view written = value(parameter);
      return written.empty() ? of_name : type_name(written);
    };
    call_.type_a = type("Atype");
    call_.type_b = type("Btype");
    call_.type_c = type("Ctype");
    if (!value("computeType").empty()) call_.compute_type = compute_name(value("computeType"));
    if (const auto batch = integer(value("batchCount")); batch && *batch >= 0) call_.batch = *batch;
    return true;
  }

  bool fill_shape(std::string_view kind) {
    const auto m = integer(value("m")), n = integer(value("n"));
    if (!m || !n || *m < 0 || *n < 0) return false;
    call_.m = *m;
    call_.n = *n;
    if (kind == "gemm") {
      const auto k = integer(value("k"));
      if (!k || *k < 0) return false;
      call_.k = *k;
      call_.transpose_a = transpose_name(value("transa"));
      call_.transpose_b = transpose_name(value("transb"));
    } else if (kind == "gemv") {  // y = op(A) x, A of m rows and n columns
      call_.transpose_a = transpose_name(value("trans"));
      call_.k = call_.transpose_a == 'n' ? *n : *m;
      call_.m = call_.transpose_a == 'n' ? *m : *n;
      call_.n = 1;
    } else {  // symm: the symmetric matrix stands left (m by m) or right (n by n)
      call_.k = value("side").find("RIGHT") != std::string_view::npos ? *n : *m;
    }
    return true;
  }

  // I! cuBLAS (v13.1.0) function cublasStatus_t cublasGemmEx(cublasHandle_t, …) called:
  // i!  m: type=int; val=1536
  // i! Time: 2026-11-15T19:25:56 elapsed from start …
  // i!Process=1846; Thread=140012333318464; GPU=0; Handle=…; MathMode=CUBLAS_DEFAULT_MATH
  std::string_view value(std::string_view name) const {
    for (const Parameter& parameter : parameters_) {
      if (parameter.name == name) return parameter.value;
    }
    return {};
  }

  bool open_ = false, mixed_ = false;
  std::string function_, time_, other_, version_;
  std::vector<Parameter> parameters_;
  Call call_;
};

// A line of cuBLASLt, taken apart as far as every line can be.
struct LtLine {
  std::string_view time, level, function, rest;
  std::int64_t pid = 0;
};

// [2026-11-15 19:25:56][cublasLt][1846][Trace][cublasLtMatmul] A=0X… Adesc=[type=R_16BF rows=1024 …] … algo=[…] …

std::optional<LtLine> lt_line(std::string_view line) {
  LtLine result;
  const auto time = bracket(line), library = bracket(line), pid = bracket(line), level = bracket(line),
             function = bracket(line);
  if (!time || !library || *library != "cublasLt" || !pid || !level || !function) return std::nullopt;
  const auto number = integer(*pid);
  if (!number || !second_of(*time)) return std::nullopt;
  return LtLine{*time, *level, *function, line, *number};
}

// The product of a [Trace] line of a Matmul function. nullopt: the line is torn, or lacks a shape.
std::optional<Call> lt_call(const LtLine& line) {
  // Two lines that were written into each other.
  if (base::contains(line.rest, "][cublasLt][")) return std::nullopt;
  const auto a = matrix(field(line.rest, "Adesc")), b = matrix(field(line.rest, "Bdesc"));
  auto d = matrix(field(line.rest, "Ddesc"));
  if (!d) d = matrix(field(line.rest, "Cdesc"));
  const std::string_view compute = field(line.rest, "computeDesc");
  if (!a || !b || !d || compute.empty()) return std::nullopt;
  Call call;
  call.pid = line.pid;
  call.second = *second_of(line.time);
  call.function = line.function;
  call.lt = true;
  call.transpose_a = transpose_name(field(compute, "transa"));
  call.transpose_b = transpose_name(field(compute, "transb"));
  call.m = d->rows;
  call.n = d->cols;
  call.k = call.transpose_a == 'n' ? a->cols : a->rows;
  call.batch = d->batch;
  const bool fits = (call.transpose_a == 'n' ? a->rows : a->cols) == call.m &&
                    (call.transpose_b == 'n' ? b->rows : b->cols) == call.k;
  if (!fits) return std::nullopt;
  call.type_a = a->type;
  call.type_b = b->type;
  call.type_c = d->type;
  call.by_rows = d->by_rows;
  call.compute_type = compute_name(field(compute, "computeType"));
  call.epilogue = epilogue_name(field(compute, "epilogue"));
  call.algorithm = algorithm_name(field(line.rest, "algo"));
  return call;
}

constexpr std::string_view kHint =
    "set CUBLAS_LOGINFO_DBG=1 CUBLAS_LOGDEST_DBG=FILE for cuBLAS, CUBLASLT_LOG_LEVEL=5 CUBLASLT_LOG_FILE=FILE for "
    "cuBLASLt";

int sniff(std::string_view head) {
  const bool ours = base::contains(head, "I! cuBLAS (v") || base::contains(head, "][cublasLt][");
  return ours ? 95 : 0;
}

class Reader {
 public:
  Reader(Input& input, Sink& sink) : sink_(sink), lines_(input, sink) {}

  Result<void> read() {
    LLMPROF_TRY(lines_.each([&](std::string_view line) {
      if (!line.empty()) take(line);
    }));
    if (blocks_.finish()) sink_.lose(trace::Loss::kInputTruncated, 1, "the last call of cuBLAS is not complete");
    return judge();
  }

 private:
  void take(std::string_view line) {
    if (line.front() == '[') {
      if (const auto lt = lt_line(line)) return take_lt(*lt);
      if (base::contains(line, "][cublasLt][")) return torn();
    }
    using Took = BlockReader::Took;
    switch (blocks_.take(line)) {
      case Took::kNotOurs:
        if (base::contains(line, "][cublasLt][") || base::contains(line, "I! cuBLAS (v")) return torn();
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

  void take_lt(const LtLine& line) {
    ++known_lines_;
    if (!line.function.ends_with("Matmul")) return;
    if (line.level == "Api") ++lt_asked_;
    if (line.level != "Trace") return;
    const auto call = lt_call(line);
    if (!call) return torn();
    ++lt_traced_;
    add(*call);
  }

  // The first three places are shown, as everywhere.
  void torn() {
    sink_.lose(trace::Loss::kInputDamaged, 1, "calls whose lines are torn or mixed with those of another process",
               fmt::format("byte {}", lines_.offset()));
  }

  void add(const Call& call) {
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
    row.type_a = sink_.name_or_null(call.type_a), row.type_b = sink_.name_or_null(call.type_b);
    row.type_c = sink_.name_or_null(call.type_c);
    row.layout = sink_.name(call.by_rows ? "row" : "column");
    row.transpose_a = sink_.name(std::string_view(&call.transpose_a, 1));
    row.transpose_b = sink_.name(std::string_view(&call.transpose_b, 1));
    row.epilogue = sink_.name_or_null(call.epilogue), row.algorithm = sink_.name_or_null(call.algorithm);
    row.compute_type = sink_.name_or_null(call.compute_type), row.scaling = sink_.name_or_null(call.scaling);
    sink_.add(row);
  }

  trace::Id thread_of(const Call& call, std::int64_t ns) {
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
      sink_.note("cublas",
                 "The log says what was asked, and when to the second, not how long it took: times are those of the "
                 "kernels a call was joined to.");
    if (lt_asked_ > lt_traced_)
      sink_.lose(trace::Loss::kInputDamaged, lt_asked_ - lt_traced_,
                 "calls of cuBLASLt without their shapes ([Trace] lines)");
    if (!blocks_.version().empty()) sink_.set_facts({.tool = "cuBLAS " + blocks_.version()});
    return {};
  }

  Sink& sink_;
  Lines lines_;
  BlockReader blocks_;
  std::map<std::int64_t, trace::Id> processes_;
  std::map<std::pair<std::int64_t, std::int64_t>, trace::Id> threads_;
  std::int64_t calls_ = 0, known_lines_ = 0, lt_asked_ = 0, lt_traced_ = 0, first_second_ = 0;
};

Result<void> parse(Input& input, Sink& sink) { return Reader(input, sink).read(); }

}  // namespace
}  // namespace cublas

extern const Importer kCublasLog;
const Importer kCublasLog{"cublas", "cuBLAS or cuBLASLt log", Role::kLog, cublas::sniff, cublas::parse, false};

}  // namespace llmprof::importers

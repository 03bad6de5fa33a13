// I! cuBLAS (v13.1.0) function cublasStatus_t cublasGemmEx(cublasHandle_t, …) called:
// i!  m: type=int; val=1536
// i! Time: 2026-11-15T19:25:56 elapsed from start …
// i!Process=1846; Thread=140012333318464; GPU=0; Handle=…; MathMode=CUBLAS_DEFAULT_MATH
#include <algorithm>

#include "importers/cublas_log/call.h"

namespace llmprof::importers::cublas {
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
  if (base.find("Grouped") != std::string_view::npos) return {};  // many shapes, in memory the log does not show
  if (base.find("gemm") != std::string_view::npos || base.find("Gemm") != std::string_view::npos) return "gemm";
  if (base.find("gemv") != std::string_view::npos) return "gemv";
  if (base.size() == 5 && (base.ends_with("symm") || base.ends_with("hemm"))) return "symm";
  return {};
}

bool is_housekeeping(std::string_view base) {
  constexpr std::string_view kBegins[] = {"Create", "Destroy", "Set", "Get", "Logger"};
  return std::any_of(std::begin(kBegins), std::end(kBegins), [&](std::string_view b) { return base.starts_with(b); });
}

}  // namespace

std::string_view BlockReader::value(std::string_view name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return parameter.value;
  }
  return {};
}

BlockReader::Took BlockReader::take(std::string_view line) {
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
  if (!line.starts_with("i!  ") || colon == std::string_view::npos || value == std::string_view::npos || value < colon)
    return Took::kLine;
  const std::string_view name = line.substr(4, colon - 4);
  if (!this->value(name).empty() || parameters_.size() == kMaxParameters) mixed_ = true;
  if (parameters_.size() < kMaxParameters)
    parameters_.push_back({std::string(name), std::string(line.substr(value + 6, 256))});
  return Took::kLine;
}

bool BlockReader::finish() {
  const bool was_open = open_;
  open_ = false;
  return was_open;
}

void BlockReader::begin(std::string_view line) {
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

BlockReader::Took BlockReader::end(std::string_view line) {
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

bool BlockReader::fill_call() {
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

bool BlockReader::fill_shape(std::string_view kind) {
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

}  // namespace llmprof::importers::cublas

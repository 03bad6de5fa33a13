#pragma once
// One matrix product as a log of cuBLAS or cuBLASLt tells it. Views point into the names of names.cpp or into the line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::importers::cublas {

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

// "2026-11-15T19:25:55" or with a space; nullopt if it is no time.
std::optional<std::int64_t> second_of(std::string_view text);
std::optional<std::int64_t> integer(std::string_view text);  // the whole text

// The names llmprof uses for those of the logs: "R_16BF" and "CUDA_R_16BF" -> "bfloat16". Unknown ones as they are.
std::string type_name(std::string_view text);
std::string compute_name(std::string_view text);   // "COMPUTE_32F_FAST_TF32" -> "tf32"
std::string epilogue_name(std::string_view text);  // "EPILOGUE_GELU_BIAS" -> "gelu_bias"
char transpose_name(std::string_view text);        // "CUBLAS_OP_T(1)", "OP_T" -> 't'
std::string type_of_letter(char letter);           // 'S' -> "float32"; "" if it is none

// A line of cuBLASLt, taken apart as far as every line can be.
struct LtLine {
  std::string_view time, level, function, rest;
  std::int64_t pid = 0;
};
std::optional<LtLine> lt_line(std::string_view line);
// The product of a [Trace] line of a Matmul function. nullopt: the line is torn, or lacks a shape.
std::optional<Call> lt_call(const LtLine& line);

// The calls of cuBLAS, a block of lines each. Feed every line; a block ends with its Process line.
class BlockReader {
 public:
  enum class Took { kNotOurs, kLine, kCall, kTorn };
  // kCall: call() is a finished product. kTorn: a block was given up, lines of it are missing or mixed with another's.
  Took take(std::string_view line);
  bool finish();  // at the end of the text: true if a block was open
  const Call& call() const { return call_; }
  // Of the block that ended without a product: its function, where it computes something; else "".
  const std::string& other_function() const { return other_; }
  const std::string& version() const { return version_; }

 private:
  struct Parameter {
    std::string name, value;
  };
  void begin(std::string_view line);
  Took end(std::string_view line);
  bool fill_call();
  bool fill_shape(std::string_view kind);
  std::string_view value(std::string_view name) const;

  bool open_ = false, mixed_ = false;
  std::string function_, time_, other_, version_;
  std::vector<Parameter> parameters_;
  Call call_;
};

}  // namespace llmprof::importers::cublas

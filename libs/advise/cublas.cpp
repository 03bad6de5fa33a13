// cuBLAS and cuBLASLt logs: shapes, types and algorithms of every call. They carry no durations, so a trace of the same
// run is recorded beside them where a tool for it is installed.

#include <fmt/format.h>

#include "advise/makers.h"

namespace llmprof::advise {
namespace {

std::vector<std::string> log_variables(const std::string& output) {
  return {"CUBLAS_LOGINFO_DBG=1", "CUBLAS_LOGDEST_DBG=" + output + ".cublas.log", "CUBLASLT_LOG_LEVEL=5",
          "CUBLASLT_LOG_FILE=" + output + ".cublaslt.%i.log"};
}

}  // namespace

Advice advise_cublas(const Context& context) {
  const std::string& output = context.wish.output;
  const Tool nsys = find_tool("nsys", context.wish.places);
  Advice advice{"cublas", "", "", {}, {}, {}, {}};
  const std::vector<std::string> logs{output + ".cublas.log", output + ".cublaslt.*.log"};
  if (nsys.installed()) {
    advice.steps.push_back(context.run_step("log every product, and record the kernels of the same run with nsys",
                                            nsys_words(nsys, output), log_variables(output)));
    advice.steps.push_back(nsys_export(nsys, output));
    advice.steps.push_back(import_step({output + ".sqlite", logs[0], logs[1]}, output));
    Step only = context.run_step("instead, the logs alone: shapes and types, no times", {}, log_variables(output));
    advice.alternatives.push_back(only);
  } else {
    advice.steps.push_back(context.run_step("log every product", {}, log_variables(output)));
    advice.steps.push_back(import_step(logs, output));
    advice.notes.emplace_back(
        "no nsys was found: give `llmprof import` the trace of the same run (torch.profiler's, `llmprof advise torch`) "
        "beside "
        "the logs, and calls are joined to kernels by their order");
  }
  advice.notes.emplace_back(
      "the logs carry no durations (their Time: is the call's, in seconds): 2*M*N*K / time needs the trace beside "
      "them");
  advice.notes.emplace_back(
      "the variables are read when the libraries are loaded: set them before the program starts, not in Python");
  advice.notes.emplace_back(
      "one cublasGemmEx stands in both logs, in cuBLASLt's as cublasLtTSTMatmul: llmprof counts it once");
  advice.notes.emplace_back("calls inside a CUDA graph are logged when it is captured, not when it is replayed");
  advice.notes.emplace_back(
      "logs grow by 1 to 3 KB a call and slow the host down; `llmprof record` sees the same shapes without them");
  return advice;
}

}  // namespace llmprof::advise

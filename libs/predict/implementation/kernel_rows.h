#pragma once
// What the kernels of a framework take on this device, over sizes: rows that a prober printed (python/,
// `llmprof-workload kernels`; docs/format/operator-tables.md, "Kernels of a framework"), one JSON object a line. Kept
// per device and framework; a row measured again replaces the old one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predict/measured/store.h"

namespace llmprof::predict {

struct ProbedKernel {
  std::string kernel;  // full name
  std::string op;      // what was called, and which of its kernels: "rotary of queries 2"
  std::string scale;   // what `tokens` counts: "rows" of the step, or "context": tokens in the cache, of all sequences
  std::string stage;   // "decode": sequences with one new token each; "prefill": one prompt
  bool graph = false;  // inside a CUDA graph
  double tokens = 0;
  double blocks = 0, threads = 0;
  double ns = 0;
};

struct ProbedProduct {
  double m = 0, n = 0, k = 0;  // m: rows of activations; n, k: of the weight
  std::string dtype, stage;
  bool graph = false;
  std::vector<std::string> kernels;
  double ns = 0;  // of its kernels together
};

struct ProbedAttention {
  std::string stage, form;
  std::string asked;  // the kernel that a program was seen to use, which the form was chosen for
  bool same = true;   // that form launches this kernel
  double heads = 0, kv_heads = 0, head_dim = 0;
  double batch = 0, q = 0, kv = 0;
  std::vector<std::string> kernels;
  double ns = 0;
};

struct ProbedRows {
  std::string framework, version, device;
  std::vector<ProbedKernel> kernels;
  std::vector<ProbedProduct> products;
  std::vector<ProbedAttention> attention;
  double graph_gap_ns = 0, queued_gap_ns = 0;  // from the end of a kernel to the begin of the next; 0: not measured
  double op_ns = 0;                            // of the host, per operator; 0: not measured
  double recording_ns = 0;  // what recording adds to a step of a graph, as the program's own clock has it
  std::vector<std::string> notes;
  bool empty() const { return kernels.empty() && products.empty() && attention.empty(); }
};

// The name of a kernel as it is compared: without return type, parameters, spaces and suffixes of numbers, in which
// demanglers differ.
std::string comparable_name(std::string_view kernel);

// Lines that are no rows are errors with their number; kinds of rows that are not known are passed over.
Result<ProbedRows> parse_probed(std::string_view lines, const std::string& where);
Result<ProbedRows> read_probed(const std::string& path);
std::string to_lines(const ProbedRows& rows);
// Rows of `newer` win.
void merge(ProbedRows& into, ProbedRows newer);

// Beside the operator tables of this model and device (measured/store.h). Merges with what was measured before; the
// file it is in now.
Result<std::string> keep_probed(const TablesKey& key, const ProbedRows& rows);
// Of the embedded program, or of all other frameworks, the one that was measured last winning; kNotFound with a hint
// where nothing was measured.
Result<ProbedRows> kept_probed(const TablesKey& key, bool embedded);
inline constexpr std::string_view kEmbedded = "llmprof-workload";  // as a framework

}  // namespace llmprof::predict

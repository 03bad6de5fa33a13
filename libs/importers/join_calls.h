#pragma once
// Calls of logs without times (cuBLAS, cuBLASLt), joined to the kernels of a trace of the same run.

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/identities.h"
#include "trace/rows.h"
#include "trace/run_writer.h"

namespace llmprof::importers {

// Calls of a log that carries no times (cuBLAS, cuBLASLt), joined by their order to the kernels of a trace of the same
// run. Pure: no rows are read or written here; the assembler fills the inputs and applies the answer.
//
// One matrix product of the log. Calls stand in the order of the log, one process after the other.
struct LoggedCall {
  std::int64_t pid = 0;  // 0: the log does not say
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view library, function;       // "cublas", "cublasLtMatmul"
  std::string_view type_a, type_b, type_c;  // as in the gemm table; "" unknown
};

// One kernel of the trace that may execute a product (may_execute_product). Sorted by pid, then launch_ns.
struct ProductKernel {
  trace::Id kernel_id = 0;
  std::int64_t pid = 0;  // 0: the trace does not say
  trace::Id thread_id = 0;
  std::int64_t launch_ns = 0;  // its begin where the launch is unknown
  std::int64_t duration_ns = 0;
  std::string_view name;
  trace::Id gemm_id = 0;  // of the trace, where it knows the product (from an operator's shapes); 0: it does not
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  // of that product; 0 if it does not
};

// Whether a kernel of this name can be (a part of) a matrix product of cuBLAS or cuBLASLt. Called once per name.
bool may_execute_product(std::string_view kernel_name);

inline constexpr std::int32_t kNotJoined = -1;

// cuBLAS does many products by asking cuBLASLt, under names of its own (cublasLtTSTMatmul); a program's own call is
// cublasLtMatmul. Such an inner call is no product of its own where the log of cuBLAS is there, too.
bool is_inner_call(std::string_view function);
// For every inner call the place of the call of cuBLAS it is a part of; kNotJoined for all others. The outer call is
// the product; the inner one tells which algorithm it got, and is otherwise left out.
std::vector<std::int32_t> outer_calls(std::span<const LoggedCall> calls);

// For every kernel the place of its call in `calls`, or kNotJoined. Several kernels may have the same call (split-K and
// its reduction); every call that no kernel has and that is no part of another (outer_calls) counts as
// calls_not_joined. Where the trace knows products, they are aligned by shape; else, kernels are joined when there is
// one for every call.
std::vector<std::int32_t> join_calls(std::span<const LoggedCall> calls, std::span<const ProductKernel> kernels);

// Kernels and products that wait until a log of calls was read, too: rows of a run that is made of a trace and the log
// of its matrix products (join_calls.h). Bounded: what does not fit is written unjoined.
class HeldCalls {
 public:
  explicit HeldCalls(trace::RunWriter& writer) : writer_(writer) {}

  // Rows of the run, ids and times done. Those that are not kept are written at once.
  void add_kernels(const std::byte* rows, std::size_t count);
  void add_products(const std::byte* rows, std::size_t count, bool logged);

  struct Joined {
    std::int64_t calls = 0;       // of the log that have a kernel
    std::int64_t not_joined = 0;  // that have none
    std::int64_t not_kept = 0;    // too many to be joined
    std::int64_t gemm_rows = 0;   // written here
  };
  // Joins and writes everything. Calls without a kernel are written only where there is no trace to find one in: a log
  // does not say when they were.
  Joined finish(const Identities& identities);

 private:
  static constexpr std::size_t kMost = 300'000;  // of each: about 150 MB together
  bool may_be_product(trace::Name kernel);
  void give_algorithms(const std::vector<std::int32_t>& outer);
  std::vector<LoggedCall> logged_calls(const Identities& identities);                                  // sorts them
  std::vector<std::int32_t> join(const Identities& identities, const std::vector<LoggedCall>& calls);  // sorts kernels
  void settle(std::size_t call, const std::vector<std::size_t>& kernels,
              std::unordered_map<trace::Id, std::size_t>& trace_products);

  trace::RunWriter& writer_;
  std::vector<trace::KernelRow> kernels_;
  std::vector<trace::GemmRow> products_;    // of traces
  std::vector<trace::GemmRow> calls_;       // of logs
  std::vector<signed char> product_names_;  // by name id: 0 not asked yet, 1 yes, -1 no
  std::int64_t not_kept_ = 0, written_ = 0;
  bool saw_trace_ = false;
};

}  // namespace llmprof::importers

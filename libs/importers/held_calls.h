#pragma once
// Kernels and products that wait until a log of calls was read, too: rows of a run that is made of a trace and the log
// of its matrix products (join_calls.h). Bounded: what does not fit is written unjoined.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "importers/identities.h"
#include "importers/join_calls.h"
#include "trace/run_writer.h"

namespace llmprof::importers {

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

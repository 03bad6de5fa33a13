#pragma once
// What a bench decides before and after it touches a device. Pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/operator.h"

namespace llmprof::bench {

// Why the sizes of its tensors cannot even be computed; "" if they can. Every tensor is a product of some of the axes
// (and of small factors), so no product overflows when that of all axes does not.
std::string why_too_large(const Problem& problem);

// An operator and a problem that it takes, or why there is none: an unknown operator, axes it refuses, sizes beyond any
// memory.
struct Admission {
  const Operator* op = nullptr;
  Problem problem;  // with all axes
  std::string why_not;
};
Admission admit(const Problem& problem);
// "gemm has no int8 on a CPU: it has float32, float64"; "" if the type is among them.
std::string why_type_unknown(const Operator& op, Type type, std::span<const Type> known, std::string_view where);

// Those of the operator's GPU implementations to ask, in order: all, or the one with this name. kUnsupported: none.
Result<std::vector<const CudaImplementation*>> wanted_implementations(const Operator& op, const std::string& name);

// All tensors of one set, each aligned. As a double: it cannot overflow.
double set_bytes(std::span<const TensorSpec> specs, std::int64_t alignment);

// How many sets of buffers a problem is timed with.
struct BufferNeeds {
  Cache cache = Cache::kCold;
  double set_bytes = 0;
  double touched_bytes = 0;  // of a set, by one call: an embedding reads a few rows of its table
  double cache_bytes = 0;    // of the last level; 0: unknown, taken for 64 MiB
  double budget_bytes = 0;   // that may be allocated
  std::int64_t most_sets = 64;
};
struct BufferPlan {
  std::int64_t sets = 1;  // 0: not even one fits
  bool enough = false;    // a round through all of them replaces what the cache holds
};
// Hot: one set. Cold: until what a round touches is more than twice the cache.
BufferPlan plan_buffers(const BufferNeeds& needs);
// Of the memory that may be used: one set whatever it takes, several up to 1 GiB. More of them would cost others their
// memory, and getting the pages would take longer than measuring; caches are flushed, too.
double buffer_budget(double one_set_bytes, double usable_bytes);
// "needs 12.0 GB, of which 8.00 GB are free"
std::string why_not_fit(double bytes, double free_bytes, double margin_bytes);

// Whether the whole reference takes well under a second.
bool cheap_reference(const model::KernelWork& work, std::span<const TensorSpec> specs);
double allowed_error(const Operator& op, const Problem& problem);
// "" when the error is allowed. Names the problem that was computed.
std::string why_wrong(const Operator& op, const Problem& checked, double error);

// Why a GPU of this compute capability (90) has no arithmetic of this type; "" if it has.
std::string why_type_missing(Type type, std::int64_t capability);

// CUDA events see what is between the kernels and around them, too. "" when that explains the difference to the
// kernels' own times: `gap_seconds` for each kernel, some for the events, and a tenth.
std::string why_timers_disagree(double kernel_seconds, double event_seconds, std::size_t kernels, double gap_seconds);

// "a, 3 x b, a": equal ones that follow each other together; after the tenth only how many more.
std::string kernel_list(const std::vector<std::string>& kernels);

// What else a reader of a measured point must know: throttling, a slow clock. "" nothing.
std::string remarks(const Measurement& measured, double full_clock_mhz);
// Joins two remarks.
void add_remark(std::string& text, const std::string& more);

}  // namespace llmprof::bench

#pragma once
// What an operator is: its axes, its tensors, its work, a reference, and ways to compute it. The files of ops/ define
// them, operators.cpp lists them. The engine does everything else from this description: it
// allocates, fills with random data, checks against the reference, rotates buffers, times, and compares with the roof.
// docs/how-to-add/operator.md walks through one.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/axis.h"
#include "base/result.h"
#include "bench/cuda/context.h"
#include "bench/team.h"
#include "bench/type.h"
#include "model/kernel_work.h"

namespace llmprof::bench {

// One point of a sweep: an operator, a type, and a value for each of the operator's axes.

struct Problem {
  std::string op;  // "gemm"
  Type type = Type::kFloat32;
  std::vector<std::pair<std::string, std::int64_t>> axes;  // all of the operator's, in its order

  std::int64_t at(std::string_view axis) const;  // an axis of the operator; anything else is a bug
  Problem with(std::string_view axis, std::int64_t value) const;
  Problem with_most(std::string_view axis, std::int64_t most) const;  // as it is, if that is less
  std::string sizes() const;                                          // "m=1 n=4096 k=4096"
  std::string key() const;  // "gemm bfloat16 m=1 n=4096 k=4096": names the point in a run
  bool operator==(const Problem&) const = default;
};

struct AxisSpec {
  std::string_view name;      // "seq": the flag --seq of `llmprof bench`
  std::string_view fallback;  // values when the user gives none, in the syntax of base/axis.h: "1..64:x4"
  std::int64_t least = 1;
  std::string_view meaning;  // "tokens per sequence"
};

enum class Role : std::uint8_t { kIn, kOut, kInOut };

// What random data a tensor begins with. Never zeros where values matter: they multiply faster than real ones.
struct Fill {
  enum class Kind : std::uint8_t {
    kNormal,       // scale * a normal deviate
    kUniform,      // scale * [0, 1)
    kIndices,      // whole numbers of [0, limit), each drawn alone
    kPermutation,  // 0 … elements - 1 in random order: a page table
    kZero,         // for what an operator counts into
  };
  Kind kind = Kind::kNormal;
  double scale = 1;
  std::int64_t limit = 0;
};

struct TensorSpec {
  std::string_view name;
  Role role = Role::kIn;
  Type type = Type::kFloat32;
  std::int64_t elements = 0;
  Fill fill = {};

  std::int64_t bytes() const { return elements * type_bytes(type); }
};

// Made once for a problem, then called many times, each time with one set of buffers in the order of the tensors.
struct CudaCall {
  std::function<Result<void>(std::span<const cuda::Pointer> tensors, cuda::Stream stream)> enqueue;
  std::string method;                // "cuBLASLt, algorithm 66 of 8 tried", "kernel rmsnorm_bfloat16"
  std::int64_t workspace_bytes = 0;  // device memory beside the tensors
};

// A call of one kernel with the first `kTensors` tensors, then these arguments, by value.
template <std::size_t kTensors, class... Arguments>
CudaCall kernel_call(cuda::Context& context, const std::string& kernel, const cuda::Launch& launch,
                     Arguments... arguments) {
  return {.enqueue =
              [&context, kernel, launch, arguments...](std::span<const cuda::Pointer> t, cuda::Stream) {
                return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
                  return context.launch(kernel, launch, {t[kIndex]..., arguments...});
                }
                (std::make_index_sequence<kTensors>());
              },
          .method = "kernel " + kernel};
}

// One way to compute an operator on a GPU. An implementation that cannot do a problem answers kUnsupported and says
// why; the next one of the operator's list is asked then.
struct CudaImplementation {
  std::string_view name;  // "cublaslt", "cudnn", "kernel"
  Result<CudaCall> (*prepare)(cuda::Context& context, const Problem& problem) = nullptr;
};

struct Operator {
  std::string_view name;     // "rmsnorm"
  std::string_view summary;  // one line for `llmprof bench --list`
  std::span<const AxisSpec> axes;
  std::span<const Type> types;  // that any implementation knows; the first is the default on a GPU
  // Axes that fit each other: heads are a multiple of kv_heads. Each axis alone was already held against its least.
  Result<void> (*check)(const Problem& problem) = nullptr;  // nullptr: all fit
  std::vector<TensorSpec> (*tensors)(const Problem& problem) = nullptr;
  model::KernelWork (*work)(const Problem& problem) = nullptr;
  // A smaller problem of the same kind (same divisibility, same paths) whose reference takes milliseconds.
  Problem (*small)(const Problem& problem) = nullptr;
  // In float64, as written in a textbook. Inputs hold what the type can hold; outputs are sized and to be filled.
  void (*reference)(const Problem& problem, std::span<std::vector<double>> tensors) = nullptr;
  // What is timed on a CPU: float32 unless cpu_types says more. Tensors are raw, of their types.
  void (*cpu)(const Problem& problem, std::span<std::byte* const> tensors, const Team& team) = nullptr;
  std::string_view cpu_method;  // "OpenBLAS sgemm", "loop"
  // Instead of cpu_method, where it depends on what is installed; nullptr: cpu_method.
  std::string (*cpu_method_of)(const Problem& problem) = nullptr;
  std::span<const Type> cpu_types;  // empty: float32 only
  std::span<const CudaImplementation> cuda;
  // Some of the outputs of the problem as it is timed, recomputed on the host; for problems whose whole reference would
  // take too long. nullptr: only the small problem is checked.
  Result<double> (*spot_check)(cuda::Context& context, const Problem& problem,
                               std::span<const cuda::Pointer> tensors) = nullptr;  // relative error
  // For outputs whose error is not to be judged by tolerance(problem.type): 0 wants equality. nullopt: by type.
  std::optional<double> tolerance = std::nullopt;
};

// Defined in ops/.
extern const Operator kGemm, kGroupedGemm, kLinear, kMoe, kResidualAdd, kConv2d, kLstm, kLayernorm, kLayernormGelu,
    kRmsnorm, kResidualRmsnorm, kGelu, kGeluTanh, kSiluMul, kSoftmax, kRope, kKvWrite, kAttentionPrefill,
    kAttentionDecode, kAttentionMixed, kMlaDecode, kCopy, kDequantize, kQuantize, kSampling, kEmbedding;
// All of them, in the order of `llmprof bench --list`.
std::span<const Operator* const> operators();
const Operator* find_operator(std::string_view name);  // nullptr if there is none

// The problem with these axes; those not given take the first value of their fallback. An axis the operator does not
// have, a value under its least, and axes that do not fit each other are errors that name them.
Result<Problem> make_problem(const Operator& op, Type type, std::span<const std::pair<std::string, std::int64_t>> axes);

}  // namespace llmprof::bench

// Matrix products, grouped products and layers of experts on a GPU against their references: every implementation in
// every type, in sizes that divide by everything and by nothing. Needs an NVIDIA GPU with cuBLAS.
// Usage: build/tests/gpu_operators_test

#include <gtest/gtest.h>

#include "bench/check.h"
#include "bench/cuda/blas.h"
#include "bench/cuda/sampler.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

using Axes = std::vector<std::pair<std::string, std::int64_t>>;

Axes gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  return {{"m", m}, {"n", n}, {"k", k}, {"batch", batch}};
}
Axes linear(std::int64_t batch, std::int64_t seq, std::int64_t in, std::int64_t out) {
  return {{"batch", batch}, {"seq", seq}, {"in", in}, {"out", out}};
}
Axes grouped(std::int64_t groups, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {{"groups", groups}, {"m", m}, {"n", n}, {"k", k}};
}
Axes moe(std::int64_t seq, std::int64_t hidden, std::int64_t intermediate, std::int64_t experts, std::int64_t top_k) {
  return {{"seq", seq}, {"hidden", hidden}, {"intermediate", intermediate}, {"experts", experts}, {"top_k", top_k}};
}

struct Case {
  const char* op;
  std::vector<Axes> axes;
};
const std::vector<Case> kCases{
    {"gemm",
     {gemm(1, 1, 1, 1), gemm(64, 128, 256, 1), gemm(1, 256, 512, 3), gemm(33, 131, 257, 1), gemm(130, 144, 80, 2)}},
    {"linear", {linear(2, 37, 256, 128), linear(1, 1, 1024, 512)}},
    // Few, some and many rows a group: each has its kernel. The last ends inside of tiles in every direction.
    {"grouped_gemm",
     {grouped(1, 1, 8, 8), grouped(8, 20, 128, 256), grouped(5, 200, 256, 128), grouped(3, 600, 384, 192),
      grouped(2, 1100, 96, 64), grouped(7, 563, 146, 136)}},
    // One token; more experts than rows; all experts; the tiles of 64 and of 128 rows; 1024 experts.
    {"moe",
     {moe(1, 128, 64, 8, 2), moe(3, 64, 40, 64, 8), moe(9, 72, 48, 4, 4), moe(100, 128, 64, 8, 2),
      moe(300, 136, 72, 6, 3), moe(40, 64, 32, 1024, 16)}},
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.op; }

class GpuProducts : public testing::TestWithParam<Case> {};

// What an implementation says it cannot do is passed over.
void check(cuda::Context& context, const Operator& op, const Problem& problem) {
  for (const CudaImplementation& implementation : op.cuda) {
    const auto call = implementation.prepare(context, problem);
    if (!call) {
      EXPECT_EQ(call.error().code, ErrorCode::kUnsupported) << problem.key() << ": " << call.error().message;
      continue;
    }
    for (const std::uint64_t seed : {1, 2}) {  // twice: what a first call leaves in a workspace must not matter
      const auto error = check_on_gpu(op, problem, context, *call, seed);
      ASSERT_TRUE(error) << problem.key() << ", " << call->method << ": " << error.error().message;
      EXPECT_LE(*error, op.tolerance.value_or(tolerance(problem.type))) << problem.key() << ", " << call->method;
    }
  }
}

TEST_P(GpuProducts, EqualTheirReferences) {
  const auto context = cuda::Context::open(0);
  ASSERT_TRUE(context) << context.error().message;
  const Operator* op = find_operator(GetParam().op);
  ASSERT_NE(op, nullptr);
  for (const Axes& axes : GetParam().axes) {
    for (const Type type : op->types) {
      const auto problem = make_problem(*op, type, axes);
      ASSERT_TRUE(problem) << problem.error().message;
      check(**context, *op, *problem);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, GpuProducts, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.op); });

TEST(GpuBlas, RefusesWhatTheTypeCannot) {
  const auto context = cuda::Context::open(0);
  ASSERT_TRUE(context) << context.error().message;
  const auto blas = (*context)->blas();
  ASSERT_TRUE(blas) << blas.error().message;
  for (const Type type : {Type::kFloat8E4m3, Type::kInt8}) {
    const auto prepared = (*blas)->prepare(cuda::Matmul::dense(type, 16, 24, 32));
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(prepared.error().message.find("multiples of 16"), std::string::npos) << prepared.error().message;
  }
}

TEST(GpuBlas, AProductInAGraphIsTheSameProduct) {
  const auto opened = cuda::Context::open(0);
  ASSERT_TRUE(opened) << opened.error().message;
  cuda::Context& context = **opened;
  for (const char* name : {"gemm", "grouped_gemm", "moe"}) {
    const Operator& op = *find_operator(name);
    const Problem problem = op.small(*make_problem(op, Type::kBfloat16, {}));
    for (const CudaImplementation& implementation : op.cuda) {
      const auto call = implementation.prepare(context, problem);
      ASSERT_TRUE(call) << call.error().message;
      // Once outside, as whoever measures does; then each replay computes anew what was poisoned.
      std::optional<cuda::Context::Graph> graph;
      const CudaCall replayed{.enqueue = [&](std::span<const cuda::Pointer> t, cuda::Stream stream) -> Result<void> {
        LLMPROF_TRY(call->enqueue(t, stream));
        LLMPROF_LET(graph, context.capture([&] { return call->enqueue(t, stream); }));
        const TensorSpec y = op.tensors(problem).back();
        LLMPROF_TRY(context.set_bytes(t.back(), 0xff, y.bytes()));
        return graph->launch();
      }};
      const auto error = check_on_gpu(op, problem, context, replayed, 3);
      ASSERT_TRUE(error) << name << ' ' << implementation.name << ": " << error.error().message;
      EXPECT_LE(*error, tolerance(problem.type)) << name << ' ' << implementation.name;
    }
  }
}

}  // namespace
}  // namespace llmprof::bench

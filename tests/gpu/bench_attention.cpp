// Attention on a GPU against its references, every implementation: sizes that are no multiple of anything, contexts in
// one part and in several, pages, groups of one to forty heads. Needs an NVIDIA GPU. Usage:
// build/tests/gpu_operators_test

#include <gtest/gtest.h>

#include <iostream>

#include "bench/check.h"
#include "bench/operator.h"

namespace llmprof::bench {
namespace {

using Axes = std::vector<std::pair<std::string, std::int64_t>>;

struct Heads {
  std::int64_t all, kv;
};

class GpuAttention : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = cuda::Context::open(0);
    ASSERT_TRUE(opened) << opened.error().message;
    context_ = std::move(*opened);
  }

  // float16 and bfloat16 in every implementation that knows the problem; at least one must.
  void check(std::string_view name, const Axes& axes) {
    const Operator& op = *find_operator(name);
    for (const Type type : {Type::kBfloat16, Type::kFloat16}) {
      const auto problem = make_problem(op, type, axes);
      ASSERT_TRUE(problem) << problem.error().message;
      bool computed = false;
      for (const CudaImplementation& implementation : op.cuda) {
        const auto call = implementation.prepare(*context_, *problem);
        if (!call) {
          EXPECT_EQ(call.error().code, ErrorCode::kUnsupported) << problem->key() << ": " << call.error().message;
          continue;
        }
        computed = true;
        for (const std::uint64_t seed : {1, 2}) {  // twice: what a first call leaves in its workspace must not matter
          const auto error = check_on_gpu(op, *problem, *context_, *call, seed);
          ASSERT_TRUE(error) << problem->key() << ": " << error.error().message;
          EXPECT_LE(*error, tolerance(type)) << problem->key() << ", " << call->method;
        }
      }
      EXPECT_TRUE(computed) << problem->key();
    }
  }

  std::unique_ptr<cuda::Context> context_;
};

TEST_F(GpuAttention, Prefill) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t seq : {1, 17, 64, 127, 257}) {
      check("attention_prefill", {{"batch", 2}, {"seq", seq}, {"heads", 8}, {"kv_heads", 2}, {"head_dim", dim}});
    }
  }
  check("attention_prefill", {{"seq", 300}, {"heads", 3}, {"kv_heads", 3}});
}

TEST_F(GpuAttention, Mixed) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t chunk : {1, 17, 128, 257}) {
      for (const std::int64_t prior : {0, 1, 64, 300}) {
        check("attention_mixed", {{"chunk", chunk},
                                  {"prior", prior},
                                  {"batch", chunk % 2 == 0 ? 0 : 3},
                                  {"context", 160},
                                  {"heads", 8},
                                  {"kv_heads", 2},
                                  {"head_dim", dim},
                                  {"page", 16}});
      }
    }
  }
}

TEST_F(GpuAttention, Decode) {
  for (const std::int64_t dim : {64, 128, 256}) {
    for (const auto [heads, kv_heads] : {Heads{2, 2}, Heads{8, 2}, Heads{24, 2}, Heads{40, 1}}) {
      for (const std::int64_t tokens : {1, 15, 129, 1000}) {
        check("attention_decode",
              {{"batch", 3}, {"context", tokens}, {"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", dim}});
      }
    }
  }
  check("attention_decode", {{"batch", 200}, {"context", 64}, {"heads", 8}, {"kv_heads", 4}});  // one part each
}

TEST_F(GpuAttention, DecodeFromPages) {
  for (const std::int64_t page : {16, 64, 256}) {
    check("attention_decode", {{"batch", 3}, {"context", 512}, {"heads", 8}, {"kv_heads", 2}, {"page", page}});
  }
}

TEST_F(GpuAttention, Latent) {
  for (const std::int64_t heads : {16, 80, 128}) {
    for (const std::int64_t tokens : {1, 65, 500}) {
      check("mla_decode", {{"batch", 2}, {"context", tokens}, {"heads", heads}});
    }
  }
  check("mla_decode", {{"batch", 80}, {"context", 130}});  // one part each
  check("mla_decode", {{"batch", 2}, {"context", 512}, {"page", 16}});
}

}  // namespace
}  // namespace llmprof::bench

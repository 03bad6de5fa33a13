// Kernels between the products of a small model: each gets the operator that the model has there, or the block around
// those it could be. Names are those of real kernels.

#include "analyze/passes/positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::analyze {
namespace {

using enum KernelClass;
using testing::ElementsAre;

TEST(KernelClass, FromNamesOfLibraries) {
  const auto is = [](std::string_view name, KernelClass expected) {
    EXPECT_EQ(class_of_kernel(name), expected) << name;
  };
  for (const char* attention :
       {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0",
        "void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*, void const*, void*)",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4>>",
        "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4>>",
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>)",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<PosEncodingMode::kNone>",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits>",
        "void vllm::paged_attention_v2_kernel<unsigned short, unsigned short, 128, 16>", "kernel_unified_attention_2d",
        "_fwd_grouped_kernel_stage1", "_attn_fwd", "triton_tem_fused_flex_attention_0",
        "void flash_attn_ext_f16<128, 128, 8, 1>(char const*)",
        "mmha::masked_multihead_attention_kernel<unsigned short>"}) {
    is(attention, kAttention);
  }
  is("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>", kCacheWrite);
  is("void flashinfer::AppendPagedKVCacheKernel<128u, 16u>", kCacheWrite);
  is("at::native::index_elementwise_kernel<128, 4, at::native::index_copy_kernel_impl<at::native::OpaqueType<2> > >",
     kCacheWrite);
  is("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)", kNorm);
  is("at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>", kNorm);
  is("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", kNorm);
  is("fused_residual_forward_kernel5", kNorm);
  is("void vllm::rotary_embedding_kernel<c10::BFloat16, true>", kRope);
  is("void rope_neox<true, false, float>(float const*)", kRope);
  is("void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel)>", kActivation);
  is("triton_poi_fused_mul_silu_2", kActivation);
  is("at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>",
     kEmbedding);
  is("at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>>>",
     kMean);
  is("at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int>>",
     kSampling);
  is("at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, at::native::SoftMaxForwardEpilogue>",
     kSoftmax);
  is("at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, at::native::LogSoftMaxForwardEpilogue>", kLoss);
  is("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", kProduct);
  is("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", kCollective);
  is("at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>",
     kSum);
  is("at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>, std::array<char*, 2ul>>",
     kMoves);
  is("global_norm_squared_kernel<__nv_bfloat16>", kUnknown);
}

// Hidden 8, 4 heads of 2, 2 of them for keys and values, norms of q and k, MLP 16, vocabulary 50.
model::Graph qwen3() {
  model::Config config;
  config.family = "qwen3";
  config.hidden = 8;
  config.vocab = 50;
  set_layers(config, 2,
             {.attention = {.heads = 4, .kv_heads = 2, .qk_dim = 2, .v_dim = 2, .q_norm = 2, .k_norm = 2},
              .mlp = {.width = 16}});
  return model::Graph(config);
}

// Passes over it, 10 ns a call and 90 ns apart, and kernels launched between them.
class Program {
 public:
  Program() {
    for (int i = 0; i < 2; ++i) pass();
    const Products products = products_of(qwen3(), count_sizes(calls_, Reading::kUsual));
    positions_ = Positions(products, calls_, match_calls(products, calls_, {Expect::kAny}), strings_);
  }
  // Kernels launched after call `after` of the second pass, -1: before its first; in layer 0 calls 0 to 6 are q, k, v,
  // o, gate, up, down.
  std::vector<std::string> between(int after, const std::vector<KernelClass>& kernels) {
    std::vector<Positions::Kernel> asked;
    std::int64_t at = 100 * (kCalls + after) + 20;
    for (const KernelClass is : kernels) asked.push_back({.owner = 1, .at_ns = at++, .is = is});
    std::vector<std::string> modules;
    for (const Positions::Place& place : positions_.place(asked)) modules.emplace_back(strings_.text(place.module));
    return modules;
  }
  const Positions& positions() const { return positions_; }

 private:
  static constexpr int kCalls = 15;
  void product(std::int64_t in, std::int64_t out) {
    const CallShape shape{.m = 6, .n = out, .k = in, .order = CallShape::Order::kRowMajor};
    const auto found = std::ranges::find(calls_.shapes, shape);
    calls_.shape.push_back(static_cast<std::uint32_t>(found - calls_.shapes.begin()));
    if (found == calls_.shapes.end()) calls_.shapes.push_back(shape);
    calls_.process_id.push_back(1);
    calls_.thread_id.push_back(1);
    calls_.begin_ns.push_back(now_);
    calls_.end_ns.push_back(now_ + 10);
    calls_.segment.push_back(0);
    now_ += 100;
  }
  void pass() {
    for (int layer = 0; layer < 2; ++layer) {
      for (const std::int64_t out : {8, 4, 4, 8, 16, 16}) product(8, out);
      product(16, 8);
    }
    product(8, 50);
  }

  trace::Strings strings_;
  Calls calls_;
  Positions positions_;
  std::int64_t now_ = 0;
};

TEST(Positions, AttentionStandsBetweenItsProducts) {
  Program program;
  EXPECT_THAT(program.between(2, {kRope, kCacheWrite, kMoves, kAttention, kUnknown}),
              ElementsAre("layers.0.self_attn.rope", "layers.0.self_attn.core", "layers.0.self_attn.core",
                          "layers.0.self_attn.core", "layers.0.self_attn.core"));
  // What may be the rotation, or a copy for attention, belongs to the block.
  EXPECT_THAT(program.between(2, {kMoves, kAttention}), ElementsAre("layers.0.self_attn", "layers.0.self_attn.core"));
}

TEST(Positions, NormsMadeOfManyKernels) {
  Program program;
  EXPECT_THAT(program.between(3, {kSum, kMoves, kBeforeMean, kMean, kMoves, kAfterMean, kMoves}),
              ElementsAre("layers.0", "layers.0.post_attention_layernorm", "layers.0.post_attention_layernorm",
                          "layers.0.post_attention_layernorm", "layers.0.post_attention_layernorm",
                          "layers.0.post_attention_layernorm", "layers.0.post_attention_layernorm"));
  // The sum belongs to the layer that ends, the norm to the one that begins; without a sum the first could be either.
  EXPECT_THAT(program.between(6, {kSum, kNorm}), ElementsAre("layers.0", "layers.1.input_layernorm"));
  EXPECT_THAT(program.between(6, {kMoves, kNorm}), ElementsAre("layers.1", "layers.1.input_layernorm"));
  EXPECT_THAT(program.between(6, {kUnknown}), ElementsAre("layers.1"));
  EXPECT_THAT(program.between(13, {kSum, kNorm}), ElementsAre("layers.1", "norm"));
}

TEST(Positions, ANormMayFollowItsProductAtOnce) {
  Program program;
  EXPECT_THAT(program.between(0, {kBeforeMean, kMean, kMoves}),
              ElementsAre("layers.0.self_attn.q_norm", "layers.0.self_attn.q_norm", "layers.0.self_attn.q_norm"));
  EXPECT_THAT(program.between(0, {kMoves, kRope}), ElementsAre("layers.0.self_attn", "layers.0.self_attn"));
  EXPECT_THAT(program.between(1, {kNorm}), ElementsAre("layers.0.self_attn.k_norm"));
  EXPECT_THAT(program.between(2, {kNorm, kNorm, kRope, kAttention}),
              ElementsAre("layers.0.self_attn.q_norm", "layers.0.self_attn.k_norm", "layers.0.self_attn.rope",
                          "layers.0.self_attn.core"));
  EXPECT_THAT(program.between(2, {kNorm, kAttention}), ElementsAre("layers.0.self_attn", "layers.0.self_attn.core"));
}

TEST(Positions, ActivationsAndWhatIsAloneWithOneOperator) {
  Program program;
  EXPECT_THAT(program.between(4, {kActivation}), ElementsAre("layers.0.mlp.act"));
  EXPECT_THAT(program.between(5, {kMoves}), ElementsAre("layers.0.mlp.act"));
}

TEST(Positions, BetweenPassesOnlyWhatNamesSay) {
  Program program;
  EXPECT_THAT(
      program.between(-1, {kMoves, kSampling, kMoves, kEmbedding, kMoves, kNorm, kMoves}),
      ElementsAre("", "sampling", "", "embed_tokens", "", "layers.0.input_layernorm", "layers.0.input_layernorm"));
  EXPECT_THAT(program.between(14, {kSampling, kMoves, kSampling, kMoves}),
              ElementsAre("sampling", "sampling", "sampling", ""));
}

TEST(Positions, OtherThreadsAndCallsThemselvesAreLeftAlone) {
  Program program;
  const std::vector<Positions::Place> places = program.positions().place(
      {{.owner = 2, .at_ns = 220, .is = kAttention}, {.owner = 1, .at_ns = 205, .is = kAttention}});
  EXPECT_EQ(places[0].module.id, 0u);
  EXPECT_EQ(places[1].module.id, 0u);
}

}  // namespace
}  // namespace llmprof::analyze

#include "analyze/passes/kernel_class.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace llmprof::analyze {
namespace {

struct Row {
  KernelClass is;
  std::string_view word;  // anywhere in the name, in lower case
  std::string_view from;  // whose kernels are called so
};

using enum KernelClass;

// The first row that fits decides: collectives and fused attention before the products and reductions whose words
// their names hold too.
constexpr Row kRows[] = {
    {kCollective, "nccl", "NCCL"},
    {kCollective, "rccl", "RCCL"},
    {kCollective, "all_reduce", "PyTorch symmetric memory, SGLang"},
    {kCollective, "cross_device_reduce", "vLLM custom all-reduce"},
    {kCollective, "allreduce", "TensorRT-LLM, FlashInfer"},

    {kCacheWrite, "reshape_and_cache", "vLLM"},
    {kCacheWrite, "concat_and_cache", "vLLM, latent attention"},
    {kCacheWrite, "kv_cache_kernel", "Triton and TensorRT-LLM: store, set, append or update of the cache"},
    {kCacheWrite, "appendpagedkv", "FlashInfer: AppendPagedKVCacheKernel"},
    {kCacheWrite, "store_kvcache", "Triton"},
    {kCacheWrite, "index_copy", "PyTorch: static and paged caches of transformers"},
    {kCacheWrite, "k_set_rows", "llama.cpp"},

    {kAttention, "flash_fwd", "FlashAttention 2, FlashMLA; PyTorch's copy of it"},
    {kAttention, "flash_bwd", "FlashAttention 2"},
    {kAttention, "flashattn", "FlashAttention 3: FlashAttnFwdSm90, FlashAttnBwdSm90"},
    {kAttention, "flash_attn", "llama.cpp: flash_attn_ext_f16, flash_attn_tile, flash_attn_combine_results"},
    {kAttention, "flashmla", "FlashMLA"},
    {kAttention, "flash_fprop", "cuDNN: sdpa_sm90_flash_fprop"},
    {kAttention, "flash_bprop", "cuDNN"},
    {kAttention, "sdpa", "cuDNN, MPS"},
    {kAttention, "compute_dot_do_o", "cuDNN, backward"},
    {kAttention, "convert_dq_to_16bits", "cuDNN, backward"},
    {kAttention, "fmha", "CUTLASS, xformers and PyTorch (fmha_cutlassF), TensorRT-LLM (fmha_v2), cuDNN"},
    {kAttention, "attentionkernel", "CUTLASS and xformers: AttentionKernel, AttentionBackwardKernel"},
    {kAttention, "efficient_attention", "xformers, PyTorch"},
    {kAttention, "paged_attention", "vLLM: paged_attention_v1, v2"},
    {kAttention, "pagedattention", "TensorRT-LLM"},
    {kAttention, "paged_attn", "Triton"},
    {kAttention, "pagedkvcache", "FlashInfer: BatchPrefillWithPagedKVCache, BatchDecodeWithPagedKVCache"},
    {kAttention, "raggedkvcache", "FlashInfer: BatchPrefillWithRaggedKVCache"},
    {kAttention, "batchdecode", "FlashInfer"},
    {kAttention, "batchprefill", "FlashInfer"},
    {kAttention, "singledecode", "FlashInfer"},
    {kAttention, "singleprefill", "FlashInfer"},
    {kAttention, "mergestate", "FlashInfer: PersistentVariableLengthMergeStates"},
    {kAttention, "merge_attn_states", "vLLM"},
    {kAttention, "unified_attention", "vLLM, Triton"},
    {kAttention, "masked_multihead", "FasterTransformer, TensorRT-LLM"},
    {kAttention, "multihead_attention", "FasterTransformer"},
    {kAttention, "kernel_mha", "TensorRT-LLM XQA"},
    {kAttention, "xqa_kernel", "TensorRT-LLM XQA"},
    {kAttention, "attn_fwd", "Triton tutorials and kernels made of them"},
    {kAttention, "attn_bwd", "Triton"},
    {kAttention, "attention_fwd", "Triton"},
    {kAttention, "flex_attention", "PyTorch FlexAttention: triton_tem_fused_flex_attention"},
    {kAttention, "_fwd_kernel_stage", "SGLang, Triton decode attention: _fwd_kernel_stage1, 2"},
    {kAttention, "_fwd_grouped_kernel_stage", "SGLang, Triton decode attention"},
    {kAttention, "mla_decode", "FlashInfer, SGLang"},
    {kAttention, "attention_forward", "plain CUDA"},
    {kAttention, "attention_backward", "plain CUDA"},

    {kLoss, "nll_loss", "PyTorch"},
    {kLoss, "cross_entropy", "PyTorch, Triton"},
    {kLoss, "logsoftmax", "PyTorch: cunn_SoftMaxForward with LogSoftMaxForwardEpilogue"},
    {kLoss, "log_softmax", "PyTorch, Inductor"},
    {kLoss, "fused_classifier", "llm.c"},

    {kSampling, "argmax", "PyTorch: ArgMaxOps"},
    {kSampling, "argmin", "PyTorch"},
    {kSampling, "topk", "PyTorch, vLLM"},
    {kSampling, "multinomial", "PyTorch"},
    {kSampling, "sampling", "FlashInfer, vLLM, TensorRT-LLM"},

    {kSoftmax, "softmax", "PyTorch: softmax_warp_forward, cunn_SoftMaxForward; Megatron, Triton, Inductor, llm.c"},
    {kSoftmax, "soft_max", "llama.cpp"},

    {kNorm, "layer_norm", "PyTorch: vectorized_layer_norm_kernel; Triton"},
    {kNorm, "layernorm", "llm.c, FasterTransformer"},
    {kNorm, "rms_norm", "vLLM: rms_norm_kernel, fused_add_rms_norm_kernel; llama.cpp"},
    {kNorm, "rmsnorm", "FlashInfer, SGLang, TensorRT-LLM"},
    {kNorm, "fused_residual_forward", "llm.c: the sum and the norm behind it"},
    {kNorm, "mean_mul_pow_rsqrt", "Inductor"},
    {kNorm, "native_layer_norm", "Inductor"},

    {kRope, "rotary", "vLLM: rotary_embedding_kernel; FlashAttention"},
    {kRope, "rope_", "llama.cpp: rope_norm, rope_neox; SGLang"},
    {kRope, "_rope", "Triton, FlashInfer"},
    {kRope, "applyrope", "FlashInfer"},
    {kRope, "qkrope", "FlashInfer"},

    {kAttention, "attention", "others"},  // behind the norms and rotations whose names hold it too

    {kActivation, "act_and_mul", "vLLM, SGLang"},
    {kActivation, "silu", "PyTorch, Inductor, vLLM"},
    {kActivation, "gelu", "PyTorch, Inductor, llm.c"},
    {kActivation, "swiglu", "Triton, TensorRT-LLM"},
    {kActivation, "relu", "PyTorch"},

    {kEmbedding, "indexselect", "PyTorch"},
    {kEmbedding, "vectorized_gather", "PyTorch"},
    {kEmbedding, "embedding", "PyTorch, Inductor, TensorRT-LLM"},
    {kEmbedding, "compute_grad_weight", "PyTorch, backward"},
    {kEmbedding, "sum_and_scatter", "PyTorch, backward"},
    {kEmbedding, "k_get_rows", "llama.cpp"},
    {kEmbedding, "encoder_forward", "llm.c"},
    {kEmbedding, "encoder_backward", "llm.c"},
    {kEmbedding, "wte_backward", "llm.c"},
    {kEmbedding, "wpe_backward", "llm.c"},

    {kMean, "meanops", "PyTorch"},
    {kMean, "welfordops", "PyTorch"},
    {kBeforeMean, "pow_tensor_scalar", "PyTorch"},
    {kAfterMean, "rsqrt_kernel", "PyTorch"},

    {kProduct, "gemm", "cuBLAS, CUTLASS, Triton"},
    {kProduct, "gemv", "cuBLAS"},
    {kProduct, "nvjet", "cuBLAS"},
    {kProduct, "cutlass", "CUTLASS"},
    {kProduct, "splitk", "cuBLAS: splitKreduce_kernel"},
    {kProduct, "mul_mat", "llama.cpp"},

    {kSum, "cudafunctor_add", "PyTorch"},
    {kSum, "fused_add_", "Inductor"},

    {kMoves, "elementwise", "PyTorch"},
    {kMoves, "catarray", "PyTorch"},
    {kMoves, "index_", "PyTorch"},
    {kMoves, "indexcopy", "PyTorch"},
    {kMoves, "copy_kernel", "PyTorch"},
    {kMoves, "reduce_kernel", "PyTorch"},
    {kMoves, "triton_poi", "Inductor"},
    {kMoves, "triton_red", "Inductor"},
    {kMoves, "triton_per", "Inductor"},
    {kMoves, "scatter_gather", "PyTorch"},
};

}  // namespace

KernelClass class_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Row& row : kRows) {
    if (lower.find(row.word) != std::string::npos) return row.is;
  }
  return kUnknown;
}

std::string_view kernel_class_title(KernelClass kernel_class) {
  switch (kernel_class) {
    case kProduct:
      return "GEMM";
    case kAttention:
      return "attention";
    case kCollective:
      return "communication";
    case kNorm:
    case kBeforeMean:
    case kMean:
    case kAfterMean:
      return "norm";
    case kActivation:
      return "activation";
    case kLoss:
    case kSampling:
    case kSoftmax:
      return "softmax, loss, sampling";
    case kRope:
    case kCacheWrite:
    case kEmbedding:
    case kSum:
    case kMoves:
      return "elementwise, copy";
    case kUnknown:
      break;
  }
  return "other";
}

}  // namespace llmprof::analyze

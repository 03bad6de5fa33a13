#pragma once
// What a kernel does, as far as its name says: the words that libraries put into the names of their kernels. A class
// is weak evidence alone; together with its place among the model's products it tells the operator (positions.h).

#include <cstdint>
#include <string_view>

namespace llmprof::analyze {

enum class KernelClass : std::uint8_t {
  kUnknown,
  kAttention,  // fused: flash, cuDNN, paged, Triton, xformers, their combining kernels
  kProduct,    // of matrices
  kCollective,
  kLoss,
  kSampling,
  kSoftmax,
  kNorm,        // a whole norm
  kRope,        // the rotation of q and k
  kCacheWrite,  // new keys and values
  kActivation,
  kEmbedding,   // rows of a table: also other lookups
  kBeforeMean,  // of a norm made of several kernels: squares
  kMean,        // its mean or variance
  kAfterMean,   // its reciprocal root
  kSum,         // of two tensors: a residual connection
  kMoves,       // other element-wise work, copies, concatenation, indexing
};

KernelClass class_of_kernel(std::string_view name);
// For readers, several together: "GEMM", "attention", "norm", … "other".
std::string_view kernel_class_title(KernelClass kernel_class);

}  // namespace llmprof::analyze

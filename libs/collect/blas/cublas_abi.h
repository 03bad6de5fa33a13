#pragma once
// What we need to know of cuBLAS and cuBLASLt, without their headers: where in a call which argument stands, and the
// numbers they give to types. cublas_abi_test.cpp compares it with the real headers where those exist.
//
// No argument is a floating-point number: each is one word in a register or on the stack.

#include <cstdint>

namespace llmprof::collect::blas {

// Positions of arguments, from 0. The first is always the handle, so 0 is "has none".
struct Signature {
  std::uint8_t arguments;
  std::uint8_t trans_a, trans_b;  // trans_b 0: a product of matrix and vector
  std::uint8_t m, n, k;
  std::uint8_t type_a, type_b, type_c, compute;
  std::uint8_t batch;
  std::uint8_t groups, group_sizes;  // grouped: these and transposes, m, n, k are arrays in host memory
};

// clang-format off
inline constexpr Signature kGemm                 {14, 1, 2, 3, 4, 5,  0,  0,  0,  0,  0,  0,  0};
inline constexpr Signature kGemmEx               {19, 1, 2, 3, 4, 5,  8, 11, 15, 17,  0,  0,  0};
inline constexpr Signature kTypedGemm            {17, 1, 2, 3, 4, 5,  8, 11, 15,  0,  0,  0,  0};
inline constexpr Signature kGemmBatched          {15, 1, 2, 3, 4, 5,  0,  0,  0,  0, 14,  0,  0};
inline constexpr Signature kGemmBatchedEx        {20, 1, 2, 3, 4, 5,  8, 11, 15, 18, 17,  0,  0};
inline constexpr Signature kGemmStridedBatched   {18, 1, 2, 3, 4, 5,  0,  0,  0,  0, 17,  0,  0};
inline constexpr Signature kGemmStridedBatchedEx {23, 1, 2, 3, 4, 5,  8, 12, 17, 21, 20,  0,  0};
inline constexpr Signature kGemmGrouped          {16, 1, 2, 3, 4, 5,  0,  0,  0,  0,  0, 14, 15};
inline constexpr Signature kGemmGroupedEx        {20, 1, 2, 3, 4, 5,  8, 11, 15, 19,  0, 17, 18};
inline constexpr Signature kGemv                 {12, 1, 0, 2, 3, 0,  0,  0,  0,  0,  0,  0,  0};
inline constexpr Signature kGemvBatched          {13, 1, 0, 2, 3, 0,  0,  0,  0,  0, 12,  0,  0};
inline constexpr Signature kGemvStridedBatched   {16, 1, 0, 2, 3, 0,  0,  0,  0,  0, 15,  0,  0};
inline constexpr Signature kLtMatmul             {16, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0,  0};
// clang-format on

// cudaDataType
enum CudaType : std::int32_t {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kComplex32 = 4,
  kComplex64 = 5,
  kBrain16 = 14,
};
inline constexpr std::int32_t kCudaTypes = 34;

// cublasComputeType_t. Smaller numbers stand for a cudaDataType (before CUDA 11).
enum ComputeType : std::int32_t {
  kCompute16 = 64,
  kCompute32 = 68,
  kCompute64 = 70,
  kComputeTf32 = 77,
  kFirstCompute = 64,
  kLastCompute = 79
};

// cublasMath_t: low bits
inline constexpr std::int32_t kMathModeMask = 0xf, kMathModeTf32 = 3;

// What a function's name says of types; arguments of the call come first.
struct Types {
  std::int32_t a, c, compute;
};
inline constexpr Types kTypesS{kReal32, kReal32, kCompute32}, kTypesD{kReal64, kReal64, kCompute64};
inline constexpr Types kTypesC{kComplex32, kComplex32, kCompute32}, kTypesZ{kComplex64, kComplex64, kCompute64};
inline constexpr Types kTypesH{kReal16, kReal16, kCompute16};
inline constexpr Types kTypesHSH{kReal16, kReal16, kCompute32}, kTypesHSS{kReal16, kReal32, kCompute32};
inline constexpr Types kTypesTST{kBrain16, kBrain16, kCompute32}, kTypesTSS{kBrain16, kReal32, kCompute32};
inline constexpr Types kTypesEx{-1, -1, -1};

// cublasLtMatmul's arguments, and the attributes that are asked for.
inline constexpr std::size_t kLtDescriptor = 1, kLtLayoutA = 4, kLtLayoutB = 6, kLtLayoutD = 11, kLtAlgorithm = 12;
inline constexpr std::size_t kLtOpaqueBytes = 64;  // of a layout and of an algorithm: plain data, no pointers
enum LtLayoutAttribute : std::int32_t { kLtType = 0, kLtOrder = 1, kLtRows = 2, kLtColumns = 3, kLtBatch = 5 };
enum LtDescriptorAttribute : std::int32_t {
  kLtCompute = 0,
  kLtTransA = 3,
  kLtTransB = 4,
  kLtEpilogue = 7,
  kLtScalePointerA = 17,
  kLtScalePointerB = 18,
  kLtScaleModeA = 31,
  kLtScaleModeB = 32
};
enum LtAlgorithmAttribute : std::int32_t {
  kLtAlgorithmId = 0,
  kLtTile = 1,
  kLtSplitK = 2,
  kLtStages = 6,
  kLtCluster = 8
};
inline constexpr std::int32_t kLtRowMajor = 1;

// Lists of 12 to 23 words, for declarations and for calls.
#define LLMPROF_PARAMETERS_12 \
  Word a0, Word a1, Word a2, Word a3, Word a4, Word a5, Word a6, Word a7, Word a8, Word a9, Word a10, Word a11
#define LLMPROF_PARAMETERS_13 LLMPROF_PARAMETERS_12, Word a12
#define LLMPROF_PARAMETERS_14 LLMPROF_PARAMETERS_13, Word a13
#define LLMPROF_PARAMETERS_15 LLMPROF_PARAMETERS_14, Word a14
#define LLMPROF_PARAMETERS_16 LLMPROF_PARAMETERS_15, Word a15
#define LLMPROF_PARAMETERS_17 LLMPROF_PARAMETERS_16, Word a16
#define LLMPROF_PARAMETERS_18 LLMPROF_PARAMETERS_17, Word a17
#define LLMPROF_PARAMETERS_19 LLMPROF_PARAMETERS_18, Word a18
#define LLMPROF_PARAMETERS_20 LLMPROF_PARAMETERS_19, Word a19
#define LLMPROF_PARAMETERS_23 LLMPROF_PARAMETERS_20, Word a20, Word a21, Word a22
#define LLMPROF_WORDS_12 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11
#define LLMPROF_WORDS_13 LLMPROF_WORDS_12, a12
#define LLMPROF_WORDS_14 LLMPROF_WORDS_13, a13
#define LLMPROF_WORDS_15 LLMPROF_WORDS_14, a14
#define LLMPROF_WORDS_16 LLMPROF_WORDS_15, a15
#define LLMPROF_WORDS_17 LLMPROF_WORDS_16, a16
#define LLMPROF_WORDS_18 LLMPROF_WORDS_17, a17
#define LLMPROF_WORDS_19 LLMPROF_WORDS_18, a18
#define LLMPROF_WORDS_20 LLMPROF_WORDS_19, a19
#define LLMPROF_WORDS_23 LLMPROF_WORDS_20, a20, a21, a22

// LLMPROF_PER_SIGNATURE(PARAMETERS, GemmEx) is LLMPROF_PARAMETERS_19.
#define LLMPROF_COUNT_Gemm 14
#define LLMPROF_COUNT_GemmEx 19
#define LLMPROF_COUNT_TypedGemm 17
#define LLMPROF_COUNT_GemmBatched 15
#define LLMPROF_COUNT_GemmBatchedEx 20
#define LLMPROF_COUNT_GemmStridedBatched 18
#define LLMPROF_COUNT_GemmStridedBatchedEx 23
#define LLMPROF_COUNT_GemmGrouped 16
#define LLMPROF_COUNT_GemmGroupedEx 20
#define LLMPROF_COUNT_Gemv 12
#define LLMPROF_COUNT_GemvBatched 13
#define LLMPROF_COUNT_GemvStridedBatched 16
#define LLMPROF_COUNT_LtMatmul 16
#define LLMPROF_PASTE_(a, b) LLMPROF_##a##_##b
#define LLMPROF_PASTE(a, b) LLMPROF_PASTE_(a, b)
#define LLMPROF_PER_SIGNATURE(what, signature) LLMPROF_PASTE(what, LLMPROF_COUNT_##signature)

}  // namespace llmprof::collect::blas

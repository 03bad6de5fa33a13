// Our idea of cuBLAS against the real headers: every function exists, has as many arguments, and each position that we
// read holds what we take it for.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

#include "collect/blas/cublas_abi.h"

namespace llmprof::collect::blas {
namespace {

template <class... A>
std::tuple<A...> arguments_of(cublasStatus_t (*)(A...));

template <class Arguments, std::size_t Position, class Wanted>
constexpr bool has() {  // position 0: the function has no such argument
  if constexpr (Position == 0) {
    return true;
  } else {
    return std::is_same_v<std::tuple_element_t<Position, Arguments>, Wanted>;
  }
}

template <class Arguments, const Signature& at, int Bits>
constexpr bool matches() {
  using Integer = std::conditional_t<Bits == 32, int, std::int64_t>;
  constexpr bool grouped = at.groups != 0;
  using Number = std::conditional_t<grouped, const Integer*, Integer>;
  using Operation = std::conditional_t<grouped, const cublasOperation_t*, cublasOperation_t>;
  return std::tuple_size_v<Arguments> == at.arguments && has<Arguments, at.trans_a, Operation>() &&
         has<Arguments, at.trans_b, Operation>() && has<Arguments, at.m, Number>() && has<Arguments, at.n, Number>() &&
         has<Arguments, at.k, Number>() && has<Arguments, at.type_a, cudaDataType>() &&
         has<Arguments, at.type_b, cudaDataType>() && has<Arguments, at.type_c, cudaDataType>() &&
         has<Arguments, at.compute, cublasComputeType_t>() && has<Arguments, at.batch, Integer>() &&
         has<Arguments, at.groups, Integer>() && has<Arguments, at.group_sizes, const Integer*>();
}

// The C++ header overloads three names for the sake of old programs: the library's own is the one that differs from its
// 64-bit sister in nothing but the integers.
template <class T>
using Narrow = std::conditional_t<std::is_same_v<T, std::int64_t>, int, T>;
template <class... A>
auto narrowed(cublasStatus_t (*)(A...)) -> cublasStatus_t (*)(Narrow<A>...);

#define OVERLOADED_cublasGemmEx ~, 1
#define OVERLOADED_cublasGemmBatchedEx ~, 1
#define OVERLOADED_cublasGemmStridedBatchedEx ~, 1
#define SECOND_(a, b, ...) b
#define SECOND(...) SECOND_(__VA_ARGS__)
#define POINTER_0(name) &::name
#define POINTER_1(name) static_cast<decltype(narrowed(&::name##_64))>(&::name)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define POINTER(name) PASTE(POINTER_, SECOND(OVERLOADED_##name, 0, 0))(name)

TEST(CublasAbi, EveryFunctionIsAsInTheHeaders) {
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) \
  EXPECT_TRUE((matches<decltype(arguments_of(POINTER(name))), k##signature, bits>())) << #name;
#include "collect/blas/functions.def"
}

TEST(CublasAbi, NumbersAreTheHeaders) {
  EXPECT_EQ(int(kReal32), int(CUDA_R_32F));
  EXPECT_EQ(int(kReal64), int(CUDA_R_64F));
  EXPECT_EQ(int(kReal16), int(CUDA_R_16F));
  EXPECT_EQ(int(kComplex32), int(CUDA_C_32F));
  EXPECT_EQ(int(kComplex64), int(CUDA_C_64F));
  EXPECT_EQ(int(kBrain16), int(CUDA_R_16BF));
  EXPECT_EQ(int(kCompute16), int(CUBLAS_COMPUTE_16F));
  EXPECT_EQ(int(kCompute32), int(CUBLAS_COMPUTE_32F));
  EXPECT_EQ(int(kCompute64), int(CUBLAS_COMPUTE_64F));
  EXPECT_EQ(int(kComputeTf32), int(CUBLAS_COMPUTE_32F_FAST_TF32));
  EXPECT_EQ(int(kMathModeTf32), int(CUBLAS_TF32_TENSOR_OP_MATH));
  EXPECT_EQ(int(kLtRowMajor), int(CUBLASLT_ORDER_ROW));
}

TEST(CublasAbi, LtAttributesAreTheHeaders) {
  EXPECT_EQ(kLtOpaqueBytes, sizeof(cublasLtMatrixLayoutOpaque_t));
  EXPECT_EQ(kLtOpaqueBytes, sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(int(kLtType), int(CUBLASLT_MATRIX_LAYOUT_TYPE));
  EXPECT_EQ(int(kLtOrder), int(CUBLASLT_MATRIX_LAYOUT_ORDER));
  EXPECT_EQ(int(kLtRows), int(CUBLASLT_MATRIX_LAYOUT_ROWS));
  EXPECT_EQ(int(kLtColumns), int(CUBLASLT_MATRIX_LAYOUT_COLS));
  EXPECT_EQ(int(kLtBatch), int(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
  EXPECT_EQ(int(kLtCompute), int(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE));
  EXPECT_EQ(int(kLtTransA), int(CUBLASLT_MATMUL_DESC_TRANSA));
  EXPECT_EQ(int(kLtTransB), int(CUBLASLT_MATMUL_DESC_TRANSB));
  EXPECT_EQ(int(kLtEpilogue), int(CUBLASLT_MATMUL_DESC_EPILOGUE));
  EXPECT_EQ(int(kLtScalePointerA), int(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
  EXPECT_EQ(int(kLtScalePointerB), int(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER));
  EXPECT_EQ(int(kLtScaleModeA), int(CUBLASLT_MATMUL_DESC_A_SCALE_MODE));
  EXPECT_EQ(int(kLtScaleModeB), int(CUBLASLT_MATMUL_DESC_B_SCALE_MODE));
  EXPECT_EQ(int(kLtAlgorithmId), int(CUBLASLT_ALGO_CONFIG_ID));
  EXPECT_EQ(int(kLtTile), int(CUBLASLT_ALGO_CONFIG_TILE_ID));
  EXPECT_EQ(int(kLtSplitK), int(CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  EXPECT_EQ(int(kLtStages), int(CUBLASLT_ALGO_CONFIG_STAGES_ID));
  EXPECT_EQ(int(kLtCluster), int(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

TEST(CublasAbi, LtArgumentsAreTheHeaders) {
  using Arguments = decltype(arguments_of(&::cublasLtMatmul));
  EXPECT_TRUE((has<Arguments, kLtDescriptor, cublasLtMatmulDesc_t>()));
  EXPECT_TRUE((has<Arguments, kLtLayoutA, cublasLtMatrixLayout_t>()));
  EXPECT_TRUE((has<Arguments, kLtLayoutB, cublasLtMatrixLayout_t>()));
  EXPECT_TRUE((has<Arguments, kLtLayoutD, cublasLtMatrixLayout_t>()));
  EXPECT_TRUE((has<Arguments, kLtAlgorithm, const cublasLtMatmulAlgo_t*>()));
}

TEST(CublasAbi, TilesStagesAndClustersAreTheHeaders) {
  int tile = 0;
#define TILE(m, n) EXPECT_EQ(++tile, int(CUBLASLT_MATMUL_TILE_##m##x##n));
#define STAGES(k, count, number) EXPECT_EQ(number, int(CUBLASLT_MATMUL_STAGES_##k##x##count));
#define CLUSTER(a, b, number) EXPECT_EQ(number, int(CUBLASLT_CLUSTER_SHAPE_##a##x##b##x1));
#include "collect/blas/cublas_numbers.def"
}

}  // namespace
}  // namespace llmprof::collect::blas

// Calls of (fake) cuBLAS libraries from the program to the decoded log.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "collect/blas/call.h"
#include "collect/testing/test_log.h"

namespace llmprof::collect::testing {
namespace {

using ::testing::EndsWith;
using ::testing::IsSupersetOf;
using wire::LossKind;
using wire::RecordKind;

constexpr std::int64_t kBig = std::int64_t{1} << 33;  // added to 64-bit sizes by client_cublas.cpp

struct GpuCall {
  std::string function, types, compute;
  std::int64_t m, n, k;
  std::uint32_t batch;
  int trans_a, trans_b;
  bool operator==(const GpuCall&) const = default;
};
void PrintTo(const GpuCall& call, std::ostream* out) {
  *out << call.function << " " << call.types << " in " << call.compute << " " << call.m << "x" << call.n << "x"
       << call.k << " batch " << call.batch << " " << call.trans_a << call.trans_b;
}

struct Shapes {
  std::vector<GpuCall> calls;
  std::vector<std::string> libraries, algorithms, epilogues, scalings;
};

Shapes shapes_of(const Log& log) {
  std::map<wire::DefinitionId, wire::GemmShapeRecord> definitions;
  Shapes result;
  for (const Entry& entry : log.entries) {
    if (entry.record.kind == RecordKind::kGemmShape) definitions[entry.record.gemm_shape.id] = entry.record.gemm_shape;
    if (entry.record.kind != RecordKind::kGpuGemm) continue;
    const wire::GpuGemmRecord& gemm = entry.record.gpu_gemm;
    EXPECT_LE(gemm.begin_ns, gemm.end_ns);
    EXPECT_EQ(definitions.count(gemm.shape), 1u) << "used before it was defined";
    const wire::GemmShapeRecord& shape = definitions[gemm.shape];
    const std::string types = log.name(shape.type_a) + " " + log.name(shape.type_b) + " " + log.name(shape.type_c);
    result.calls.push_back({log.name(shape.function), types, log.name(shape.compute_type), gemm.m, gemm.n, gemm.k,
                            gemm.batch, static_cast<int>(shape.trans_a), static_cast<int>(shape.trans_b)});
    result.libraries.push_back(log.name(shape.library));
    result.algorithms.push_back(shape.algorithm != 0 ? log.name(shape.algorithm) : "");
    result.epilogues.push_back(shape.epilogue != 0 ? log.name(shape.epilogue) : "");
    result.scalings.push_back(shape.scaling != 0 ? log.name(shape.scaling) : "");
  }
  return result;
}

std::string part(const std::string& name) { return std::string(LLMPROF_TEST_CLIENTS) + "/cublas/" + name; }

std::vector<std::string> command(const std::string& scenario, const std::vector<std::string>& versions) {
  std::vector<std::string> result = {client("cublas"), scenario};
  for (const std::string& version : versions) {
    result.push_back(part("libplugin_cublas" + version + ".so"));
    result.push_back(part("libcublas.so." + version));
    result.push_back(part("libcublasLt.so." + version));
  }
  return result;
}

class Cublas : public ::testing::Test {
 protected:
  Log log(const std::string& scenario, const std::vector<std::string>& versions, const std::string& expected = "") {
    std::string output;
    const int status = run(folder_, {.arguments = command(scenario, versions)}, &output);
    EXPECT_EQ(status, 0) << output;
    EXPECT_EQ(output, expected);
    const std::vector<Log> all = read_folder(folder_.path());
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].damaged_bytes + all[0].missing_blocks + all[0].undefined_names, 0u);
    EXPECT_EQ(all[0].lost(LossKind::kBlasUnresolved), 0u);
    return all[0];
  }
  CaptureFolder folder_;
};

constexpr std::size_t count_functions() {
  std::size_t count = 0;
#define LLMPROF_BLAS_CUDA(name, signature, types, bits) ++count;
#include "collect/blas/functions.def"
  return count;
}

// One of each signature: what client_cublas.cpp calls it with.
const std::vector<GpuCall> kExpected = {
    {"cublasSgemm_v2", "float32 float32 float32", "float32", 30, 40, 50, 1, 1, 0},
    {"cublasZgemm_v2_64", "complex128 complex128 complex128", "float64", kBig + 30, kBig + 40, kBig + 50, 1, 1, 0},
    {"cublasHgemm", "float16 float16 float16", "float16", 30, 40, 50, 1, 1, 0},
    {"cublasGemmEx", "bfloat16 bfloat16 float32", "float32", 30, 40, 50, 1, 1, 0},
    {"cublasSgemmEx", "bfloat16 bfloat16 float32", "float32", 30, 40, 50, 1, 1, 0},
    {"cublasDgemmBatched", "float64 float64 float64", "float64", 30, 40, 50, 5, 1, 0},
    {"cublasGemmBatchedEx_64", "bfloat16 bfloat16 float32", "float32", kBig + 30, kBig + 40, kBig + 50, 5, 1, 0},
    {"cublasCgemmStridedBatched", "complex64 complex64 complex64", "float32", 30, 40, 50, 5, 1, 0},
    {"cublasGemmStridedBatchedEx", "bfloat16 bfloat16 float32", "float32", 30, 40, 50, 5, 1, 0},
    {"cublasSgemmGroupedBatched", "float32 float32 float32", "float32", 30, 40, 50, 6, 1, 1},
    {"cublasSgemmGroupedBatched", "float32 float32 float32", "float32", 31, 41, 51, 7, 0, 0},
    {"cublasGemmGroupedBatchedEx_64", "bfloat16 bfloat16 float32", "float32", 31, 41, 51, 7, 0, 0},
    // A 30 x 40 matrix, transposed: 40 x 30.
    {"cublasDgemv_v2", "float64 float64 float64", "float64", 40, 1, 30, 1, 1, 0},
    {"cublasTSSgemvBatched", "bfloat16 bfloat16 float32", "float32", 40, 1, 30, 5, 1, 0},
    {"cublasHSHgemvStridedBatched_64", "float16 float16 float16", "float32", kBig + 40, 1, kBig + 30, 5, 1, 0},
    // D is 32 x 48; A is 64 x 32 as stored and transposed, so k is 64.
    {"cublasLtMatmul", "float8_e4m3 float8_e4m3 bfloat16", "float32", 32, 48, 64, 4, 1, 0}};

TEST_F(Cublas, EveryFunctionOfTwoVersionsAtOnce) {
  const Log all = log("linked", {"13", "12"});
  const Shapes shapes = shapes_of(all);
  // Each once per version and once more per grouped function, of which there are 6: they have two groups each. The
  // calls that failed left nothing.
  EXPECT_EQ(shapes.calls.size(), 2 * (count_functions() + 6));
  EXPECT_THAT(shapes.calls, IsSupersetOf(kExpected));
  EXPECT_THAT(shapes.libraries.front(), EndsWith("/libcublas.so.13"));
  EXPECT_THAT(shapes.libraries.back(), EndsWith("/libcublasLt.so.12"));
  EXPECT_EQ(shapes.algorithms.back(), "algo 66 tile 128x256 stages 64xauto splitk 1 cluster 2x1");
  EXPECT_EQ(shapes.epilogues.back(), "gelu_bias");
  EXPECT_EQ(shapes.scalings.back(), "tensor");
  EXPECT_EQ(all.lost(LossKind::kBlasNotHooked), 0u);
}

#if defined(__x86_64__)
// The first library that is asked for a function is hooked; the other one is called directly, and told of.
TEST_F(Cublas, AskedForByName) {
  const Log all = log("by_handle", {"12", "13"});
  const Shapes shapes = shapes_of(all);
  ASSERT_EQ(shapes.calls.size(), 2u);
  EXPECT_EQ(shapes.calls[0], kExpected[2]);
  EXPECT_EQ(shapes.calls[1], kExpected.back());
  EXPECT_THAT(shapes.libraries[0], EndsWith("/libcublas.so.12"));
  EXPECT_THAT(shapes.libraries[1], EndsWith("/libcublasLt.so.12"));
}
#endif

// Both copies have the same version: the loader's choice for the caller decides, not the order of loading.
TEST_F(Cublas, TwoCopiesOfOneVersion) {
  const std::string second = folder_.path() + "/another/libcublas.so.12";
  std::filesystem::create_directory(folder_.path() + "/another");
  std::filesystem::copy_file(part("libcublas.so.12"), second);
  std::string output;
  const int status = run(
      folder_,
      {.arguments = {client("cublas"), "copies", part("libplugin_cublas_free.so"), part("libcublas.so.12"), second}},
      &output);
  EXPECT_EQ(status, 0) << output;
  EXPECT_EQ(output, "right\n");
  const std::vector<Log> all = read_folder(folder_.path());
  ASSERT_EQ(all.size(), 1u);
  const Shapes shapes = shapes_of(all[0]);
  ASSERT_EQ(shapes.calls.size(), 1u);
  EXPECT_EQ(shapes.libraries[0], second);
}

TEST_F(Cublas, WhatCublasLeavesToLtCountsOnce) {
  const Shapes shapes = shapes_of(log("nested", {"13"}));
  ASSERT_EQ(shapes.calls.size(), 1u);
  EXPECT_EQ(shapes.calls[0], kExpected[3]);
}

// Calls left by an exception and by longjmp have no end; the one after them is seen, in the precision the handle says.
TEST_F(Cublas, CallsLeftSideways) {
  const Shapes shapes = shapes_of(log("leave", {"13"}));
  ASSERT_EQ(shapes.calls.size(), 1u);
  EXPECT_EQ(shapes.calls[0], (GpuCall{"cublasGemmEx", "float32 float32 float32", "tf32", 30, 40, 50, 1, 1, 0}));
}

// First call: 9 attributes of layouts and 5 of the algorithm. Each call: 8 of the descriptor. 14 + 100 * 8 = 814.
TEST_F(Cublas, LayoutsAreAskedAboutOnce) {
  const Shapes shapes = shapes_of(log("repeat", {"13"}, "asked 814\n"));
  EXPECT_EQ(shapes.calls.size(), 100u);
}

TEST_F(Cublas, OffWithoutAFolder) {
  std::string output;
  const int status =
      run(folder_, {.arguments = command("linked", {"13", "12"}), .environment = {"LLMPROF_CAPTURE_DIR="}}, &output);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(output, "");
}

}  // namespace
}  // namespace llmprof::collect::testing

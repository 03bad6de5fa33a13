// Numbers of the real logs were counted with grep and Python (tests/imports/README.md).
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "importers/cublas_log/names.h"
#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using trace::Loss;

std::string block(const std::string& function, const std::string& parameters, int pid = 7) {
  return "I! cuBLAS (v13.1.0) function cublasStatus_t " + function + "(cublasHandle_t, int) called:\n" + parameters +
         "i! Time: 2026-11-15T19:25:56 elapsed from start 0.1 minutes or 10.0 seconds\n"
         "i!Process=" +
         std::to_string(pid) +
         "; Thread=99; GPU=0; Handle=POINTER (IN HEX:0x0x37); StreamId=POINTER (IN HEX:0x(nil)) (defaultStream); "
         "MathMode=CUBLAS_TF32_TENSOR_OP_MATH\n"
         "i! COMPILED WITH: GNU GCC/G++\n";
}
std::string value(const std::string& name, const std::string& value, const std::string& type = "int") {
  return "i!  " + name + ": type=" + type + "; val=" + value + "\n";
}
std::string shape(int m, int n, int k) {
  return value("m", std::to_string(m)) + value("n", std::to_string(n)) + value("k", std::to_string(k));
}

constexpr const char* kLt =
    "[2026-11-15 19:25:56][cublasLt][1846][Trace][cublasLtMatmul] A=0X7 Adesc=[type=R_16BF rows=64 cols=48 ld=64 "
    "batchCount=3 stridedBatchOffset=9] B=0X8 Bdesc=[type=R_16BF rows=64 cols=16 ld=64 batchCount=3] C=0X9 "
    "Cdesc=[type=R_16BF rows=48 cols=16 ld=48 batchCount=3] D=0X9 Ddesc=[type=R_32F rows=48 cols=16 ld=48 "
    "batchCount=3] "
    "computeDesc=[computeType=COMPUTE_32F_FAST_TF32 scaleType=R_32F transa=OP_T epilogue=EPILOGUE_GELU_BIAS] "
    "algo=[algoId=66 tile=MATMUL_TILE_64x8 stages=MATMUL_STAGES_64xAUTO reductionScheme=REDUCTION_SCHEME_COMPUTE_TYPE "
    "numSplitsK=2 clusterShape=CLUSTER_SHAPE_4x1x1] workSpace=0X0 beta=0 stream=0X0\n";

TEST(CublasLog, TheRealLogOfCublas) {
  const Imports imports("cublas", import_text("cublas_gemmex.log.gz"));
  ASSERT_EQ(imports.error(), "");
  const auto rows = imports.sink.rows<trace::GemmRow>();
  ASSERT_EQ(rows.size(), 54u);  // grep -c 'function cublasStatus_t cublasGemmEx('
  double flops = 0;
  for (const auto& row : rows) flops += 2.0 * double(row.m) * double(row.n) * double(row.k) * double(row.batch);
  EXPECT_EQ(flops, 11821383680);  // of the 54 aten::mm of the same run, from their Input Dims
  const trace::GemmRow& first = rows.front();
  EXPECT_EQ(imports.name(first.function), "cublasGemmEx");
  EXPECT_THAT((std::vector{first.m, first.n, first.k, first.batch}), ElementsAre(1536, 128, 1024, 1));
  EXPECT_EQ(imports.name(first.type_a), "bfloat16");
  EXPECT_EQ(imports.name(first.compute_type), "float32");
  EXPECT_EQ(imports.name(first.transpose_a) + imports.name(first.transpose_b), "tn");
  EXPECT_EQ(imports.name(first.layout), "column");
  EXPECT_TRUE(imports.sink.losses.empty());
  EXPECT_EQ(imports.sink.facts.tool, "cuBLAS 13.1.0");
  EXPECT_EQ(imports.sink.rows<trace::ProcessRow>().at(0).pid, 1846);
  // date -u -d '2026-11-15T19:25:56' +%s
  EXPECT_EQ(imports.sink.clock.wall_of_zero_ns, 1794770756'000000000);
}

TEST(CublasLog, ACallOfCublasLtCountsOnce) {
  const Imports inner("cublas", import_text("cublaslt_inner.log.gz"));
  EXPECT_EQ(inner.error(), "");
  EXPECT_EQ(inner.sink.rows<trace::GemmRow>().size(), 54u);  // 54 Api and 54 Trace lines
  const Imports own("cublas", import_text("cublaslt_own.log.gz"));
  const auto rows = own.sink.rows<trace::GemmRow>();
  ASSERT_EQ(rows.size(), 63u);
  EXPECT_EQ(own.name(rows.front().function), "cublasLtMatmul");
  double flops = 0;
  for (const auto& row : rows) flops += 2.0 * double(row.m) * double(row.n) * double(row.k) * double(row.batch);
  EXPECT_EQ(flops, 11882856448);  // of the 63 aten::mm of the same run
  EXPECT_TRUE(own.sink.losses.empty());
}

TEST(CublasLog, EverythingALineOfCublasLtSays) {
  const Imports imports("cublas", kLt);
  ASSERT_EQ(imports.error(), "");
  const trace::GemmRow row = imports.sink.rows<trace::GemmRow>().at(0);
  EXPECT_THAT((std::vector{row.m, row.n, row.k, row.batch}), ElementsAre(48, 16, 64, 3));
  EXPECT_EQ(imports.name(row.type_c), "float32");
  EXPECT_EQ(imports.name(row.epilogue), "gelu_bias");
  EXPECT_EQ(imports.name(row.algorithm), "algo 66 tile 64x8 stages 64xauto splitk 2 cluster 4x1");
  EXPECT_EQ(imports.name(row.compute_type), "tf32");
  EXPECT_EQ(imports.name(row.library), "cublasLt");
}

TEST(CublasLog, FamiliesOfProducts) {
  const std::string side = value("side", "CUBLAS_SIDE_RIGHT(1)", "cublasSideMode_t");
  const Imports imports(
      "cublas", block("cublasSgemm_v2", shape(2, 3, 4)) +
                    block("cublasHgemmStridedBatched", shape(2, 3, 4) + value("batchCount", "5")) +
                    block("cublasDgemv_v2", value("trans", "CUBLAS_OP_T(1)") + value("m", "6") + value("n", "7")) +
                    block("cublasCgemm3m_64", shape(2, 3, 4)) +
                    block("cublasSsymm_v2", side + value("m", "6") + value("n", "7")) +
                    block("cublasGemmBatchedEx", shape(2, 3, 4) + value("Atype", "CUDA_R_8F_E4M3(28)") +
                                                     value("computeType", "CUDA_R_32F(0)") + value("batchCount", "9")) +
                    block("cublasStrsm_v2", value("m", "6") + value("n", "7")) + block("cublasSetStream_v2", ""));
  ASSERT_EQ(imports.error(), "");
  std::vector<std::string> rows;
  for (const auto& row : imports.sink.rows<trace::GemmRow>()) {
    rows.push_back(std::to_string(row.m) + "x" + std::to_string(row.n) + "x" + std::to_string(row.k) + "*" +
                   std::to_string(row.batch) + " " + imports.name(row.type_a) + " " + imports.name(row.compute_type));
  }
  EXPECT_THAT(rows, ElementsAre("2x3x4*1 float32 tf32", "2x3x4*5 float16 float16", "7x1x6*1 float64 float64",
                                "2x3x4*1 complex64 complex64", "6x7x7*1 float32 tf32", "2x3x4*9 float8_e4m3 float32"));
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 1);  // the triangular solve, not the stream
  EXPECT_THAT(imports.sink.details, Contains(HasSubstr("cublasStrsm_v2")));
}

TEST(CublasLog, TornMixedAndForeignLinesAreCounted) {
  const std::string whole = block("cublasSgemm_v2", shape(2, 3, 4));
  const std::string begun = whole.substr(0, whole.find("i!  n"));
  const Imports imports("cublas", "loading\n" + whole + begun + whole + "\x1b[31m" + kLt +
                                      std::string(kLt).substr(0, 150) + kLt + std::string(kLt).substr(0, 60));
  ASSERT_EQ(imports.error(), "");
  EXPECT_EQ(imports.sink.rows<trace::GemmRow>().size(), 3u);
  // A block that another begins in, a line written into another, a line that breaks off.
  EXPECT_EQ(imports.sink.lost(Loss::kInputDamaged), 3);
  EXPECT_EQ(imports.sink.lost(Loss::kInputIgnored), 1);
}

TEST(CublasLog, ProcessesThatWriteIntoOneFile) {
  const std::string one = block("cublasSgemm_v2", shape(2, 3, 4), 7), two = block("cublasSgemm_v2", shape(5, 6, 7), 8);
  const std::size_t cut = one.find("i!  n");
  const Imports whole("cublas", one + two + one);
  EXPECT_EQ(whole.sink.rows<trace::ProcessRow>().size(), 2u);
  EXPECT_EQ(whole.sink.rows<trace::GemmRow>().size(), 3u);
  // Lines of two blocks between each other: nothing wrong is taken from them.
  const Imports mixed("cublas", one + one.substr(0, cut) + two.substr(0, two.find("i!  k")) + one.substr(cut) + two);
  for (const auto& row : mixed.sink.rows<trace::GemmRow>())
    EXPECT_TRUE((row.m == 2 && row.n == 3 && row.k == 4) || (row.m == 5 && row.n == 6 && row.k == 7));
  EXPECT_GE(mixed.sink.lost(Loss::kInputDamaged), 2);
}

TEST(CublasLog, ALineOfAnyLength) {
  const std::string whole = block("cublasSgemm_v2", shape(2, 3, 4));
  const Imports imports("cublas", whole + std::string(3 << 20, 'x') + "\n" + whole);
  EXPECT_EQ(imports.sink.rows<trace::GemmRow>().size(), 2u);
  EXPECT_EQ(imports.sink.lost(Loss::kInputDamaged), 1);
  EXPECT_THAT(imports.sink.details, Contains(HasSubstr("byte " + std::to_string(whole.size()))));
}

TEST(CublasLog, WhatIsNoLogIsRefused) {
  EXPECT_THAT(Imports("cublas", std::string("\x7f"
                                            "ELF\0\0\n\xff\xfe",
                                            9))
                  .error(),
              HasSubstr("line 1: holds no line"));
  const Imports none("cublas", block("cublasSetStream_v2", ""));  // its products may stand in the log of cuBLASLt
  EXPECT_EQ(none.error(), "");
  EXPECT_THAT(none.sink.details, Contains(HasSubstr("without a matrix product")));
  std::string api = kLt;
  api.replace(api.find("Trace"), 5, "Api");
  EXPECT_THAT(Imports("cublas", api).error(), HasSubstr("has no [Trace] lines"));
  EXPECT_EQ(sniff(kLt)->name, "cublas");
  EXPECT_EQ(sniff("starting\n" + block("cublasSgemm_v2", ""))->name, "cublas");
}

TEST(CublasLog, TimesBeyondWhatNanosecondsHoldAreNone) {
  EXPECT_EQ(cublas::second_of("1970-01-02T00:00:01"), 86'401);
  EXPECT_TRUE(cublas::second_of("2200-12-31T23:59:59"));  // 7.29e9 s: 7.29e18 ns fit 63 bits
  EXPECT_FALSE(cublas::second_of("3995-12-31T23:59:59"));
}

}  // namespace
}  // namespace llmprof::importers

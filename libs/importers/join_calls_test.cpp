// The real pair: logs of cuBLAS and cuBLASLt and a Kineto trace of one program on an H200. Its kernels stand in
// tests/imports/cublas_kernels.tsv.gz, made from the trace by Python: launch, duration, operator, m, n, k, name.
#include "importers/join_calls.h"

#include <gmock/gmock.h>

#include <charconv>
#include <set>

#include "importers/testing_files.h"

namespace llmprof::importers {
namespace {

using testing::Each;
using testing::ElementsAre;

struct Trace {
  std::string text;
  std::vector<ProductKernel> kernels;
};

std::int64_t number(std::string_view& line) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return value;
}

Trace kernels_of(const std::string& file, std::int64_t pid) {
  Trace trace{import_text(file), {}};
  std::string_view rest = trace.text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    ProductKernel kernel{.kernel_id = static_cast<trace::Id>(trace.kernels.size()) + 1, .pid = pid};
    kernel.launch_ns = number(line), kernel.duration_ns = number(line), kernel.gemm_id = number(line);
    kernel.m = number(line), kernel.n = number(line), kernel.k = number(line);
    kernel.name = line;
    if (may_execute_product(kernel.name)) trace.kernels.push_back(kernel);
  }
  return trace;
}

struct Log {
  Imports imports;
  std::vector<LoggedCall> calls;
  explicit Log(const std::string& text) : imports("cublas", text) {
    for (const auto& row : imports.sink.rows<trace::GemmRow>())
      calls.push_back({imports.sink.rows<trace::ProcessRow>().at(0).pid, row.m, row.n, row.k, row.batch,
                       imports.sink.text(row.library), imports.sink.text(row.function), "", "", ""});
  }
};

double flops(const LoggedCall& call) {
  return 2.0 * static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
}

TEST(JoinCalls, EveryProductOfTheSameRun) {
  const Trace trace = kernels_of("cublas_kernels.tsv.gz", 1846);
  ASSERT_EQ(trace.kernels.size(), 66u);  // 54 products, 12 of them with a reduction behind
  const Log log(import_text("cublas_gemmex.log.gz"));
  const auto call_of = join_calls(log.calls, trace.kernels);
  std::set<std::int32_t> joined;
  double sum = 0;
  for (std::size_t i = 0; i < call_of.size(); ++i) {
    ASSERT_NE(call_of[i], kNotJoined) << trace.kernels[i].name;
    const LoggedCall& call = log.calls[static_cast<std::size_t>(call_of[i])];
    EXPECT_EQ(call.m, trace.kernels[i].n);  // the log's columns are the operator's rows
    EXPECT_EQ(call.n, trace.kernels[i].m);
    EXPECT_EQ(call.k, trace.kernels[i].k);
    if (joined.insert(call_of[i]).second) sum += flops(call);
  }
  EXPECT_EQ(joined.size(), 54u);
  EXPECT_EQ(sum, 11821383680);  // 2MNK over the 54 aten::mm of the trace, by Python
}

TEST(JoinCalls, WithoutShapesByCount) {
  Trace trace = kernels_of("cublas_kernels.tsv.gz", 1846);
  for (ProductKernel& kernel : trace.kernels) kernel.gemm_id = kernel.m = kernel.n = kernel.k = 0;
  Log log(import_text("cublas_gemmex.log.gz"));
  const auto call_of = join_calls(log.calls, trace.kernels);
  EXPECT_EQ(std::set<std::int32_t>(call_of.begin(), call_of.end()).size(), 54u);
  EXPECT_EQ(call_of.front(), 0);
  EXPECT_EQ(call_of.back(), 53);
  log.calls.pop_back();  // one call less than products: nothing is guessed
  EXPECT_THAT(join_calls(log.calls, trace.kernels), Each(kNotJoined));
}

TEST(JoinCalls, CublasAndCublasLtTogetherCountOnce) {
  const Trace trace = kernels_of("cublas_kernels.tsv.gz", 1846);
  const Log log(import_text("cublas_gemmex.log.gz") + import_text("cublaslt_inner.log.gz"));
  ASSERT_EQ(log.calls.size(), 108u);
  const auto outer = outer_calls(log.calls);
  for (std::int32_t i = 0; i < 54; ++i) {
    EXPECT_EQ(outer[static_cast<std::size_t>(i)], kNotJoined);
    EXPECT_EQ(outer[static_cast<std::size_t>(i) + 54], i);
  }
  const auto call_of = join_calls(log.calls, trace.kernels);
  for (const std::int32_t call : call_of) EXPECT_TRUE(call >= 0 && call < 54) << call;
}

TEST(JoinCalls, CallsThatWereCapturedHaveNoKernelOfTheirOwn) {
  const Trace trace = kernels_of("cublaslt_own_kernels.tsv.gz", 1826);
  const Log log(import_text("cublaslt_own.log.gz"));
  ASSERT_EQ(log.calls.size(), 63u);
  const auto call_of = join_calls(log.calls, trace.kernels);
  std::set<std::int32_t> joined(call_of.begin(), call_of.end());
  joined.erase(kNotJoined);
  std::set<trace::Id> products;
  for (const ProductKernel& kernel : trace.kernels) products.insert(kernel.gemm_id);
  products.erase(0);
  EXPECT_EQ(joined.size(), products.size());  // every product that the trace knows
  for (std::size_t i = 0; i < call_of.size(); ++i) EXPECT_EQ(call_of[i] == kNotJoined, trace.kernels[i].gemm_id == 0);
}

std::vector<LoggedCall> calls_of(std::initializer_list<int> sizes) {
  std::vector<LoggedCall> calls;
  for (const int size : sizes) calls.push_back({1, size, 1, 1, 1, "cublas", "cublasGemmEx", "", "", ""});
  return calls;
}
std::vector<ProductKernel> products_of(std::initializer_list<int> sizes) {
  std::vector<ProductKernel> kernels;
  trace::Id id = 0;
  for (const int size : sizes) kernels.push_back({++id, 1, 1, id, 1, "gemm", id, 1, size, 1, 1});
  return kernels;
}

TEST(JoinCalls, GapsAnywhere) {
  EXPECT_THAT(join_calls(calls_of({9, 1, 2, 3, 8, 4, 5, 7}), products_of({1, 2, 6, 3, 4, 5})),
              ElementsAre(1, 2, kNotJoined, 3, 5, 6));
  // The trace is a window of the log, and the other way round.
  EXPECT_THAT(join_calls(calls_of({1, 2, 3, 4, 5, 6}), products_of({4, 5})), ElementsAre(3, 4));
  EXPECT_THAT(join_calls(calls_of({4, 5}), products_of({1, 4, 5, 6})), ElementsAre(kNotJoined, 0, 1, kNotJoined));
  // Another program: the one shape in common is an accident.
  EXPECT_THAT(join_calls(calls_of({1, 2, 3}), products_of({3, 4, 5})), Each(kNotJoined));
}

TEST(JoinCalls, ProcessesAreNotMixed) {
  auto calls = calls_of({1, 2, 1, 2});
  auto kernels = products_of({1, 2, 1, 2});
  calls[2].pid = calls[3].pid = kernels[2].pid = kernels[3].pid = 2;
  EXPECT_THAT(join_calls(calls, kernels), ElementsAre(0, 1, 2, 3));
  for (ProductKernel& kernel : kernels) kernel.pid += 10;
  EXPECT_THAT(join_calls(calls, kernels), Each(kNotJoined));
}

TEST(JoinCalls, LongSequencesThatDifferEverywhere) {
  std::vector<LoggedCall> calls;
  std::vector<ProductKernel> kernels;
  for (int i = 0; i < 20'000; ++i) {
    calls.push_back({1, i % 97, 1, 1, 1, "cublas", "cublasGemmEx", "", "", ""});
    if (i % 5 != 0) kernels.push_back({i + 1, 1, 1, i, 1, "gemm", i + 1, i % 97, 1, 1, 1});
  }
  const auto call_of = join_calls(calls, kernels);
  std::size_t joined = 0;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < call_of.size(); ++i) {
    if (call_of[i] == kNotJoined) continue;
    EXPECT_GT(call_of[i], last);
    last = call_of[i];
    joined += calls[static_cast<std::size_t>(last)].m == kernels[i].m ? 1 : 0;
  }
  EXPECT_EQ(joined, kernels.size());
}

TEST(JoinCalls, KernelsByName) {
  for (const char* name :
       {"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "ampere_sgemm_128x64_tn", "void gemv2T_kernel_val<int>",
        "void cublasLt::splitKreduce_kernel<32>", "cutlass_80_tensorop_bf16_s16816gemm"})
    EXPECT_TRUE(may_execute_product(name)) << name;
  for (const char* name :
       {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "void cutlass::device_kernel<flash::Fwd>",
        "void at::native::elementwise_kernel", "triton_mm_gemm"})
    EXPECT_FALSE(may_execute_product(name)) << name;
}

}  // namespace
}  // namespace llmprof::importers

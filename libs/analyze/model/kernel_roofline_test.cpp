// Two kernels of a real CSV of Nsight Compute (tests/imports/ncu_raw_full.csv.gz, H200), worked out by hand.

#include <gmock/gmock.h>

#include "analyze/model/kernel_roofline.h"
#include "importers/testing_files.h"

namespace llmprof::analyze {

namespace {

using testing::Contains;
using testing::ElementsAre;

KernelCounters kernel(std::size_t nth) {
  static const importers::Imports imports("ncu", importers::import_text("ncu_raw_full.csv.gz"));
  const auto row = imports.sink.rows<trace::KernelRow>().at(nth);
  KernelCounters counters{static_cast<double>(row.end_ns - row.begin_ns), {}};
  for (const auto& counter : imports.sink.rows<trace::CounterRow>()) {
    if (counter.scope_id == row.id) counters.values.emplace(imports.sink.text(counter.metric), counter.value);
  }
  return counters;
}

// nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN: 7,680 ns, 134,217,728 operations in bfloat16 (2 x 4096 x 16 x 1024, say),
// 2,121,216 bytes read, none written, no FLOPs of plain cores.
TEST(KernelRoofline, AProductByHand) {
  const KernelRoofline point = kernel_roofline(kernel(3), {});
  EXPECT_EQ(point.flops, 134217728);
  EXPECT_EQ(point.tensor_flops, 134217728);
  EXPECT_EQ(point.dram_bytes, 2121216);
  EXPECT_NEAR(*point.flops_per_s, 17476266666666.67, 1);  // as ncu says itself: ...bf16_dst_fp32.sum.per_second
  EXPECT_NEAR(*point.bytes_per_s, 276200000000, 1);       // dram__bytes.sum.per_second
  EXPECT_NEAR(*point.flops_per_byte, 63.2739560705, 1e-9);
  EXPECT_EQ(point.type, "bfloat16");
  // The dense peak of ..._op_hgmma_..._sparsity_off; that of the total (1,992,360,533,333,333.5) is with sparsity.
  EXPECT_NEAR(*point.peak_flops_per_s, 996180266666666.75, 1);
  EXPECT_NEAR(*point.peak_bytes_per_s, 1504 * 3184027777.78, 1);
  EXPECT_EQ(point.peak_flops_source, "ncu");
  EXPECT_EQ(point.bound, "memory");  // 134.7 ns of arithmetic, 442.96 ns of memory
  EXPECT_NEAR(*point.share_of_roof, 2121216 / (1504 * 3184027777.78) / 7680e-9, 1e-9);
  EXPECT_NEAR(*point.share_of_roof, 0.05768, 1e-5);
  EXPECT_TRUE(point.missing.empty());
}

// Attention: 5,632 ns; 25,165,824 operations in bfloat16; 18.27 + 29.49 + 2 x 0.54 FLOPs a cycle of plain cores over
// 11,319.20 cycles = 552,829.7; 287,744 bytes.
TEST(KernelRoofline, AttentionByHand) {
  const KernelRoofline point = kernel_roofline(kernel(2), {});
  EXPECT_EQ(point.tensor_flops, 25165824);
  EXPECT_NEAR(*point.flops, 25165824 + 552829.728, 1e-3);
  EXPECT_EQ(point.dram_bytes, 287744);
  EXPECT_NEAR(*point.bytes_per_s, 51090909090.91, 1);
  EXPECT_EQ(point.bound, "memory");  // 60.06 ns at 4.791 TB/s; 23.16 ns at 1,086.6 TFLOP/s
  EXPECT_NEAR(*point.share_of_roof, 0.010664, 1e-6);
}

TEST(KernelRoofline, PeaksOfTheDeviceStandIn) {
  KernelCounters counters{
      1000, {{"dram__bytes_read.sum", 1e6}, {"dram__bytes_write.sum", 0}, {"sm__ops_path_tensor_src_fp8.sum", 4e9}}};
  const std::vector<hw::Peak> peaks{{"flops", "float8", 2e15, "FLOP/s", "spec", ""},
                                    {"bandwidth", "read", 4e12, "B/s", "spec", ""}};
  const KernelRoofline point = kernel_roofline(counters, peaks);
  EXPECT_EQ(point.type, "float8");
  EXPECT_EQ(point.bound, "compute");  // 2,000 ns of arithmetic against 250 ns of memory
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 2);
  EXPECT_EQ(point.peak_flops_source, "spec");
  EXPECT_THAT(point.missing, ElementsAre("operations of plain cores"));
  const KernelRoofline unknown = kernel_roofline(counters, {});
  EXPECT_EQ(unknown.bound, "");
  EXPECT_FALSE(unknown.share_of_roof.has_value());
  EXPECT_THAT(unknown.missing, Contains("peak of float8"));
}

TEST(KernelRoofline, NothingIsCountedTwice) {
  KernelCounters counters{1000,
                          {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum", 10},
                           {"sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", 4},
                           {"sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", 6},
                           {"sm__ops_path_tensor_src_fp8_sparsity_off.sum", 5},
                           {"sm__ops_path_tensor_src_fp8_sparsity_on.sum", 2},
                           {"sm__ops_path_tensor_src_int8.sum", 99},
                           {"sm__sass_thread_inst_executed_op_hfma_pred_on.sum", 3},
                           {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 3}}};
  const KernelRoofline point = kernel_roofline(counters, {});
  EXPECT_EQ(point.tensor_flops, 17);
  EXPECT_EQ(point.flops, 17 + 12);  // an FMA of pairs is four
}

}  // namespace

}  // namespace llmprof::analyze

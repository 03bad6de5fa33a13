// Rules about registers and hardware counters, on runs written by hand.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

// Nsight Compute's own limits for kernels of tests/imports/ncu_raw_full.csv.gz: 128 threads with 23 registers and no
// shared memory, 21 blocks by registers, 16 by warps.
TEST(Occupancy, AsNsightComputeCountsIt) {
  const SmLimits limits = *sm_limits("compute capability 9.0");
  const Occupancy small = occupancy_of({.threads = 128, .registers = 23, .shared_bytes = 0}, limits);
  EXPECT_EQ(small.blocks, 16);
  EXPECT_EQ(small.limiter, "threads of a block");
  EXPECT_DOUBLE_EQ(small.occupancy, 1);
  // A warp of 168 registers takes 5376 of 65536: 12 warps fit, one block of 384 threads; so does its shared memory.
  const Occupancy product = occupancy_of({.threads = 384, .registers = 168, .shared_bytes = 164308}, limits);
  EXPECT_EQ(product.blocks, 1);
  EXPECT_DOUBLE_EQ(product.occupancy, 12.0 / 64);
  // 255 registers: 8192 a warp, 8 warps, 2 blocks of 128.
  const Occupancy wide = occupancy_of({.threads = 128, .registers = 255}, limits);
  EXPECT_EQ(wide.limiter, "registers");
  EXPECT_DOUBLE_EQ(wide.occupancy, 8.0 / 64);
  // 100 KiB and the KiB that the driver keeps: two of 228 KiB.
  const Occupancy shared = occupancy_of({.threads = 128, .registers = 32, .shared_bytes = 102400}, limits);
  EXPECT_EQ(shared.limiter, "shared memory");
  EXPECT_EQ(shared.blocks, 2);
}

TEST(Occupancy, LimitsByChip) {
  EXPECT_EQ(sm_limits("sm_90")->warps, 64);
  EXPECT_EQ(sm_limits("sm_89")->warps, 48);
  EXPECT_EQ(sm_limits("sm_100")->shared_bytes, 228 * 1024);
  EXPECT_EQ(sm_limits("Hopper")->blocks, 32);
  EXPECT_EQ(sm_limits("sm_90a")->warps, 64);
  for (const char* unknown : {"", "gfx942", "x86-64-v4", "sm_999999999999"})
    EXPECT_FALSE(sm_limits(unknown)) << unknown;
}

struct Launch {
  std::string_view kernel = "scan";
  int registers = 255;
  int blocks = 1000;
  double dram_bytes = 0;  // 0: no counters
  double l2_hits = 90;    // %
};

// One kernel of 1000 ns on a device of 1 TB/s: its roof for B bytes is B / 1000 of the time.
std::int64_t launched(RuleRun& run, const Launch& launch, std::int64_t begin = 10'000) {
  trace::KernelRow row = run.kernel_row(launch.kernel, begin, begin, begin + 1000);
  row.grid_x = launch.blocks, row.grid_y = row.grid_z = 1;
  row.block_x = 128, row.block_y = row.block_z = 1;
  row.registers = launch.registers, row.shared_bytes = 0;
  run.add(row);
  if (launch.dram_bytes <= 0) return row.id;
  run.counter(row.id, "dram__bytes_read.sum", launch.dram_bytes);
  run.counter(row.id, "dram__bytes_write.sum", 0);
  run.counter(row.id, "sm__ops_path_tensor_src_bf16.sum", 1);
  run.counter(row.id, "lts__t_sector_hit_rate.pct", launch.l2_hits);
  return row.id;
}

RuleRun& with_peaks(RuleRun& run) {
  run.peak("bandwidth", "read", 1e12);
  run.peak("flops", "bfloat16", 1e15);
  return run;
}

Diagnosis said_of(const Launch& launch) {
  RuleRun run;
  launched(with_peaks(run), launch);
  return run.diagnosis();
}

TEST(OccupancyLimit, RegistersLeaveTwoBlocks) {
  const Diagnosis said = said_of({.dram_bytes = 400'000});
  const Finding* found = find(said, "occupancy_limit");
  ASSERT_NE(found, nullptr) << outcome(said, "occupancy_limit").why;
  EXPECT_EQ(found->verdict, Verdict::kFound);
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.theoretical_occupancy"), 0.125);
  // 400 kB at 1 TB/s take 400 of its 1000: 600 above the roof.
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.of_roof"), 0.4);
  EXPECT_DOUBLE_EQ(found->gain->ns, 600);
}

TEST(OccupancyLimit, WithoutCountersItIsInconclusive) {
  const Diagnosis said = said_of({});
  ASSERT_NE(find(said, "occupancy_limit"), nullptr);
  EXPECT_EQ(find(said, "occupancy_limit")->verdict, Verdict::kInconclusive);
  EXPECT_NE(find(said, "occupancy_limit")->next.find("advise ncu"), std::string::npos);
}

TEST(OccupancyLimit, WhatIsNoLimit) {
  expect_nothing(said_of({.registers = 32}), "occupancy_limit");                  // all warps fit
  expect_nothing(said_of({.kernel = "nvjet_sm90_tst_64x8"}), "occupancy_limit");  // a product needs few warps
  expect_nothing(said_of({.blocks = 19}), "occupancy_limit");                     // 20 fit the device
  expect_nothing(said_of({.dram_bytes = 900'000}), "occupancy_limit");            // at 90 % of the roof
}

// A product of 100 x 100 x 100 in bfloat16 needs 3 x 20 kB; it moves `dram_bytes`.
Diagnosis product_of(double dram_bytes, double l2_hits, bool known = true) {
  RuleRun run;
  with_peaks(run);
  trace::GemmRow gemm = run.gemm_row(9'990, 100, 100, 100);
  gemm.end_ns = 9'999;
  trace::KernelRow row = run.kernel_row("nvjet_a", 9'995, 10'000, 11'000);
  row.grid_x = 1000, row.grid_y = row.grid_z = 1;
  if (known) row.gemm_id = gemm.id, gemm.kernel_id = row.id;
  run.add(row);
  run.add(gemm);
  run.counter(row.id, "dram__bytes_read.sum", dram_bytes);
  run.counter(row.id, "dram__bytes_write.sum", 0);
  run.counter(row.id, "sm__ops_path_tensor_src_bf16.sum", 1);
  run.counter(row.id, "lts__t_sector_hit_rate.pct", l2_hits);
  return run.diagnosis();
}

TEST(LowL2Hits, BytesThatAreReadAgain) {
  const Diagnosis said = product_of(240'000, 20);
  const Finding* found = find(said, "low_l2_hits");
  ASSERT_NE(found, nullptr) << outcome(said, "low_l2_hits").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.needed_bytes"), 60'000);
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.l2_hits"), 0.2);
  EXPECT_DOUBLE_EQ(found->gain->ns, 750);  // a quarter of the bytes is needed
}

TEST(LowL2Hits, WhatLosesNothing) {
  expect_nothing(product_of(240'000, 80), "low_l2_hits");         // the cache hits
  expect_nothing(product_of(66'000, 20), "low_l2_hits");          // reads everything once
  expect_nothing(product_of(240'000, 20, false), "low_l2_hits");  // nobody knows what it needs
}

struct Accesses {
  double sectors_per_load = 4;
  std::optional<double> bytes_per_sector;  // of loads
  double shared_pct = 50, conflicts = 0;   // conflicts of 1000 wavefronts
  double local_sectors = 0;                // of 1000 + 1000 global ones
  bool counted = true;
};

// One kernel of 1000 ns: 1000 sectors loaded, 1000 stored.
Diagnosis accessed(const Accesses& of) {
  RuleRun run;
  const std::int64_t id = launched(with_peaks(run), {.registers = 32, .dram_bytes = 300'000});
  if (!of.counted) return run.diagnosis();
  const std::string global = "_pipe_lsu_mem_global_op_", local = "l1tex__t_sectors_pipe_lsu_mem_local_op_";
  run.counter(id, "l1tex__t_sectors" + global + "ld.sum", 1000);
  run.counter(id, "l1tex__t_requests" + global + "ld.sum", 1000 / of.sectors_per_load);
  run.counter(id, "l1tex__t_sectors" + global + "st.sum", 1000);
  run.counter(id, "l1tex__t_requests" + global + "st.sum", 250);
  if (of.bytes_per_sector)
    run.counter(id, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", *of.bytes_per_sector);
  run.counter(id, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1000);
  run.counter(id, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", of.shared_pct);
  run.counter(id, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", of.conflicts);
  run.counter(id, local + "ld.sum", of.local_sectors / 2);
  run.counter(id, local + "st.sum", of.local_sectors / 2);
  return run.diagnosis();
}

TEST(UncoalescedAccess, MoreSectorsThanAnyWidthNeeds) {
  const Diagnosis said = accessed({.sectors_per_load = 32});
  const Finding* found = find(said, "uncoalesced_access");
  ASSERT_NE(found, nullptr) << outcome(said, "uncoalesced_access").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.sectors_per_load"), 32);
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.sectors_per_store"), 4);
  EXPECT_DOUBLE_EQ(found->gain->ns, 500);  // 16 of 32 would do whatever the width
  EXPECT_TRUE(found->gain->upper_bound);
}

TEST(UncoalescedAccess, BytesOfASectorSayMore) {
  const Diagnosis said = accessed({.sectors_per_load = 16, .bytes_per_sector = 8});
  const Finding* found = find(said, "uncoalesced_access");
  ASSERT_NE(found, nullptr) << outcome(said, "uncoalesced_access").why;
  EXPECT_DOUBLE_EQ(found->gain->ns, 750);  // 8 of 32 bytes are needed
  EXPECT_NE(found->title.find("8 of the 32 bytes"), std::string::npos) << found->title;
}

TEST(UncoalescedAccess, WhatIsFine) {
  expect_nothing(accessed({.sectors_per_load = 4}), "uncoalesced_access");
  expect_nothing(accessed({.sectors_per_load = 16}), "uncoalesced_access");  // 16 bytes a thread
  expect_nothing(accessed({.sectors_per_load = 32, .bytes_per_sector = 32}), "uncoalesced_access");
  const Diagnosis none = accessed({.counted = false});
  EXPECT_NE(outcome(none, "uncoalesced_access").why.find("--counters access"), std::string::npos);
}

TEST(BankConflicts, CyclesThatSharedMemoryRepeats) {
  const Diagnosis said = accessed({.shared_pct = 50, .conflicts = 400});
  const Finding* found = find(said, "bank_conflicts");
  ASSERT_NE(found, nullptr) << outcome(said, "bank_conflicts").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.bank_conflicts"), 0.4);
  EXPECT_DOUBLE_EQ(found->gain->ns, 200);  // half of the cycles, 40 % of these
  expect_nothing(accessed({.shared_pct = 50, .conflicts = 100}), "bank_conflicts");  // a tenth
  expect_nothing(accessed({.shared_pct = 2, .conflicts = 900}), "bank_conflicts");   // it hardly uses shared memory
}

TEST(LocalMemory, SectorsOfSpilledRegisters) {
  const Diagnosis said = accessed({.local_sectors = 2000});
  const Finding* found = find(said, "local_memory");
  ASSERT_NE(found, nullptr) << outcome(said, "local_memory").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.local_share"), 0.5);  // 2000 beside 2000 of global memory
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.local_bytes"), 64'000);
  EXPECT_DOUBLE_EQ(found->gain->ns, 500);
  expect_nothing(accessed({.local_sectors = 100}), "local_memory");
}

Diagnosis stalled(double scoreboard, double dram_bytes, int blocks = 1000) {
  RuleRun run;
  const std::int64_t id = launched(with_peaks(run), {.registers = 32, .blocks = blocks, .dram_bytes = dram_bytes});
  const auto stall = [&](const std::string& reason, double warps) {
    run.counter(id, "smsp__average_warps_issue_stalled_" + reason + "_per_issue_active.ratio", warps);
  };
  stall("long_scoreboard", scoreboard);
  stall("wait", 1);
  stall("barrier", 1);
  stall("math_pipe_throttle", 1);
  stall("short_scoreboard", 1);
  stall("selected", 1);
  return run.diagnosis();
}

TEST(StallReasons, WaitsForMemory) {
  const Diagnosis said = stalled(6, 300'000);
  const Finding* found = find(said, "stall_reasons");
  ASSERT_NE(found, nullptr) << outcome(said, "stall_reasons").why;
  EXPECT_DOUBLE_EQ(evidence(*found, "kernel.stall_long_scoreboard"), 0.6);  // 6 of 10; the issued one does not wait
  EXPECT_DOUBLE_EQ(found->gain->ns, 700);                                   // 300 of 1000 at the roof
}

TEST(StallReasons, WhatDoesNotMatter) {
  expect_nothing(stalled(1, 300'000), "stall_reasons");     // five reasons alike
  expect_nothing(stalled(6, 700'000), "stall_reasons");     // near its roof
  expect_nothing(stalled(6, 300'000, 9), "stall_reasons");  // fewer blocks than multiprocessors
}

}  // namespace
}  // namespace llmprof::analyze
